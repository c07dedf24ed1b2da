"""The provider for Anthropic's Messages API: Anthropic itself, and compatible servers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from anthropic import AsyncAnthropic, AsyncStream
from anthropic.resources.messages import AsyncMessages
from anthropic.resources.models import AsyncModels

from ..errors import BadStream
from ..events import Event, ListedModel, Request
from ..json_values import counted, limit_of
from ..model_lists import read_page
from ..streaming import decoded
from .decoding import Decoder
from .encoding import NAME
from .errors import provider_errors
from .request import asked_caching, encode_count, encode_request

_TIMEOUT = 10.0
# The most that a page of the list may hold: https://platform.claude.com/docs/en/api/models/list
_PAGE = 1000
# One page holds more models than there are.
_MOST_PAGES = 10


class Messages:
    """A provider on top of an `AsyncAnthropic` client. The caller keeps ownership of the client."""

    name = NAME

    def __init__(self, client: AsyncAnthropic) -> None:
        self._client = client
        # The client imports these on first use, which would be in the event loop.
        self._messages = AsyncMessages(client)
        self._models = AsyncModels(client).with_raw_response

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `Provider.stream`."""
        body = encode_request(request)
        decoder = Decoder(request, thinks="thinking" in body)
        with provider_errors(request):
            async with await self._send(body) as answer, aclosing(decoded(answer.response, decoder)) as events:
                async for event in events:
                    yield event
        for event in decoder.on_end():
            yield event

    async def _send(self, body: Mapping[str, Any]) -> AsyncStream[object]:
        """Return the stream that answers a request body, as JSON events; the same with and without betas.

        The SDK's own method builds objects for each event, which cost more than everything else in a turn. This is the
        SDK's documented way to call other paths:
        https://github.com/anthropics/anthropic-sdk-python#undocumented-endpoints
        """
        sent = {name: value for name, value in body.items() if name != "betas"}
        betas = ",".join(body.get("betas", ()))
        return await self._client.post(
            "/v1/messages",
            cast_to=object,
            body={**sent, "stream": True},
            options={"headers": {"anthropic-beta": betas} if betas else {}},
            stream=True,
            stream_cls=AsyncStream[object],
        )

    def caching(self, request: Request) -> Mapping[str, Any]:
        """See `Provider.caching`: the mark, and the names of the marked blocks."""
        return asked_caching(request)

    async def count_tokens(self, request: Request) -> int:
        """See `CountsTokens`."""
        with provider_errors(request):
            answer = await self._messages.count_tokens(**encode_count(request), timeout=_TIMEOUT)
        return counted(getattr(answer, "input_tokens", None))

    async def list_models(self) -> list[ListedModel]:
        """See `Provider.list_models`."""
        models: dict[str, ListedModel] = {}
        after: dict[str, Any] = {}
        with provider_errors():
            for _ in range(_MOST_PAGES):
                answer = await self._models.list(limit=_PAGE, timeout=_TIMEOUT, **after)
                page = await read_page(answer.http_response.content)
                if page.models and page.models.keys() <= models.keys():
                    raise BadStream("the server lists the same models again and again")
                models |= {name: _listed(name, model) for name, model in page.models.items()}
                if not page.models or page["has_more"] is not True or not isinstance(page["last_id"], str):
                    break
                after = {"after_id": page["last_id"]}
        return [models[name] for name in sorted(models)]


def _listed(name: str, model: object) -> ListedModel:
    return ListedModel(name, limit_of(model, "max_input_tokens"), limit_of(model, "max_tokens"))
