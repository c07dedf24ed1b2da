"""The account forms: which server and which key, tried by a real call; new, after a refused key, or to change.

Agents have their own forms in `subentry_flow`, the window's settings in `options_flow`.
"""

from collections.abc import Mapping
from typing import Any, override
from urllib.parse import urlsplit

from homeassistant.config_entries import (
    SOURCE_REAUTH,
    SOURCE_USER,
    ConfigEntry,
    ConfigFlow,
    ConfigFlowResult,
    ConfigSubentryData,
    ConfigSubentryFlow,
    OptionsFlow,
)
from homeassistant.const import CONF_API_KEY, CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_URL
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import llm
from homeassistant.helpers.selector import TextSelector, TextSelectorConfig, TextSelectorType
import httpx
import probatio

from .bridge.account import async_create_provider
from .const import (
    CONF_PROVIDER,
    CONF_ROUTING,
    DEFAULT_AGENT_NAME,
    DEFAULT_ROUTING,
    DOMAIN,
    OPENAI_URL,
    PROVIDER_NONE,
    PROVIDER_OPENAI_CHAT,
    SUBENTRY_CONVERSATION,
)
from .options_flow import WindowOptionsFlow
from .providers.errors import (
    AuthError,
    BadRequest,
    BadStream,
    ProviderError,
    QuotaError,
)
from .providers.events import ListedModel
from .subentry_flow import AgentFlow, model_selector

_ERRORS: dict[type[ProviderError], str] = {
    AuthError: "invalid_auth",
    BadRequest: "not_compatible",
    BadStream: "not_compatible",
    QuotaError: "no_credit",
}


async def _async_find_server(hass: HomeAssistant, url: str, key: str | None) -> tuple[str, list[ListedModel]]:
    """Return the address that answers and its models: people leave out the `/v1`; raises `ProviderError`."""
    try:
        return url, await (await async_create_provider(hass, url, key)).list_models()
    except BadRequest, BadStream:
        if urlsplit(url).path:
            raise
    url = f"{url}/v1"
    return url, await (await async_create_provider(hass, url, key)).list_models()


def _address(url: str) -> str | None:
    """Return the URL in its plain form, None where it is none."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        # the client's own rules for host names are stricter
        httpx.URL(url)
    except ValueError, httpx.InvalidURL:
        return None
    return url if valid and not any(char.isspace() for char in url) else None


class WindowedConversationConfigFlow(ConfigFlow, domain=DOMAIN):
    """The forms of an account."""

    VERSION = 1
    MINOR_VERSION = 1

    def __init__(self) -> None:
        self._account: dict[str, Any] = {}
        self._models: list[ListedModel] = []

    @override
    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask who is to answer what Home Assistant does not understand by itself."""
        return self.async_show_menu(step_id="user", menu_options=["server", "local"])

    async def async_step_local(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Add an account without a model: there is nothing to enter."""
        account = {CONF_PROVIDER: PROVIDER_NONE}
        self._async_abort_entries_match(account)
        return self._created("Home Assistant", account, DEFAULT_AGENT_NAME, {})

    async def async_step_server(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the server and try it."""
        return await self._async_server_form("server", user_input, {CONF_URL: OPENAI_URL})

    async def async_step_reconfigure(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for another address or key and try it; the agents stay."""
        entry = self._get_reconfigure_entry()
        if entry.data[CONF_PROVIDER] == PROVIDER_NONE:
            return self.async_abort(reason="nothing_to_change")
        return await self._async_server_form("reconfigure", user_input, entry.data)

    async def async_step_reauth(self, entry_data: Mapping[str, Any]) -> ConfigFlowResult:
        """Begin to ask for another key after the server refused the one it was sent."""
        return await self.async_step_reauth_confirm()

    async def async_step_reauth_confirm(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for another key and try it."""
        return await self._async_server_form("reauth_confirm", user_input, self._get_reauth_entry().data)

    async def _async_server_form(
        self, step_id: str, user_input: dict[str, Any] | None, known: Mapping[str, Any]
    ) -> ConfigFlowResult:
        errors: dict[str, str] = {}
        if user_input is not None:
            errors = await self._async_try({**known, **user_input})
            if not errors:
                return await self._async_server_found()
        fields: dict[Any, Any] = {
            probatio.Optional(CONF_API_KEY): TextSelector(TextSelectorConfig(type=TextSelectorType.PASSWORD))
        }
        if self.source != SOURCE_REAUTH:
            url = TextSelector(TextSelectorConfig(type=TextSelectorType.URL))
            fields = {probatio.Required(CONF_URL): url, **fields}
        suggested = {CONF_URL: (user_input or known).get(CONF_URL)}
        return self.async_show_form(
            step_id=step_id,
            data_schema=self.add_suggested_values_to_schema(probatio.Schema(fields), suggested),
            errors=errors,
            description_placeholders={"openai_url": OPENAI_URL, "url": known.get(CONF_URL, "")},
        )

    async def _async_try(self, entered: Mapping[str, Any]) -> dict[str, str]:
        """Try the server and keep what it says; returns the form's errors."""
        url, key = _address(entered[CONF_URL]), entered.get(CONF_API_KEY)
        if url is None:
            return {CONF_URL: "invalid_url"}
        try:
            url, self._models = await _async_find_server(self.hass, url, key)
        except ProviderError as err:
            return {"base": _ERRORS.get(type(err), "cannot_connect")}
        self._account = {CONF_PROVIDER: PROVIDER_OPENAI_CHAT, CONF_URL: url}
        if key:
            self._account[CONF_API_KEY] = key
        return {}

    async def _async_server_found(self) -> ConfigFlowResult:
        if self.source != SOURCE_REAUTH:
            self._async_abort_entries_match(self._account)
        if self.source == SOURCE_USER:
            return await self.async_step_model()
        entry = self._get_reauth_entry() if self.source == SOURCE_REAUTH else self._get_reconfigure_entry()
        # A listener sets the account up again; an account that failed to set up has none.
        if entry.update_listeners:
            return self.async_update_and_abort(entry, data=self._account)
        return self.async_update_reload_and_abort(entry, data=self._account)

    async def async_step_model(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the model and the name of the first agent."""
        errors: dict[str, str] = {}
        if user_input is not None:
            if user_input[CONF_MODEL].strip():
                return self._agent_named(user_input)
            errors[CONF_MODEL] = "model_missing"
        default_model = {"default": self._models[0].id} if self._models else {}
        schema = probatio.Schema(
            {
                probatio.Required(CONF_NAME, default=DEFAULT_AGENT_NAME): str,
                probatio.Required(CONF_MODEL, **default_model): model_selector(self._models),
            }
        )
        return self.async_show_form(step_id="model", data_schema=schema, errors=errors)

    def _agent_named(self, user_input: dict[str, Any]) -> ConfigFlowResult:
        data = {
            CONF_MODEL: user_input[CONF_MODEL].strip(),
            CONF_LLM_HASS_API: [llm.LLM_API_ASSIST],
            CONF_ROUTING: DEFAULT_ROUTING,
        }
        title = urlsplit(self._account[CONF_URL]).netloc.rpartition("@")[2]
        return self._created(title, self._account, user_input[CONF_NAME].strip() or DEFAULT_AGENT_NAME, data)

    def _created(self, title: str, account: dict[str, Any], agent_name: str, agent: dict[str, Any]) -> ConfigFlowResult:
        """Return an account with its first agent."""
        first = ConfigSubentryData(data=agent, subentry_type=SUBENTRY_CONVERSATION, title=agent_name, unique_id=None)
        return self.async_create_entry(title=title, data=account, subentries=[first])

    @staticmethod
    @callback
    @override
    def async_get_options_flow(config_entry: ConfigEntry) -> OptionsFlow:
        return WindowOptionsFlow()

    @classmethod
    @callback
    @override
    def async_get_supported_subentry_types(cls, config_entry: ConfigEntry) -> dict[str, type[ConfigSubentryFlow]]:
        return {SUBENTRY_CONVERSATION: AgentFlow}
