"""What both OpenAI formats share as providers: one request, the stream that answers it, and the list of models.

How a request is written and what an event means is each format's own.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from openai import AsyncOpenAI, AsyncStream
from openai.resources.models import AsyncModels

from ..errors import BadStream
from ..events import Event, ListedModel, Request
from ..sizes import named_context_tokens
from ..whole_answers import late_events
from .errors import provider_errors
from .requests import CACHE_PARAMETERS, caching_parameters

_MODEL_LIST_TIMEOUT = 10.0


class Decoder(Protocol):
    """Reads one answer, event by event."""

    @property
    def is_whole(self) -> bool:
        """Return whether the terminal marker has been read."""
        ...

    def on_event(self, event: Any) -> Iterable[Event]:
        """Return what an event means. It is JSON as the server wrote it: any value may be of any type, or missing."""
        ...

    def on_end(self) -> Iterator[Event]:
        """Yield the usage and the terminal event; raises what the end of the stream means."""
        ...


class OpenAIFormat(ABC):
    """A provider over an `AsyncOpenAI` client, which stays its owner's.

    `headers` go out with every request. `cache_parameters` are those of the prompt cache that the server knows.
    """

    name: str

    def __init__(
        self,
        client: AsyncOpenAI,
        *,
        headers: Mapping[str, Any] | None = None,
        cache_parameters: Collection[str] = CACHE_PARAMETERS,
    ) -> None:
        self._headers = dict(headers or {})
        self._cache_parameters = cache_parameters
        self._client = client
        # The client imports this where it is first asked for, which would be in the event loop.
        self._models = AsyncModels(client)

    @abstractmethod
    async def _send(self, request: Request) -> AsyncStream[object]:
        """Send the request and return the SDK's stream."""

    async def _post(self, client: AsyncOpenAI, path: str, body: Mapping[str, Any]) -> AsyncStream[object]:
        """Return the stream that answers a body, its events as plain JSON.

        The SDK's own method would look the whole body up in its types and make objects of each event, which costs
        several times what all the rest of it does. This is what its documentation has for paths that it does not know:
        https://github.com/openai/openai-python#undocumented-endpoints
        """
        return await client.post(
            path,
            cast_to=object,
            body=body,
            options={"headers": self._headers},
            stream=True,
            stream_cls=AsyncStream[object],
        )

    @abstractmethod
    def _decoder(self, request: Request) -> Decoder:
        """Return what reads the answer."""

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `Provider.stream`."""
        decoder = self._decoder(request)
        decode = partial(_decoded, decoder)
        with provider_errors(request):
            answer = await self._send(request)
            async with answer:
                events = aiter(answer)
                async for event in events:
                    for decoded in decode(event):
                        yield decoded
                    if decoder.is_whole:
                        break
                while decoder.is_whole and (late := await late_events(events, decode)):
                    for decoded in late:
                        yield decoded
        for decoded in decoder.on_end():
            yield decoded

    def caching(self, request: Request) -> Mapping[str, Any]:
        """See `Provider.caching`."""
        return caching_parameters(request, self._cache_parameters)

    async def list_models(self) -> list[ListedModel]:
        """See `Provider.list_models`."""
        with provider_errors():
            try:
                page = await self._models.list(timeout=_MODEL_LIST_TIMEOUT, extra_headers=self._headers)
            except AttributeError as err:
                # the SDK takes any text and any JSON for a page, and then finds that it is none
                raise BadStream("the server does not list models") from err
        models = getattr(page, "data", None)
        if not isinstance(models, list) or not all(isinstance(getattr(m, "id", None), str) for m in models):
            raise BadStream("the server does not list models")
        listed = [ListedModel(model.id, _context_tokens(model)) for model in models]
        return sorted(listed, key=lambda model: model.id)


def _context_tokens(model: Any) -> int | None:
    """Return the size that a compatible server's list names, which the SDK keeps beside the fields that it knows."""
    return named_context_tokens(getattr(model, "model_extra", None))


def _decoded(decoder: Decoder, event: Any) -> Sequence[Event]:
    try:
        return tuple(decoder.on_event(event))
    except (AttributeError, LookupError, TypeError, ValueError) as err:
        raise BadStream(f"an event is not of the expected form ({type(err).__name__})") from err
