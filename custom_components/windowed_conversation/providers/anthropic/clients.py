"""The provider for Anthropic's Messages API, for Anthropic itself and compatible servers, using Anthropic's SDK.

The SDK needs an `AsyncClient` of the HTTP package that it runs on: httpx in 0.x, httpx2 in 2.x. Home Assistant uses
httpx up to 2026.10 and httpx2 from 2026.11 on, which fits the SDK version that it installs itself. Another integration
may have installed a different version: `supports_client` tells whether a client fits, and an `HttpClient` always does.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from inspect import signature
from typing import Any

from anthropic import AsyncAnthropic, AsyncStream, DefaultAsyncHttpxClient
from anthropic.resources.models import AsyncModels

from ..events import Event, ListedModel, OnBytesCallback, Request, ignore_bytes
from ..json_values import PAGE_SIZE, ModelPage, get_member, read_page, read_pages, require_count, token_limit
from ..streaming import stream_events
from ..transport import bounded_client, post_for_stream, post_json
from .capabilities import read_capabilities
from .decoding import MessageDecoder, convert_errors
from .encoding import PROVIDER_NAME, describe_cache_breakpoints, encode_count_request, encode_request

_MESSAGES_PATH = "/v1/messages"
_LOOKUP_TIMEOUT = 10.0
_ANTHROPIC_URL = "https://api.anthropic.com"
# The SDK requires a key, but servers at home do not.
_PLACEHOLDER_KEY = "none"

# The `AsyncClient` class of the HTTP package that the SDK runs on.
HttpClient: Any = next(kind for kind in DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")

# Newer SDK versions record tracing spans. Nothing collects them here, and environment variables control their contents.
_NO_TRACING_OPTIONS: dict[str, Any] = (
    {"open_telemetry": False} if "open_telemetry" in signature(AsyncAnthropic).parameters else {}
)


def supports_client(http_client: object) -> bool:
    """Return whether the installed SDK runs on this HTTP client."""
    return isinstance(http_client, HttpClient)


def create_anthropic_messages(url: str | None, api_key: str | None, http_client: Any) -> MessagesProvider:
    """Return a provider for Anthropic, or for the compatible server at `url`. Opens no connection.

    `http_client` must be a client that `supports_client` approves; the caller keeps ownership. Raises `BadRequest` for
    an invalid URL. Each request is tried once: during retries, the user would hear nothing.
    """
    if not supports_client(http_client):
        kind = type(http_client)
        raise TypeError(f"the SDK runs on {HttpClient.__module__}, not on {kind.__name__} of {kind.__module__}")
    with convert_errors():
        client = AsyncAnthropic(
            api_key=api_key or _PLACEHOLDER_KEY,
            base_url=url or _ANTHROPIC_URL,
            http_client=bounded_client(http_client),
            max_retries=0,
            **_NO_TRACING_OPTIONS,
        )
    return MessagesProvider(client)


class MessagesProvider:
    """A provider based on an `AsyncAnthropic` client. The caller keeps ownership of the client."""

    name = PROVIDER_NAME

    def __init__(self, client: AsyncAnthropic) -> None:
        self._client = client
        # The client would import this class on first use, which would block the event loop.
        self._models = AsyncModels(client).with_raw_response

    def stream(self, request: Request, on_bytes: OnBytesCallback = ignore_bytes) -> AsyncGenerator[Event]:
        """Send the request and yield the events of the answer, see `Provider.stream`."""
        body = encode_request(request)
        return self._stream(request, body, MessageDecoder(request, thinks="thinking" in body), on_bytes)

    async def _stream(
        self, request: Request, body: dict[str, Any], decoder: MessageDecoder, on_bytes: OnBytesCallback
    ) -> AsyncGenerator[Event]:
        """Yield the events of an answer. A paused answer is sent back, and the server continues it."""
        messages = body["messages"]
        while True:
            answer = stream_events(self._open_stream({**body}), decoder, convert_errors(request), on_bytes)
            async with aclosing(answer) as events:
                async for event in events:
                    yield event
            if not decoder.is_paused:
                return
            body["messages"] = [*messages, {"role": "assistant", "content": decoder.resume()}]

    @asynccontextmanager
    async def _open_stream(self, body: dict[str, Any]) -> AsyncIterator[Any]:
        betas = ",".join(body.pop("betas", ()))
        headers = {"anthropic-beta": betas} if betas else {}
        sent = {**body, "stream": True}
        async with await post_for_stream(self._client, AsyncStream, _MESSAGES_PATH, sent, headers=headers) as answer:
            yield answer.response

    def cache_settings(self, request: Request) -> Mapping[str, Any]:
        """Return the cache mark and the names of the blocks that carry it."""
        return describe_cache_breakpoints(request)

    async def count_tokens(self, request: Request) -> int:
        """Return the number of input tokens of a request, as counted by the server. Raises `ProviderError`."""
        with convert_errors(request):
            answer = await post_json(
                self._client, f"{_MESSAGES_PATH}/count_tokens", encode_count_request(request), timeout=_LOOKUP_TIMEOUT
            )
        return require_count(get_member(answer, "input_tokens"))

    async def list_models(self) -> list[ListedModel]:
        """Return the models with their limits and capabilities, sorted by id. Raises `ProviderError`."""
        with convert_errors():
            models = await read_pages(self._fetch_page, lambda page: page["has_more"] is True and page["last_id"])
        return [
            ListedModel(
                name,
                token_limit(model, "max_input_tokens"),
                token_limit(model, "max_tokens"),
                read_capabilities(get_member(model, "capabilities")),
            )
            for name, model in sorted(models.items())
        ]

    async def _fetch_page(self, after: str) -> ModelPage:
        following: dict[str, Any] = {"after_id": after} if after else {}
        answer = await self._models.list(limit=PAGE_SIZE, timeout=_LOOKUP_TIMEOUT, **following)
        return await read_page(answer.http_response.content)
