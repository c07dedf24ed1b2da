"""The URL paths of the endpoints for each wire format."""

from collections.abc import Callable, Iterator

from aiohttp import web

from . import anthropic_messages, gemini_content, gemini_models, responses
from .azure import AzureChat, AzureResponses, Gateway, azure_models
from .chat_completions import ChatCompletions, running_models
from .endpoints import Endpoints, Wires
from .gemini_content import GeminiContent
from .responses import Responses
from .shared_paths import contents, messages, owners_model, owners_models, owners_wire


def model_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    """Yield the routes for all wire formats."""
    yield from _shared(endpoints)
    yield from _openai(endpoints)
    yield from _anthropic(endpoints)
    yield from _gemini(endpoints)
    yield from _azure(endpoints)


def _always(make: type[ChatCompletions | Responses]) -> Wires:
    return lambda _http: make()


def _shared(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.get("/v1/models", endpoints.lists(owners_wire, owners_models))
    yield web.get("/v1/models/{model}", endpoints.lists(owners_wire, owners_model))


def _openai(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    chat, answers = _always(ChatCompletions), _always(Responses)
    yield web.post("/v1/chat/completions", endpoints.answers(chat))
    yield web.get("/api/ps", endpoints.lists(chat, running_models))
    yield web.post("/v1/responses", endpoints.answers(answers))
    yield web.post("/v1/responses/input_tokens", endpoints.documents(answers, responses.count_body))
    yield web.post("/v1/responses/compact", endpoints.documents(answers, responses.compaction_body))


def _anthropic(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.post("/v1/messages", endpoints.answers(messages))
    yield web.post("/v1/messages/count_tokens", endpoints.documents(messages, anthropic_messages.count_body))


def _gemini(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.get("/v1beta/models", endpoints.lists(contents, gemini_models.model_list))
    yield web.get("/v1beta/models/{model}", endpoints.lists(contents, gemini_models.model))
    for version in ("v1", "v1beta"):
        model = f"/{version}/models/{{model}}"
        yield web.post(f"{model}:generateContent", endpoints.answers(contents))
        yield web.post(f"{model}:streamGenerateContent", endpoints.answers(_streamed_contents))
        yield web.post(f"{model}:countTokens", endpoints.documents(contents, gemini_content.count_body))


def _streamed_contents(http: web.Request) -> GeminiContent:
    return GeminiContent(http.match_info["model"], stream=True, key=http.query.get("key"))


def _azure(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.get("/openai/v1/models", endpoints.lists(_azure_chat(_v1), azure_models))
    yield web.post("/openai/v1/chat/completions", endpoints.answers(_azure_chat(_v1)))
    yield web.post("/openai/v1/responses", endpoints.answers(_azure_responses(_v1)))
    compacts = endpoints.documents(_azure_responses(_v1), responses.compaction_body)
    yield web.post("/openai/v1/responses/compact", compacts)
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
