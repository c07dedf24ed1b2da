"""The kinds of vendor accounts, with their config data and request paths on the scripted model server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeassistant.const import CONF_API_KEY, CONF_URL
import pytest

from custom_components.windowed_conversation.const import (
    CONF_API_VERSION,
    CONF_FORMAT,
    CONF_PROVIDER,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
    PROVIDER_OPENAI_CHAT,
)
from demo.model_server import ModelServer

_AZURE_CHAT_PATH = "/openai/deployments/scripted/chat/completions"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of account: the step of its config flow, and its data without URL and key."""

    name: str
    step: str
    data: Mapping[str, str]
    # The path of requests to the model.
    asked: str
    # Appended to the server's address.
    url_path: str = ""
    # The title of the account, in which `{host}` is the server's host.
    title: str = "{host}"

    @property
    def model_field(self) -> str:
        """The field of the forms that asks for the model."""
        return "deployment" if self.step == "azure" else "model"

    @property
    def form_step(self) -> str:
        """The flow step whose form asks for the account."""
        return self.step if self.step in ("azure", "server") else "account"

    def account(self, server: ModelServer, key: str = "key") -> dict[str, str]:
        """Return the config entry data of the account."""
        return {**self.data, CONF_URL: f"{server.address}{self.url_path}", CONF_API_KEY: key}

    def entered(self, server: ModelServer, key: str = "key", **changes: str) -> dict[str, Any]:
        """Return the user input for the account's form; `changes` replaces some of its fields."""
        fields = {**self.account(server, key), **changes}
        fields.pop(CONF_PROVIDER)
        if self.step != "azure":
            return {CONF_API_KEY: fields.pop(CONF_API_KEY), "advanced": fields}
        return {CONF_URL: fields.pop(CONF_URL), CONF_API_KEY: fields.pop(CONF_API_KEY), "advanced": fields}


def _openai(format_: str, asked: str) -> Kind:
    data = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_FORMAT: format_}
    return Kind(f"openai_{format_}", "openai", data, asked, url_path="/v1", title="OpenAI ({host})")


def _azure(name: str, format_: str, asked: str, version: str = "") -> Kind:
    data = {CONF_PROVIDER: PROVIDER_AZURE, CONF_FORMAT: format_}
    return Kind(name, "azure", data | ({CONF_API_VERSION: version} if version else {}), asked)


CLASSIC_RESPONSES = _azure("azure_classic_responses", "responses", "/openai/responses", "2025-04-01-preview")
CLASSIC_CHAT = _azure("azure_classic_chat", "chat", _AZURE_CHAT_PATH, "2024-10-21")
AZURE_RESPONSES = _azure("azure_responses", "responses", "/openai/v1/responses")

KINDS = (
    _openai("responses", "/v1/responses"),
    _openai("chat", "/v1/chat/completions"),
    AZURE_RESPONSES,
    _azure("azure_chat", "chat", "/openai/v1/chat/completions"),
    CLASSIC_RESPONSES,
    CLASSIC_CHAT,
    Kind(
        "gemini",
        "gemini",
        {CONF_PROVIDER: PROVIDER_GEMINI},
        "/v1beta/models/scripted:streamGenerateContent",
        title="Google Gemini ({host})",
    ),
    Kind("anthropic", "anthropic", {CONF_PROVIDER: PROVIDER_ANTHROPIC}, "/v1/messages", title="Anthropic ({host})"),
)

# One kind of account for each vendor, for tests that do not depend on the wire format.
VENDORS = (KINDS[0], AZURE_RESPONSES, *KINDS[-2:])
COMPATIBLE = Kind("server", "server", {CONF_PROVIDER: PROVIDER_OPENAI_CHAT}, "/v1/chat/completions", url_path="/v1")

one_of_each_vendor = pytest.mark.parametrize("kind", VENDORS, ids=lambda kind: kind.name, indirect=True)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Parametrize a test with each kind of account."""
    return request.param
