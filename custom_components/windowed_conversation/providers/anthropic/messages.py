"""The provider for Anthropic's Messages API: Anthropic itself, and compatible servers."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from anthropic import AsyncAnthropic, AsyncStream
from anthropic.resources.models import AsyncModels

from ..errors import BadStream
from ..events import Event, ListedModel, Request
from ..json_values import counted, limit_of, member
from ..model_lists import read_page
from ..sdk import post, post_for_stream
from ..streaming import answered
from .decoding import MessageDecoder
from .encoding import NAME
from .errors import provider_errors
from .request import asked_caching, encode_count, encode_request

_PATH = "/v1/messages"
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
        # The client imports this on first use, which would be in the event loop.
        self._models = AsyncModels(client).with_raw_response

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Ask the model and yield the events of its answer, see `Provider.stream`."""
        body = encode_request(request)
        return answered(
            self._answer(body), MessageDecoder(request, thinks="thinking" in body), provider_errors(request)
        )

    @asynccontextmanager
    async def _answer(self, body: dict[str, Any]) -> AsyncIterator[Any]:
        betas = ",".join(body.pop("betas", ()))
        headers = {"anthropic-beta": betas} if betas else {}
        sent = {**body, "stream": True}
        async with await post_for_stream(self._client, AsyncStream, _PATH, sent, headers=headers) as answer:
            yield answer.response

    def caching(self, request: Request) -> Mapping[str, Any]:
        """Return the cache mark and the names of the marked blocks."""
        return asked_caching(request)

    async def count_tokens(self, request: Request) -> int:
        """Return the input tokens of a request by the server's own count. Raises `ProviderError`."""
        with provider_errors(request):
            answer = await post(self._client, f"{_PATH}/count_tokens", encode_count(request), timeout=_TIMEOUT)
        return counted(member(answer, "input_tokens"))

    async def list_models(self) -> list[ListedModel]:
        """Return the models with their limits, sorted by id. Raises `ProviderError`."""
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
