"""Which path is which endpoint in which wire format."""

from collections.abc import Iterator

from aiohttp import web

from . import responses
from .chat_completions import ChatCompletions, models_body
from .endpoints import Endpoints, Wires
from .responses import Responses


def model_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    """Yield the routes of every format."""
    yield from _openai(endpoints)


def _always(make: type[ChatCompletions | Responses]) -> Wires:
    return lambda _http: make()


def _openai(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    chat, answers = _always(ChatCompletions), _always(Responses)
    yield web.get("/v1/models", endpoints.lists(chat, models_body))
    yield web.post("/v1/chat/completions", endpoints.answers(chat))
    yield web.post("/v1/responses", endpoints.answers(answers))
    yield web.post("/v1/responses/input_tokens", endpoints.documents(answers, responses.count_body))
    yield web.post("/v1/responses/compact", endpoints.documents(answers, responses.compaction_body))
