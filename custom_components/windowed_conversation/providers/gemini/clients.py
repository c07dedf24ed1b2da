"""Clients of Google's SDK: the server and the key."""

from ssl import SSLContext
from typing import Any

import google.auth.aio.credentials  # noqa: F401 - the SDK would import it in the event loop, with its first client
from google.genai import Client
from google.genai.types import HttpOptions

from ..transport import lent
from .generate_content import Gemini

_GOOGLE = "https://generativelanguage.googleapis.com/"
# The newest SDK would ask for `v1`, the oldest for `v1beta`, and both for what the environment says.
_API_VERSION = "v1beta"
# For an empty key the SDK looks for one in the environment; a server at home asks for none.
_NO_KEY = "none"
_MILLISECONDS = 1000


def gemini(
    url: str | None, api_key: str | None, http_client: Any, ssl_context: SSLContext, *, timeout: float | None = None
) -> Gemini:
    """Return a provider for Google's own API, or for a compatible server. Reads no file and opens no connection.

    `http_client` is an httpx or an httpx2 client: every supported version of the SDK accepts either. The caller keeps
    ownership. `ssl_context` is for clients that the SDK builds and never uses: without it the SDK reads the
    certificates three times. Each request is tried once. `timeout` is in seconds between two parts of an answer; the
    SDK also sends it to the server, which applies it to the whole answer, so turns do not use it.
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
