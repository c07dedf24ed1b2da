"""The Gemini format: `streamGenerateContent`, one whole request each time, never a session of the SDK's.

The SDK is asked for everything but the answers themselves: it reads a stream without limits, and makes objects of every
value of an event in the event loop, which costs several times what all the rest of it does.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from google.genai.errors import APIError
from google.genai.models import AsyncModels
from google.genai.types import CountTokensConfig, HttpOptions, ListModelsConfig, Model

from ..errors import BadStream
from ..events import Event, ListedModel, Request
from ..json_values import figure
from ..sizes import fills_context
from ..streaming import decoded, read_any_json
from .decoding import ChunkDecoder
from .encoding import encode_body, encode_prompt
from .errors import provider_errors
from .residue import NAME

_SHORT_ANSWER = HttpOptions(timeout=10_000)  # milliseconds
_MODELS_PER_PAGE = 1000
_MOST_MODELS = 10_000
_GENERATES = "generateContent"

# The SDK wants contents, in the place of which its options then put the conversation's.
_PLACE = " "


class Gemini:
    """A provider over the models of a client of Google's SDK, which stays its owner's."""

    name = NAME

    def __init__(
        self, models: AsyncModels, http_client: Any, url: str, api_key: str, *, timeout: float | None = None
    ) -> None:
        self._models = models
        self._http_client = http_client
        self._url = url
        self._headers = {"x-goog-api-key": api_key}
        self._timeout = timeout

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `Provider.stream`."""
        decoder = ChunkDecoder(request)
        with provider_errors(lambda: fills_context(request)):
            async with self._answer(request) as answer, aclosing(decoded(answer, decoder)) as events:
                async for event in events:
                    yield event
        for event in decoder.on_end():
            yield event

    @asynccontextmanager
    async def _answer(self, request: Request) -> AsyncIterator[Any]:
        """Return a context with the response to a request; raises `APIError`."""
        url = f"{self._url}/{quote(_path(request.model))}:streamGenerateContent?alt=sse"
        client = self._http_client
        asked = client.build_request(
            "POST", url, json=encode_body(request), headers=self._headers, timeout=self._timeout
        )
        answer = await client.send(asked, stream=True)
        try:
            if answer.status_code >= HTTPStatus.MULTIPLE_CHOICES:
                raise APIError(answer.status_code, await _error_body(answer), answer)
            yield answer
        finally:
            await answer.aclose()

    def caching(self, request: Request) -> Mapping[str, Any]:
        """See `Provider.caching`: the implicit cache finds what begins alike without being asked."""
        return {}

    async def list_models(self) -> list[ListedModel]:
        """See `Provider.list_models`; models that do not generate text are left out."""
        with provider_errors():
            config = ListModelsConfig(page_size=_MODELS_PER_PAGE, http_options=_SHORT_ANSWER)
            models: list[Model] = []
            async for model in await self._models.list(config=config):
                models.append(model)
                if len(models) > _MOST_MODELS:
                    raise BadStream("the server lists too many models")
        if not models:
            # Google always lists some; the SDK takes any JSON object for a page, and one without models for the last
            raise BadStream("the server does not list models")
        return sorted((_listed(model) for model in models if _generates(model)), key=lambda each: each.id)

    async def count_tokens(self, request: Request) -> int:
        """See `CountsTokens.count_tokens`."""
        # the SDK refuses a system instruction and tools with this API, which takes them in a request inside of the
        # request, and then no contents beside it: https://ai.google.dev/api/tokens#request-body
        inner = {"model": _path(request.model), **encode_prompt(request)}
        body = {"contents": [], "generateContentRequest": inner}
        with provider_errors(lambda: fills_context(request)):
            options = HttpOptions(timeout=_SHORT_ANSWER.timeout, extra_body=body)
            response = await self._models.count_tokens(
                model=request.model, contents=_PLACE, config=CountTokensConfig(http_options=options)
            )
        tokens = figure(response.total_tokens)
        if tokens is None:
            raise BadStream("the server does not count tokens")
        return tokens


async def _error_body(answer: Any) -> Any:
    """Return what an error says of itself; a proxy's may be no JSON."""
    body = await answer.aread()
    try:
        return await read_any_json(body)
    except ValueError, RecursionError:
        return {}


def _path(model: str) -> str:
    return model if "/" in model else f"models/{model}"


def _generates(model: Model) -> bool:
    return model.supported_actions is None or _GENERATES in model.supported_actions


def _listed(model: Model) -> ListedModel:
    if not model.name:
        raise BadStream("a listed model has no name")
    return ListedModel(model.name.removeprefix("models/"), model.input_token_limit, model.output_token_limit)
