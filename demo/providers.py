"""The providers that the demo supports, and how the scripted model is reached as each of them.

setup_agent.py fills in the account form.
"""

from collections.abc import Callable
from dataclasses import dataclass

from demo.model_server import ModelServer
from demo.setup_agent import ModelAccess

SCRIPTED_MODEL_NAME = "scripted"

# The providers' forms require a key; the scripted model accepts any.
_API_KEY = "scripted-key"


@dataclass(frozen=True, slots=True)
class _ProviderForm:
    """The menu name and the values of an account form, and the name of the scripted model.

    If that is the name of one of the provider's models, the scripted model has the price of that model.
    """

    form_name: str
    get_url: Callable[[ModelServer], str]
    api_key: str | None = _API_KEY
    wire_format: str | None = None
    model: str = SCRIPTED_MODEL_NAME


_FORM_BY_PROVIDER = {
    "chat": _ProviderForm("server", lambda server: server.url, api_key=None),
    "responses": _ProviderForm("openai", lambda server: server.url, wire_format="responses", model="gpt-5-mini"),
    "openai-chat": _ProviderForm("openai", lambda server: server.url, wire_format="chat", model="gpt-5-mini"),
    "azure": _ProviderForm("azure", lambda server: server.azure_url, wire_format="responses"),
    "gemini": _ProviderForm("gemini", lambda server: server.gemini_url, model="gemini-2.5-flash"),
    "anthropic": _ProviderForm("anthropic", lambda server: server.anthropic_url, model="claude-haiku-4-5"),
}

PROVIDER_NAMES = tuple(_FORM_BY_PROVIDER)


def get_model_name(provider: str) -> str:
    """Return the name that the scripted model has for this one of PROVIDERS."""
    return _FORM_BY_PROVIDER[provider].model


def build_scripted_model(
    server: ModelServer, provider: str, model: str = SCRIPTED_MODEL_NAME, *, window: int | None = None
) -> ModelAccess:
    """Return the server's Model as one of PROVIDERS; `window` is the size in tokens for a new account."""
    known = _FORM_BY_PROVIDER[provider]
    return ModelAccess(
        url=known.get_url(server),
        model=model,
        api_key=known.api_key,
        form_name=known.form_name,
        wire_format=known.wire_format,
        window_tokens=window,
        is_scripted=True,
    )
