"""The provider for Gemini. Its requests need none of Google's packages, see docs/decisions/plain-json.md."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from ..errors import BadStream
from ..events import Event, ListedModel, OnBytesCallback, Provider, Request, ignore_bytes
from ..json_values import PAGE_SIZE, get_member, read_models, require_count, token_limit
from ..streaming import read_any_json, stream_events
from ..transport import bounded_client
from .decoding import GeminiDecoder, GoogleError, convert_errors
from .encoding import PROVIDER_NAME, encode_body, encode_prompt

# The timeout in seconds between two parts of a model list or a count.
_LOOKUP_TIMEOUT = 10.0
_GOOGLE_URL = "https://generativelanguage.googleapis.com/"

_API_VERSION = "v1beta"

# A server at home needs no key.
_DUMMY_KEY = "none"


class GeminiProvider(Provider):
    """A provider for Google's own API, or for a compatible server at another URL. Each request is tried once."""

    name = PROVIDER_NAME

    def __init__(self, url: str | None, api_key: str | None, http_client: Any, *, timeout: float | None = None) -> None:
        """Create the provider. Reads no file and opens no connection.

        `http_client` is an httpx or httpx2 client. The caller keeps ownership of it.
        """
        self._http_client = bounded_client(http_client)
        self._url = f"{(url or _GOOGLE_URL).rstrip('/')}/{_API_VERSION}"
        self._headers = {"x-goog-api-key": api_key or _DUMMY_KEY}
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

    async def list_models(self) -> list[ListedModel]:
        """Return the models that generate text, sorted by id. Raises `ProviderError`."""
        with convert_errors():
            url = f"{self._url}/models"
            async with self._send("GET", url, params={"pageSize": PAGE_SIZE}, timeout=_LOOKUP_TIMEOUT) as answer:
                models = await read_models(await answer.aread(), "models", "name")
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

    async def count_tokens(self, request: Request) -> int:
        """Return the number of input tokens of a request, as counted by the server. Raises `ProviderError`."""
        # The API accepts a system instruction and tools in a nested request only, and then no contents beside it:
        # https://ai.google.dev/api/tokens#request-body
        inner = {"model": _model_path(request.model), **encode_prompt(request)}
        url = f"{self._url}/{quote(_model_path(request.model))}:countTokens"
        with convert_errors(request):
            body = {"generateContentRequest": inner}
            async with self._send("POST", url, json=body, timeout=_LOOKUP_TIMEOUT) as answer:
                return require_count(get_member(await read_any_json(await answer.aread()), "totalTokens"))


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
