"""The provider for Gemini. Its requests need none of Google's packages, see docs/decisions/plain-json.md."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
import importlib
from operator import attrgetter, itemgetter
from ssl import SSLContext
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..errors import BadStream
from ..events import Event, ListedModel, OnBytesCallback, Request, ignore_bytes
from ..json_values import PAGE_SIZE, ModelPage, get_member, read_page, read_pages, require_count, token_limit
from ..streaming import read_any_json, stream_events
from ..transport import bounded_client
from .decoding import GeminiDecoder, GoogleError, convert_errors
from .encoding import PROVIDER_NAME, encode_body, encode_prompt

if TYPE_CHECKING:
    from .sdk import GoogleSdk

# The timeout in seconds between two parts of a model list.
_LIST_TIMEOUT = 10.0
_GOOGLE_URL = "https://generativelanguage.googleapis.com/"

_API_VERSION = "v1beta"

# A server at home needs no key.
_DUMMY_KEY = "none"

_SDK_MODULE = f"{__package__}.sdk"


async def _import_in_thread(name: str) -> ModuleType:
    return await asyncio.to_thread(importlib.import_module, name)


class GeminiProvider:
    """A provider for Google's own API, or for a compatible server at another URL. Each request is tried once."""

    name = PROVIDER_NAME

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        http_client: Any,
        ssl_context: SSLContext,
        *,
        import_module: Callable[[str], Awaitable[ModuleType]] = _import_in_thread,
        timeout: float | None = None,
    ) -> None:
        """Create the provider. Reads no file and opens no connection.

        `http_client` is an httpx or httpx2 client. The caller keeps ownership of it.
        """
        address, key, self._http_client = url or _GOOGLE_URL, api_key or _DUMMY_KEY, bounded_client(http_client)
        self._url = f"{address.rstrip('/')}/{_API_VERSION}"
        self._headers = {"x-goog-api-key": key}
        # Imports the SDK outside of the event loop.
        self._import_module = import_module
        self._sdk_arguments: tuple[Any, ...] = address, _API_VERSION, key, self._http_client, ssl_context
        self._sdk: GoogleSdk | None = None
        # The maximum time in seconds between two parts of an answer.
        self._timeout = timeout

    def stream(self, request: Request, on_bytes: OnBytesCallback = ignore_bytes) -> AsyncGenerator[Event]:
        """Send the request and yield the events of the answer, see `Provider.stream`."""
        return stream_events(self._open_stream(request), GeminiDecoder(request), convert_errors(request), on_bytes)

    @asynccontextmanager
    async def _open_stream(self, request: Request) -> AsyncIterator[Any]:
        url = f"{self._url}/{quote(_model_path(request.model))}:streamGenerateContent?alt=sse"
        async with self._send("POST", url, json=encode_body(request), timeout=self._timeout) as answer:
            yield answer

    @asynccontextmanager
    async def _send(self, method: str, url: str, **options: Any) -> AsyncIterator[Any]:
        """Send a request and yield the open response. Raises `GoogleError`."""
        request = self._http_client.build_request(method, url, headers=self._headers, **options)
        answer = await self._http_client.send(request, stream=True)
        try:
            if answer.status_code >= HTTPStatus.MULTIPLE_CHOICES:
                raise GoogleError(answer.status_code, await _read_error_body(answer), answer.headers)
            yield answer
        finally:
            await answer.aclose()

    def cache_settings(self, request: Request) -> Mapping[str, Any]:
        """Return an empty mapping: the implicit cache needs no parameters."""
        return {}

    async def list_models(self) -> list[ListedModel]:
        """Return the models that generate text, sorted by id. Raises `ProviderError`."""
        with convert_errors():
            models = await read_pages(self._fetch_page, itemgetter("nextPageToken"))
        listed = [
            ListedModel(
                name.removeprefix("models/"),
                token_limit(model, "inputTokenLimit"),
                token_limit(model, "outputTokenLimit"),
            )
            for name, model in models.items()
            if _supports_generation(model)
        ]
        return sorted(listed, key=attrgetter("id"))

    async def _fetch_page(self, token: str) -> ModelPage:
        """Return a page of the model list. Raises `GoogleError`."""
        query = {"pageSize": PAGE_SIZE, **({"pageToken": token} if token else {})}
        async with self._send("GET", f"{self._url}/models", params=query, timeout=_LIST_TIMEOUT) as answer:
            return await read_page(await answer.aread(), "models", "name")

    async def count_tokens(self, request: Request) -> int:
        """Return the number of input tokens of a request, as counted by the server. Raises `ProviderError`."""
        # The API accepts a system instruction and tools in a nested request only, and then no contents beside it:
        # https://ai.google.dev/api/tokens#request-body
        inner = {"model": _model_path(request.model), **encode_prompt(request)}
        body = {"contents": [], "generateContentRequest": inner}
        sdk = await self._get_sdk()
        with convert_errors(request):
            return require_count(await sdk.count_tokens(request.model, body))

    def send_unstreamed(self, request: Request) -> AsyncGenerator[Event]:
        """Send the request through Google's SDK, and yield the events of its complete answer."""
        return stream_events(self._ask_whole(request), GeminiDecoder(request), convert_errors(request), ignore_bytes)

    @asynccontextmanager
    async def _ask_whole(self, request: Request) -> AsyncIterator[_InMemoryBody]:
        sdk = await self._get_sdk()
        yield _InMemoryBody(await sdk.generate_content(request.model, encode_body(request)))

    async def _get_sdk(self) -> GoogleSdk:
        """Return the client of Google's SDK, which is imported on the first call."""
        if self._sdk is None:
            module: Any = await self._import_module(_SDK_MODULE)
            create: Callable[..., GoogleSdk] = module.GoogleSdk
            self._sdk = await asyncio.to_thread(create, *self._sdk_arguments)
        return self._sdk


@dataclass(frozen=True, slots=True)
class _InMemoryBody:
    """A body that is already in memory, with the reading interface of a response body."""

    content: bytes

    async def aiter_raw(self) -> AsyncGenerator[bytes]:
        yield self.content


async def _read_error_body(answer: Any) -> Any:
    """Return the JSON body of an error response, or an empty object if it is not JSON, as from a proxy."""
    body = await answer.aread()
    try:
        return await read_any_json(body)
    except BadStream, ValueError, RecursionError:
        return {}


def _model_path(model: str) -> str:
    return model if "/" in model else f"models/{model}"


def _supports_generation(model: object) -> bool:
    actions = get_member(model, "supportedGenerationMethods")
    return not isinstance(actions, list) or "generateContent" in actions
