"""The providers that the demo knows, and how the scripted model is reached as each of them.

What is entered in the account's form, and how, is in setup_agent.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from demo.model_server import ModelServer
from demo.setup_agent import Model

SCRIPTED = "scripted"

# The vendors' forms do not do without a key; the scripted model takes any.
_KEY = "scripted-key"


@dataclass(frozen=True, slots=True)
class _Provider:
    """The account's form, as the menu names it, and what is entered there."""

    form: str
    address: Callable[[ModelServer], str]
    key: str | None = _KEY
    wire_format: str | None = None


_PROVIDERS = {
    "chat": _Provider("server", lambda server: server.url, key=None),
    "responses": _Provider("openai", lambda server: server.url, wire_format="responses"),
    "openai-chat": _Provider("openai", lambda server: server.url, wire_format="chat"),
    "azure": _Provider("azure", lambda server: server.azure_url, wire_format="responses"),
    "gemini": _Provider("gemini", lambda server: server.gemini_url),
    "anthropic": _Provider("anthropic", lambda server: server.anthropic_url),
}

PROVIDERS = tuple(_PROVIDERS)


def scripted_model(server: ModelServer, provider: str, model: str = SCRIPTED) -> Model:
    """Return how a model of the server is reached as one of PROVIDERS."""
    known = _PROVIDERS[provider]
    return Model(
        url=known.address(server), model=model, api_key=known.key, form=known.form, wire_format=known.wire_format
    )
