"""The provider for Anthropic's Messages API, for Anthropic itself and compatible servers, using Anthropic's SDK.

The SDK needs an `AsyncClient` of the HTTP package that it runs on: httpx in 0.x, httpx2 in 2.x. Home Assistant uses
httpx up to 2026.10 and httpx2 from 2026.11 on, which fits the SDK version that it installs itself. Another integration
may have installed a different version: `accepts` tells whether a client fits, and an `HttpClient` always does.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from inspect import signature
from typing import Any

from anthropic import AsyncAnthropic, AsyncStream, DefaultAsyncHttpxClient
from anthropic.resources.models import AsyncModels

from ..events import Event, ListedModel, OnBytes, Request, ignore
from ..json_values import member, required_count, token_limit
from ..model_lists import PAGE, ModelPage, read_page, read_pages
from ..streaming import stream_events
from ..transport import bounded_client, post, post_for_stream
from .decoding import MessageDecoder, provider_errors
from .encoding import NAME, cache_breakpoints, encode_count, encode_request

_PATH = "/v1/messages"
_TIMEOUT = 10.0
_ANTHROPIC = "https://api.anthropic.com"
# The SDK requires a key, but servers at home do not.
_NO_KEY = "none"

# The `AsyncClient` class of the HTTP package that the SDK runs on.
HttpClient: Any = next(kind for kind in DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")

# Newer SDK versions record tracing spans. Nothing collects them here, and environment variables control their contents.
_NO_TRACES: dict[str, Any] = (
    {"open_telemetry": False} if "open_telemetry" in signature(AsyncAnthropic).parameters else {}
)


def accepts(http_client: object) -> bool:
    """Return whether the installed SDK runs on this HTTP client."""
    return isinstance(http_client, HttpClient)


def anthropic_messages(url: str | None, api_key: str | None, http_client: Any) -> Messages:
    """Return a provider for Anthropic, or for the compatible server at `url`. Opens no connection.

    `http_client` must be a client that `accepts` approves, otherwise `TypeError` is raised; the caller keeps ownership.
    Raises `BadRequest` for an invalid URL. Each request is tried once: during retries, the user would hear nothing.
    """
    if not accepts(http_client):
        kind = type(http_client)
        raise TypeError(f"the SDK runs on {HttpClient.__module__}, not on {kind.__name__} of {kind.__module__}")
    with provider_errors():
        client = AsyncAnthropic(
            api_key=api_key or _NO_KEY,
            base_url=url or _ANTHROPIC,
            http_client=bounded_client(http_client),
            max_retries=0,
            **_NO_TRACES,
        )
    return Messages(client)


class Messages:
    """A provider based on an `AsyncAnthropic` client. The caller keeps ownership of the client."""

    name = NAME

    def __init__(self, client: AsyncAnthropic) -> None:
        self._client = client
        # The client would import this class on first use, which would block the event loop.
        self._models = AsyncModels(client).with_raw_response

    def stream(self, request: Request, on_bytes: OnBytes = ignore) -> AsyncGenerator[Event]:
        """Send the request and yield the events of the answer, see `Provider.stream`."""
        body = encode_request(request)
        decoder = MessageDecoder(request, thinks="thinking" in body)
        return stream_events(self._answer(body), decoder, provider_errors(request), on_bytes)

    @asynccontextmanager
    async def _answer(self, body: dict[str, Any]) -> AsyncIterator[Any]:
        betas = ",".join(body.pop("betas", ()))
        headers = {"anthropic-beta": betas} if betas else {}
        sent = {**body, "stream": True}
        async with await post_for_stream(self._client, AsyncStream, _PATH, sent, headers=headers) as answer:
            yield answer.response

    def caching(self, request: Request) -> Mapping[str, Any]:
        """Return the cache mark and the names of the blocks that carry it."""
        return cache_breakpoints(request)

    async def count_tokens(self, request: Request) -> int:
        """Return the number of input tokens of a request, as counted by the server. Raises `ProviderError`."""
        with provider_errors(request):
            answer = await post(self._client, f"{_PATH}/count_tokens", encode_count(request), timeout=_TIMEOUT)
        return required_count(member(answer, "input_tokens"))

    async def list_models(self) -> list[ListedModel]:
        """Return the models with their limits, sorted by id. Raises `ProviderError`."""
        with provider_errors():
            models = await read_pages(self._page, lambda page: page["has_more"] is True and page["last_id"])
        return [
            ListedModel(name, token_limit(models[name], "max_input_tokens"), token_limit(models[name], "max_tokens"))
            for name in sorted(models)
        ]

    async def _page(self, after: str) -> ModelPage:
        following: dict[str, Any] = {"after_id": after} if after else {}
        answer = await self._models.list(limit=PAGE, timeout=_TIMEOUT, **following)
        return await read_page(answer.http_response.content)
