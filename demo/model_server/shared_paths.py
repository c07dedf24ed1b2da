"""The paths that OpenAI, Anthropic and Gemini have in common: whose request it is goes by its headers.

`GET /v1/models` is a list of all three; Gemini's newest SDK has left `/v1beta/` for `/v1/`.
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
    """Return Anthropic's format with the betas that the headers name."""
    named = http.headers.getall("anthropic-beta", [])
    return AnthropicMessages(frozenset(beta.strip() for header in named for beta in header.split(",")))


def contents(http: web.Request) -> GeminiContent:
    """Return Gemini's format for the model that the path names, if it does."""
    return GeminiContent(http.match_info.get("model", ""), key=http.query.get("key"))


@dataclass(frozen=True, slots=True)
class _Owner:
    """A provider: its format, its list of models, one model of it."""

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
    """Return the format of a request."""
    return _owner(http).wire(http)


def owners_models(http: web.Request, state: State) -> dict[str, Any]:
    """Return the list of models as whoever's request it is writes it."""
    return _owner(http).models(http, state)


def owners_model(http: web.Request, state: State) -> dict[str, Any]:
    """Return the model that the path names; raises RefusedError where there is none."""
    return _owner(http).model(http, state)
