"""What both OpenAI formats share as providers: sending a request, its stream, and the model list."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from typing import Any

from openai import AsyncOpenAI, AsyncStream
from openai.resources.models import AsyncModels

from ..events import Event, ListedModel, Request
from ..model_lists import read_page
from ..sizes import named_context_tokens
from ..streaming import Decoder, decoded
from .errors import provider_errors
from .requests import CACHE_PARAMETERS, caching_parameters

_MODEL_LIST_TIMEOUT = 10.0


class OpenAIFormat(ABC):
    """A provider on top of an `AsyncOpenAI` client. The caller keeps ownership of the client.

    `headers` are sent with every request. `cache_parameters` are the prompt cache parameters that the server knows.
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
        # The client imports this on first use, which would be in the event loop.
        self._models = AsyncModels(client).with_raw_response

    @abstractmethod
    async def _send(self, request: Request) -> AsyncStream[object]:
        """Send the request and return the SDK's stream."""

    async def _post(self, client: AsyncOpenAI, path: str, body: Mapping[str, Any]) -> AsyncStream[object]:
        """Return the stream that answers a request body, as JSON events.

        The SDK's own method looks the whole body up in its types and builds objects for each event, which costs several
        times what everything else in a turn does. This is the SDK's documented way to call other paths:
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
        """Return the decoder for the answer."""

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `Provider.stream`."""
        decoder = self._decoder(request)
        with provider_errors(request):
            async with await self._send(request) as answer, aclosing(decoded(answer.response, decoder)) as events:
                async for event in events:
                    yield event
        for event in decoder.on_end():
            yield event

    def caching(self, request: Request) -> Mapping[str, Any]:
        """See `Provider.caching`."""
        return caching_parameters(request, self._cache_parameters)

    async def list_models(self) -> list[ListedModel]:
        """See `Provider.list_models`."""
        with provider_errors():
            answer = await self._models.list(timeout=_MODEL_LIST_TIMEOUT, extra_headers=self._headers)
            models = (await read_page(answer.http_response.content)).models
        return [ListedModel(model_id, named_context_tokens(model)) for model_id, model in models.items()]
