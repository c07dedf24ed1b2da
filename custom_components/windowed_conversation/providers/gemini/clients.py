"""Clients of Google's SDK: which server is asked, and with which key."""

from ssl import SSLContext
from typing import Any

# The SDK asks for this module by its name when a client is built, which would be an import in the event loop.
import google.auth.aio.credentials  # noqa: F401
from google.genai import Client
from google.genai.types import HttpOptions

from ..transport import lent
from .generate_content import Gemini

_GOOGLE = "https://generativelanguage.googleapis.com/"
# The newest SDK would ask for `v1`, the oldest for `v1beta`, and both for what the environment says.
_API_VERSION = "v1beta"
# The SDK takes an empty key for none and looks for one in the environment; a server at home asks for none.
_NO_KEY = "none"
_MILLISECONDS = 1000


def gemini(
    url: str | None, api_key: str | None, http_client: Any, ssl_context: SSLContext, *, timeout: float | None = None
) -> Gemini:
    """Return a provider for Google's own API, or for a server at a URL that speaks it; reads no file, opens nothing.

    `http_client` is an httpx or an httpx2 client, every supported version of the SDK takes either, and stays its
    owner's. `ssl_context` is for the clients of its own that the SDK builds and never uses: without one it reads the
    certificates three times. There is one attempt for each request. `timeout` is how many seconds a server may be
    silent; the SDK tells the server as well, which takes it for the whole answer, so a turn does without.
    """
    address, key, client = url or _GOOGLE, api_key or _NO_KEY, lent(http_client)
    options = HttpOptions(
        base_url=address,
        api_version=_API_VERSION,
        timeout=None if timeout is None else round(timeout * _MILLISECONDS),
        httpx_async_client=client,
        client_args={"verify": ssl_context},
        async_client_args={"verify": ssl_context, "ssl": ssl_context},
    )
    models = Client(vertexai=False, api_key=key, http_options=options).aio.models
    return Gemini(models, client, f"{address.rstrip('/')}/{_API_VERSION}", key, timeout=timeout)
