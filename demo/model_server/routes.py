"""The URL paths of the endpoints for each wire format."""

from collections.abc import Callable, Iterator

from aiohttp import web

from . import anthropic_messages, gemini_content, gemini_models, responses
from .azure import AzureChatFormat, AzureGateway, AzureResponsesFormat, build_azure_models
from .chat_completions import ChatCompletionsFormat, build_loaded_models
from .endpoints import Endpoints, WireFactory
from .gemini_content import GeminiContentFormat
from .responses import ResponsesFormat
from .shared_paths import (
    build_owner_model,
    build_owner_models,
    make_anthropic_format,
    make_gemini_format,
    make_owner_wire,
)


def build_model_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    """Yield the routes for all wire formats."""
    yield from _shared_routes(endpoints)
    yield from _openai_routes(endpoints)
    yield from _anthropic_routes(endpoints)
    yield from _gemini_routes(endpoints)
    yield from _azure_routes(endpoints)


def _make_always(make: type[ChatCompletionsFormat | ResponsesFormat]) -> WireFactory:
    return lambda _http: make()


def _shared_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.get("/v1/models", endpoints.build_list_handler(make_owner_wire, build_owner_models))
    yield web.get("/v1/models/{model}", endpoints.build_list_handler(make_owner_wire, build_owner_model))


def _openai_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    chat, answers = _make_always(ChatCompletionsFormat), _make_always(ResponsesFormat)
    yield web.post("/v1/chat/completions", endpoints.build_answer_handler(chat))
    yield web.get("/api/ps", endpoints.build_list_handler(chat, build_loaded_models))
    yield web.post("/v1/responses", endpoints.build_answer_handler(answers))
    yield web.post("/v1/responses/input_tokens", endpoints.build_document_handler(answers, responses.build_count_body))
    yield web.post("/v1/responses/compact", endpoints.build_document_handler(answers, responses.build_compaction_body))


def _anthropic_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.post("/v1/messages", endpoints.build_answer_handler(make_anthropic_format))
    yield web.post(
        "/v1/messages/count_tokens",
        endpoints.build_document_handler(make_anthropic_format, anthropic_messages.build_count_body),
    )


def _gemini_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.get("/v1beta/models", endpoints.build_list_handler(make_gemini_format, gemini_models.build_model_list))
    yield web.get(
        "/v1beta/models/{model}", endpoints.build_list_handler(make_gemini_format, gemini_models.build_model_body)
    )
    for version in ("v1", "v1beta"):
        model = f"/{version}/models/{{model}}"
        yield web.post(f"{model}:generateContent", endpoints.build_answer_handler(make_gemini_format))
        yield web.post(f"{model}:streamGenerateContent", endpoints.build_answer_handler(_make_streamed_contents))
        yield web.post(
            f"{model}:countTokens",
            endpoints.build_document_handler(make_gemini_format, gemini_content.build_count_body),
        )


def _make_streamed_contents(http: web.Request) -> GeminiContentFormat:
    return GeminiContentFormat(http.match_info["model"], stream=True, key=http.query.get("key"))


def _azure_routes(endpoints: Endpoints) -> Iterator[web.RouteDef]:
    yield web.get(
        "/openai/v1/models", endpoints.build_list_handler(_make_azure_chat(_make_v1_gateway), build_azure_models)
    )
    yield web.post("/openai/v1/chat/completions", endpoints.build_answer_handler(_make_azure_chat(_make_v1_gateway)))
    yield web.post("/openai/v1/responses", endpoints.build_answer_handler(_make_azure_responses(_make_v1_gateway)))
    compacts = endpoints.build_document_handler(
        _make_azure_responses(_make_v1_gateway), responses.build_compaction_body
    )
    yield web.post("/openai/v1/responses/compact", compacts)
    yield web.get(
        "/openai/models", endpoints.build_list_handler(_make_azure_chat(_make_classic_gateway), build_azure_models)
    )
    classic_chat = "/openai/deployments/{deployment}/chat/completions"
    yield web.post(classic_chat, endpoints.build_answer_handler(_make_azure_chat(_make_classic_gateway)))
    yield web.post("/openai/responses", endpoints.build_answer_handler(_make_azure_responses(_make_classic_gateway)))


type _GatewayFactory = Callable[[web.Request], AzureGateway]


def _make_azure_chat(gateway: _GatewayFactory) -> WireFactory:
    return lambda http: AzureChatFormat(gateway(http))


def _make_azure_responses(gateway: _GatewayFactory) -> WireFactory:
    return lambda http: AzureResponsesFormat(gateway(http))


def _make_v1_gateway(http: web.Request) -> AzureGateway:
    return AzureGateway(http.query.get("api-version"))


def _make_classic_gateway(http: web.Request) -> AzureGateway:
    return AzureGateway(http.query.get("api-version"), is_classic=True, deployment=http.match_info.get("deployment"))
