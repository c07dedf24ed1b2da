"""Clients of the Anthropic SDK: the server, the key, and the HTTP client they use.

The SDK needs an `AsyncClient` of the HTTP package that it runs on: httpx in 0.x, httpx2 in 2.x. Home Assistant uses
httpx up to 2026.10 and httpx2 from 2026.11 on, which fits the SDK that it installs itself. Another integration may have
installed another version: `accepts` tells whether a client fits, and a `HttpClient` does.
"""

from inspect import signature
from typing import Any

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

from ..transport import lent
from .errors import provider_errors
from .messages import Messages

_ANTHROPIC = "https://api.anthropic.com"
# The SDK refuses to go without a key; servers at home ask for none.
_NO_KEY = "none"

# The class of a client on the HTTP package that the SDK runs on.
HttpClient: Any = next(kind for kind in DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")

# Spans of newer versions: nobody here collects them, and what they hold is the environment's to say.
_NO_TRACES: dict[str, Any] = (
    {"open_telemetry": False} if "open_telemetry" in signature(AsyncAnthropic).parameters else {}
)


def accepts(http_client: object) -> bool:
    """Return whether the installed SDK runs on this HTTP client."""
    return isinstance(http_client, HttpClient)


def anthropic_messages(url: str | None, api_key: str | None, http_client: Any) -> Messages:
    """Return a provider for Anthropic, or for a compatible server if there is a URL. Opens no connection.

    `http_client` is one that `accepts` accepts (else raises `TypeError`); the caller keeps ownership. Raises
    `BadRequest` for an invalid URL. Each request is tried once: during a retry of the SDK the user would hear nothing.
    """
    if not accepts(http_client):
        kind = type(http_client)
        raise TypeError(f"the SDK runs on {HttpClient.__module__}, not on {kind.__name__} of {kind.__module__}")
    with provider_errors():
        client = AsyncAnthropic(
            api_key=api_key or _NO_KEY,
            base_url=url or _ANTHROPIC,
            http_client=lent(http_client),
            max_retries=0,
            **_NO_TRACES,
        )
    return Messages(client)
