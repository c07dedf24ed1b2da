"""Clients of the Anthropic SDK: which server is asked, with which key, and over which HTTP client.

What must be handed in is an `AsyncClient` of the package that the installed SDK runs on: httpx in 0.x, httpx2 in 2.x.
Home Assistant shares one of httpx up to 2026.10 and one of httpx2 from 2026.11 on, which fits the SDK that it asks for
itself. Another integration may have installed another version: `accepts` says whether a client fits, `own_http_client`
makes one that does.
"""

from inspect import signature
from ssl import SSLContext
from typing import Any

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

from ..transport import lent
from .errors import provider_errors
from .messages import Messages

_ANTHROPIC = "https://api.anthropic.com"
# The SDK refuses to go without a key; servers at home ask for none.
_NO_KEY = "none"

# The SDK's own client is of the package's class, whichever package that is.
_CLIENT = next(kind for kind in DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")

# Spans of newer versions: nobody here collects them, and what they hold is the environment's to say.
_NO_TRACES: dict[str, Any] = (
    {"open_telemetry": False} if "open_telemetry" in signature(AsyncAnthropic).parameters else {}
)


def accepts(http_client: object) -> bool:
    """Whether the installed SDK runs on this HTTP client."""
    return isinstance(http_client, _CLIENT)


def own_http_client(ssl_context: SSLContext) -> Any:
    """Return an HTTP client that the SDK accepts, for where a shared one does not fit; the caller closes it.

    With a context that is ready nothing is read from disk.
    """
    return DefaultAsyncHttpxClient(verify=ssl_context, follow_redirects=False)


def anthropic_messages(url: str | None, api_key: str | None, http_client: Any) -> Messages:
    """Return a provider for Anthropic, or for a compatible server where there is a URL; opens no connection.

    `http_client` is one that `accepts` says yes to (else a `TypeError`) and stays its owner's. Where the
    address is none it raises `BadRequest`. There is one attempt for each request: a retry of the SDK's would be heard
    as silence.
    """
    if not accepts(http_client):
        kind = type(http_client)
        raise TypeError(f"the SDK runs on {_CLIENT.__module__}, not on {kind.__name__} of {kind.__module__}")
    with provider_errors():
        client = AsyncAnthropic(
            api_key=api_key or _NO_KEY,
            base_url=url or _ANTHROPIC,
            http_client=lent(http_client),
            max_retries=0,
            **_NO_TRACES,
        )
    return Messages(client)
