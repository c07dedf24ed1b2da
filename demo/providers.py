"""The providers that the demo supports, and how the scripted model is reached as each of them.

setup_agent.py fills in the account form.
"""

from collections.abc import Callable
from dataclasses import dataclass

from demo.model_server import ModelServer
from demo.setup_agent import Model

SCRIPTED = "scripted"

# The providers' forms require a key; the scripted model accepts any.
_KEY = "scripted-key"


@dataclass(frozen=True, slots=True)
class _Provider:
    """The menu name and the values of an account form, and the name of the scripted model.

    If that is the name of one of the provider's models, the scripted model has the price of that model.
    """

    form: str
    address: Callable[[ModelServer], str]
    key: str | None = _KEY
    wire_format: str | None = None
    model: str = SCRIPTED


_PROVIDERS = {
    "chat": _Provider("server", lambda server: server.url, key=None),
    "responses": _Provider("openai", lambda server: server.url, wire_format="responses", model="gpt-5-mini"),
    "openai-chat": _Provider("openai", lambda server: server.url, wire_format="chat", model="gpt-5-mini"),
    "azure": _Provider("azure", lambda server: server.azure_url, wire_format="responses"),
    "gemini": _Provider("gemini", lambda server: server.gemini_url, model="gemini-2.5-flash"),
    "anthropic": _Provider("anthropic", lambda server: server.anthropic_url, model="claude-haiku-4-5"),
}

PROVIDERS = tuple(_PROVIDERS)


def model_name(provider: str) -> str:
    """Return the name that the scripted model has for this one of PROVIDERS."""
    return _PROVIDERS[provider].model


def scripted_model(server: ModelServer, provider: str, model: str = SCRIPTED, *, window: int | None = None) -> Model:
    """Return the server's Model as one of PROVIDERS; `window` is the size in tokens for a new account."""
    known = _PROVIDERS[provider]
    return Model(
        url=known.address(server),
        model=model,
        api_key=known.key,
        form=known.form,
        wire_format=known.wire_format,
        window=window,
        is_scripted=True,
    )
