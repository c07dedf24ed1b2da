"""The paths that OpenAI, Anthropic and Gemini share: the request headers determine which provider is meant.

All three have `GET /v1/models`, because Gemini's newest SDK uses `/v1/` instead of `/v1beta/`.
"""

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from . import anthropic_models, chat_completions, gemini_models
from .anthropic_messages import AnthropicMessages
from .chat_completions import ChatCompletions
from .endpoints import ModelsBody, Wires
from .gemini_content import GeminiContent
from .state import State
from .wire import WireFormat


def messages(http: web.Request) -> AnthropicMessages:
    """Return Anthropic's format with the betas from the request headers."""
    named = http.headers.getall("anthropic-beta", [])
    return AnthropicMessages(frozenset(beta.strip() for header in named for beta in header.split(",")))


def contents(http: web.Request) -> GeminiContent:
    """Return Gemini's format for the model in the path, if any."""
    return GeminiContent(http.match_info.get("model", ""), key=http.query.get("key"))


@dataclass(frozen=True, slots=True)
class _Owner:
    """A provider: its wire format, its list of models, and a single model of it."""

    wire: Wires
    models: ModelsBody
    model: ModelsBody


_OPENAI = _Owner(lambda _http: ChatCompletions(), chat_completions.model_list, chat_completions.model)
_ANTHROPIC = _Owner(messages, anthropic_models.model_list, anthropic_models.model)
_GEMINI = _Owner(contents, gemini_models.model_list, gemini_models.model)


def _owner(http: web.Request) -> _Owner:
    if "anthropic-version" in http.headers:
        return _ANTHROPIC
    return _GEMINI if "x-goog-api-key" in http.headers or "key" in http.query else _OPENAI


def owners_wire(http: web.Request) -> WireFormat:
    """Return the wire format of a request to a shared path."""
    return _owner(http).wire(http)


def owners_models(http: web.Request, state: State) -> dict[str, Any]:
    """Return the list of models in the format of the provider that the request is meant for."""
    return _owner(http).models(http, state)


def owners_model(http: web.Request, state: State) -> dict[str, Any]:
    """Return the model that the path names. Raises RefusedError if there is none."""
    return _owner(http).model(http, state)
