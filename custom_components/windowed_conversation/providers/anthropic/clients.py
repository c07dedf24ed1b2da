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

from ..encoder import drop_none
from ..events import Event, ListedModel, OnBytesCallback, Provider, Request, ignore_bytes
from ..json_values import PAGE_SIZE, get_member, read_models, require_count, token_limit
from ..models import Effort, ReasoningStyle
from ..streaming import stream_events
from ..transport import bounded_client, post_for_stream, post_json
from .decoding import MessageDecoder, convert_errors
from .encoding import PROVIDER_NAME, describe_cache_breakpoints, encode_count_request, encode_request

_MESSAGES_PATH = "/v1/messages"
_LOOKUP_TIMEOUT = 10.0
_ANTHROPIC_URL = "https://api.anthropic.com"
_EFFORTS = (Effort.LOW, Effort.MEDIUM, Effort.HIGH)
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
    with convert_errors():
        client = AsyncAnthropic(
            api_key=api_key or _PLACEHOLDER_KEY,
            base_url=url or _ANTHROPIC_URL,
            http_client=bounded_client(http_client),
            max_retries=0,
            **_NO_TRACING_OPTIONS,
        )
    return MessagesProvider(client)


class MessagesProvider(Provider):
    """A provider based on an `AsyncAnthropic` client. The caller keeps ownership of the client."""

    name = PROVIDER_NAME
    loads_tools = True

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
            answer = await self._models.list(limit=PAGE_SIZE, timeout=_LOOKUP_TIMEOUT)
            models = await read_models(answer.http_response.content)
        return [
            ListedModel(
                name,
                token_limit(model, "max_input_tokens"),
                token_limit(model, "max_tokens"),
                _read_capabilities(get_member(model, "capabilities")),
            )
            for name, model in models.items()
        ]


def _read_capabilities(stated: object) -> dict[str, Any]:
    """Return the facts of a `ModelProfile` that the capabilities of a model state."""
    # A model that refuses images or PDFs gets neither.
    pictures = [_is_supported(stated, name) for name in ("image_input", "pdf_input")]
    facts = drop_none(
        images=False if False in pictures else pictures[0],
        context_editing=_is_supported(stated, "context_management", "clear_tool_uses_20250919"),
        answer_schemas=_is_supported(stated, "structured_outputs"),
        web_search=_is_supported(stated, "server_tools", "web_search"),
    )
    if _is_supported(stated, "thinking") is False:
        return {**facts, "reasoning": ReasoningStyle.NONE}
    efforts = tuple([each for each in _EFFORTS if _is_supported(stated, "effort", each)])
    if efforts and _is_supported(stated, "thinking", "types", "adaptive"):
        style = ReasoningStyle.ADAPTIVE
    elif _is_supported(stated, "thinking", "types", "enabled"):
        style, efforts = ReasoningStyle.BUDGET, _EFFORTS
    else:
        return facts
    # A model does not think unless the request enables it.
    return {**facts, "reasoning": style, "efforts": (Effort.NONE, *efforts), "default": Effort.NONE}


def _is_supported(stated: object, *path: str) -> bool | None:
    """Return whether the capability at a path is supported, or None if that is not stated."""
    for name in path:
        stated = get_member(stated, name)
    value = get_member(stated, "supported")
    return value if isinstance(value, bool) else None
