"""Clients for Gemini: the server, the key, and Google's SDK, which is imported when something first needs it."""

import asyncio
from collections.abc import Awaitable, Callable
import importlib
from ssl import SSLContext
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..transport import bounded_client
from .generate_content import Gemini

if TYPE_CHECKING:
    from .sdk import GoogleSdk

_GOOGLE = "https://generativelanguage.googleapis.com/"
# The newest SDK would ask for `v1`, the oldest for `v1beta`, and both for one that an environment variable names.
_API_VERSION = "v1beta"
# For an empty key the SDK looks for one in the environment; a server at home asks for none.
_NO_KEY = "none"

_SDK = f"{__package__}.sdk"

type Import = Callable[[str], Awaitable[ModuleType]]


async def _in_a_thread(name: str) -> ModuleType:
    return await asyncio.to_thread(importlib.import_module, name)


def gemini(
    url: str | None,
    api_key: str | None,
    http_client: Any,
    ssl_context: SSLContext,
    *,
    import_module: Import = _in_a_thread,
    timeout: float | None = None,
) -> Gemini:
    """Return a provider for Google's own API, or for a compatible server. Reads no file and opens no connection.

    `http_client` is an httpx or an httpx2 client. The caller keeps ownership. `ssl_context` is for the SDK, which
    `import_module` imports outside of the event loop. Each request is tried once. `timeout` is in seconds between two
    parts of an answer.
    """
    address, key, client = url or _GOOGLE, api_key or _NO_KEY, bounded_client(http_client)

    async def connect() -> GoogleSdk:
        sdk: Any = await import_module(_SDK)
        return await asyncio.to_thread(sdk.GoogleSdk, address, _API_VERSION, key, client, ssl_context)

    return Gemini(client, f"{address.rstrip('/')}/{_API_VERSION}", key, connect, timeout=timeout)
