"""The paths that OpenAI, Anthropic and Gemini share: the request headers determine which provider is meant.

All three have `GET /v1/build_model_list`, because Gemini's newest SDK uses `/v1/` instead of `/v1beta/`.
"""

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from . import anthropic_models, chat_completions, gemini_models
from .anthropic_messages import AnthropicMessagesFormat
from .chat_completions import ChatCompletionsFormat
from .endpoints import ModelsBodyBuilder, WireFactory
from .gemini_content import GeminiContentFormat
from .state import ServerState
from .wire import WireFormat


def make_anthropic_format(http: web.Request) -> AnthropicMessagesFormat:
    """Return Anthropic's format with the betas from the request headers."""
    named = http.headers.getall("anthropic-beta", [])
    return AnthropicMessagesFormat(frozenset(beta.strip() for header in named for beta in header.split(",")))


def make_gemini_format(http: web.Request) -> GeminiContentFormat:
    """Return Gemini's format for the model in the path, if any."""
    return GeminiContentFormat(http.match_info.get("model", ""), key=http.query.get("key"))


@dataclass(frozen=True, slots=True)
class _PathOwner:
    """A provider: its wire format, its list of models, and a single model of it."""

    make_wire: WireFactory
    build_model_list: ModelsBodyBuilder
    build_model_body: ModelsBodyBuilder


_OPENAI_OWNER = _PathOwner(
    lambda _http: ChatCompletionsFormat(), chat_completions.build_model_list, chat_completions.build_model_body
)
_ANTHROPIC_OWNER = _PathOwner(
    make_anthropic_format, anthropic_models.build_model_list, anthropic_models.build_model_body
)
_GEMINI_OWNER = _PathOwner(make_gemini_format, gemini_models.build_model_list, gemini_models.build_model_body)


def _find_owner(http: web.Request) -> _PathOwner:
    if "anthropic-version" in http.headers:
        return _ANTHROPIC_OWNER
    return _GEMINI_OWNER if "x-goog-api-key" in http.headers or "key" in http.query else _OPENAI_OWNER


def make_owner_wire(http: web.Request) -> WireFormat:
    """Return the wire format of a request to a shared path."""
    return _find_owner(http).make_wire(http)


def build_owner_models(http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return the list of models in the format of the provider that the request is meant for."""
    return _find_owner(http).build_model_list(http, state)


def build_owner_model(http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return the model that the path names. Raises RefusedError if there is none."""
    return _find_owner(http).build_model_body(http, state)
