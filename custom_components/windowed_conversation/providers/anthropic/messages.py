"""The format of Anthropic's Messages API: Anthropic itself, and servers that are compatible.

What joins the parts: a request is written in `request`, an answer read in `decoding`, errors are
mapped in `errors`; who builds the client, and with which key, is not decided here.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from anthropic import AsyncAnthropic, AsyncStream
from anthropic.resources.messages import AsyncMessages
from anthropic.resources.models import AsyncModels

from ..errors import BadStream
from ..events import Event, ListedModel, Request
from ..whole_answers import late_events
from .decoding import Decoder
from .encoding import NAME
from .errors import provider_errors
from .request import asked_caching, encode_count, encode_request

_TIMEOUT = 10.0
# The most that a page of the list may hold: https://platform.claude.com/docs/en/api/models/list
_PAGE = 1000


class Messages:
    """A provider over an `AsyncAnthropic` client, which stays its owner's."""

    name = NAME

    def __init__(self, client: AsyncAnthropic) -> None:
        self._client = client
        # The client imports these where they are first asked for, which would be in the event loop.
        self._messages = AsyncMessages(client)
        self._models = AsyncModels(client)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `Provider.stream`."""
        body = encode_request(request)
        decoder = Decoder(request, thinks="thinking" in body)
        with provider_errors(request):
            answer = await self._send(body)
            async with answer:
                events = aiter(answer)
                async for sent in events:
                    for event in decoder.decode(sent):
                        yield event
                    if decoder.stopped:
                        break
                while decoder.stopped and (late := await late_events(events, decoder.decode)):
                    for event in late:
                        yield event
        for event in decoder.end():
            yield event

    async def _send(self, body: Mapping[str, Any]) -> AsyncStream[object]:
        """Return the stream that answers a body, its events as plain JSON, the same with betas as without.

        The SDK's own method makes objects of each event, which cost more than all the rest of it. This is what its
        documentation has for paths that it does not know:
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
        """See `Provider.caching`: the mark, and the names of the blocks that bear it."""
        return asked_caching(request)

    async def count_tokens(self, request: Request) -> int:
        """See `CountsTokens`."""
        with provider_errors(request):
            counted = await self._messages.count_tokens(**encode_count(request), timeout=_TIMEOUT)
        tokens = getattr(counted, "input_tokens", None)
        if not isinstance(tokens, int):
            raise BadStream("the server does not count tokens")
        return tokens

    async def list_models(self) -> list[ListedModel]:
        """See `Provider.list_models`."""
        models: dict[str, ListedModel] = {}
        with provider_errors():
            try:
                page = await self._models.list(limit=_PAGE, timeout=_TIMEOUT)
                while new := {model.id: model for model in _listed(page)}:
                    if new.keys() <= models.keys():
                        raise BadStream("the server lists the same models again and again")
                    models |= new
                    if not page.has_next_page():
                        break
                    page = await page.get_next_page()
            except (AttributeError, TypeError, ValueError) as err:
                # the SDK takes any text and any JSON for a page, and then finds that it is none
                raise BadStream("the server does not list models") from err
        return [models[model_id] for model_id in sorted(models)]


def _listed(page: object) -> list[ListedModel]:
    """Return the models of a page; raises `BadStream` where it is none."""
    models = getattr(page, "data", None)
    if not isinstance(models, list) or not all(isinstance(getattr(m, "id", None), str) for m in models):
        raise BadStream("the server does not list models")
    return [ListedModel(m.id, _limit(m, "max_input_tokens"), _limit(m, "max_tokens")) for m in models]


def _limit(model: object, name: str) -> int | None:
    limit = getattr(model, name, None)
    return limit if isinstance(limit, int) and limit > 0 else None
