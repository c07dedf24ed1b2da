"""Which path is which endpoint in which wire format."""

from collections.abc import Callable, Iterator
from typing import Any

from aiohttp import web

from . import anthropic_messages, anthropic_models, gemini_content, gemini_models, responses
from .anthropic_messages import AnthropicMessages
from .azure import AzureChat, AzureResponses, Gateway, azure_models
from .chat_completions import ChatCompletions, models_body
from .endpoints import Endpoints, Wires
from .gemini_content import GeminiContent
from .responses import Responses
from .state import State
from .wire import WireFormat


def model_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    """Yield the routes of every format."""
    yield from _openai(endpoints)
    yield from _anthropic(endpoints)
    yield from _gemini(endpoints)
    yield from _azure(endpoints)


def _always(make: type[ChatCompletions | Responses]) -> Wires:
    return lambda _http: make()


def _openai(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    chat, answers = _always(ChatCompletions), _always(Responses)
    yield web.get("/v1/models", endpoints.lists(_of_models, _models))
    yield web.post("/v1/chat/completions", endpoints.answers(chat))
    yield web.post("/v1/responses", endpoints.answers(answers))
    yield web.post("/v1/responses/input_tokens", endpoints.documents(answers, responses.count_body))
    yield web.post("/v1/responses/compact", endpoints.documents(answers, responses.compaction_body))


def _anthropic(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.post("/v1/messages", endpoints.answers(_messages))
    yield web.post("/v1/messages/count_tokens", endpoints.documents(_messages, anthropic_messages.count_body))


def _messages(http: web.Request) -> AnthropicMessages:
    named = http.headers.getall("anthropic-beta", [])
    return AnthropicMessages(frozenset(beta.strip() for header in named for beta in header.split(",")))


def _of_models(http: web.Request) -> WireFormat:
    """Return the format of the list: OpenAI and Anthropic have theirs under one path."""
    return _messages(http) if _is_anthropics(http) else ChatCompletions()


def _models(http: web.Request, state: State) -> dict[str, Any]:
    return anthropic_models.model_list(http, state) if _is_anthropics(http) else models_body(http, state)


def _is_anthropics(http: web.Request) -> bool:
    return "anthropic-version" in http.headers


def _gemini(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    models = "/v1beta/models"
    yield web.get(models, endpoints.lists(_contents, gemini_models.model_list))
    yield web.get(models + "/{model}", endpoints.lists(_contents, gemini_models.model))
    yield web.post(models + "/{model}:generateContent", endpoints.answers(_contents))
    yield web.post(models + "/{model}:streamGenerateContent", endpoints.answers(_streamed_contents))
    count = endpoints.documents(_contents, gemini_content.count_body)
    yield web.post(models + "/{model}:countTokens", count)


def _contents(http: web.Request) -> GeminiContent:
    return GeminiContent(http.match_info.get("model", ""), key=http.query.get("key"))


def _streamed_contents(http: web.Request) -> GeminiContent:
    return GeminiContent(http.match_info["model"], stream=True, key=http.query.get("key"))


def _azure(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.get("/openai/v1/models", endpoints.lists(_azure_chat(_v1), azure_models))
    yield web.post("/openai/v1/chat/completions", endpoints.answers(_azure_chat(_v1)))
    yield web.post("/openai/v1/responses", endpoints.answers(_azure_responses(_v1)))
    yield web.get("/openai/models", endpoints.lists(_azure_chat(_classic), azure_models))
    classic_chat = "/openai/deployments/{deployment}/chat/completions"
    yield web.post(classic_chat, endpoints.answers(_azure_chat(_classic)))
    yield web.post("/openai/responses", endpoints.answers(_azure_responses(_classic)))


type _Gateways = Callable[[web.Request], Gateway]


def _azure_chat(gateway: _Gateways) -> Wires:
    return lambda http: AzureChat(gateway(http))


def _azure_responses(gateway: _Gateways) -> Wires:
    return lambda http: AzureResponses(gateway(http))


def _v1(http: web.Request) -> Gateway:
    return Gateway(http.query.get("api-version"))


def _classic(http: web.Request) -> Gateway:
    return Gateway(http.query.get("api-version"), classic=True, deployment=http.match_info.get("deployment"))
