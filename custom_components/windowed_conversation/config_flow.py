"""The account forms: which server and which key, tried by a real call; new, after a refused key, or to change.

Agents have their own forms in `subentry_flow`, the window's settings in `options_flow`.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, override
from urllib.parse import urlsplit

from homeassistant.config_entries import (
    SOURCE_REAUTH,
    SOURCE_RECONFIGURE,
    SOURCE_USER,
    ConfigEntry,
    ConfigFlow,
    ConfigFlowResult,
    ConfigSubentryData,
    ConfigSubentryFlow,
    OptionsFlow,
)
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_URL
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import llm
import probatio

from .account_form import ACCOUNT_FORMS, account_form, account_title, plain_address
from .bridge.account import async_create_provider
from .const import (
    CONF_API_VERSION,
    CONF_PROVIDER,
    CONF_ROUTING,
    DEFAULT_AGENT_NAME,
    DEFAULT_ROUTING,
    DOMAIN,
    OPENAI_URL,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_NONE,
    PROVIDER_OPENAI,
    PROVIDER_OPENAI_CHAT,
    SUBENTRY_CONVERSATION,
)
from .options_flow import WindowOptionsFlow
from .providers.errors import (
    AuthError,
    BadRequest,
    BadStream,
    Incomplete,
    ModelNotFound,
    ProviderError,
    QuotaError,
    Refused,
)
from .providers.events import ListedModel, Provider, Request
from .subentry_flow import AgentFlow, model_selector
from .window import Message

# The forms of new accounts, in the order of the menu, and the kind of account that each adds.
_STEPS = {
    "openai": PROVIDER_OPENAI,
    "azure": PROVIDER_AZURE,
    "gemini": PROVIDER_GEMINI,
    "anthropic": PROVIDER_ANTHROPIC,
    "server": PROVIDER_OPENAI_CHAT,
}

# The first whose kind it is.
_ERRORS: dict[type[ProviderError], str] = {
    AuthError: "invalid_auth",
    ModelNotFound: "no_such_model",
    BadRequest: "not_compatible",
    BadStream: "not_compatible",
    QuotaError: "no_credit",
}

# A model that thinks may need this many tokens to say that it is there; OpenAI takes no fewer than 16.
_TRIAL_TOKENS = 16
_TRIAL_SECONDS = 15.0


async def _async_find_server(
    hass: HomeAssistant, account: Mapping[str, Any]
) -> tuple[str, Provider, list[ListedModel]]:
    """Return the address that answers, its provider and its models; raises `ProviderError`.

    People leave out the `/v1` of a compatible server.
    """
    url: str = account[CONF_URL]
    provider = await async_create_provider(hass, account)
    try:
        return url, provider, await provider.list_models()
    except BadRequest, BadStream:
        if account[CONF_PROVIDER] != PROVIDER_OPENAI_CHAT or urlsplit(url).path:
            raise
    url = f"{url}/v1"
    provider = await async_create_provider(hass, {**account, CONF_URL: url})
    return url, provider, await provider.list_models()


async def _async_try_model(provider: Provider, model: str) -> str | None:
    """Ask the model for a word; returns the form's error, None where it answers, if only by saying too much."""
    request = Request(model, (Message.user("Say ok."),), reply_tokens=_TRIAL_TOKENS)
    try:
        async with asyncio.timeout(_TRIAL_SECONDS), aclosing(provider.stream(request)) as events:
            async for _ in events:
                pass
    except Incomplete, Refused:
        return None
    except TimeoutError:
        return "cannot_connect"
    except ProviderError as err:
        return _error_key(err)
    return None


def _error_key(error: ProviderError) -> str:
    return next((key for kind, key in _ERRORS.items() if isinstance(error, kind)), "cannot_connect")


class WindowedConversationConfigFlow(ConfigFlow, domain=DOMAIN):
    """The forms of an account."""

    VERSION = 1
    MINOR_VERSION = 1

    def __init__(self) -> None:
        self._form = ACCOUNT_FORMS[PROVIDER_OPENAI_CHAT]
        self._account: dict[str, Any] = {}
        self._provider: Provider | None = None
        self._models: list[ListedModel] = []

    @override
    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask who is to answer what Home Assistant does not understand by itself."""
        return self.async_show_menu(step_id="user", menu_options=[*_STEPS, "local"])

    async def async_step_local(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Add an account without a model: there is nothing to enter."""
        account = {CONF_PROVIDER: PROVIDER_NONE}
        self._async_abort_entries_match(account)
        return self._created("Home Assistant", account, DEFAULT_AGENT_NAME, {})

    async def async_step_openai(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for an account with OpenAI and try it."""
        return await self._async_new_account(PROVIDER_OPENAI, user_input)

    async def async_step_azure(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for a resource of Azure OpenAI and try it."""
        return await self._async_new_account(PROVIDER_AZURE, user_input)

    async def async_step_gemini(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for an account with Google and try it."""
        return await self._async_new_account(PROVIDER_GEMINI, user_input)

    async def async_step_anthropic(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for an account with Anthropic and try it."""
        return await self._async_new_account(PROVIDER_ANTHROPIC, user_input)

    async def async_step_server(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for a compatible server and try it."""
        return await self._async_new_account(PROVIDER_OPENAI_CHAT, user_input)

    async def _async_new_account(self, provider: str, user_input: dict[str, Any] | None) -> ConfigFlowResult:
        self._form = ACCOUNT_FORMS[provider]
        step_id = next(step for step, kind in _STEPS.items() if kind == provider)
        return await self._async_account_form(step_id, user_input, {})

    async def async_step_reconfigure(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for another address or key and try it; the agents stay."""
        entry = self._get_reconfigure_entry()
        form = account_form(entry.data)
        if form is None:
            return self.async_abort(reason="nothing_to_change")
        self._form = form
        return await self._async_account_form("reconfigure", user_input, entry.data)

    async def async_step_reauth(self, entry_data: Mapping[str, Any]) -> ConfigFlowResult:
        """Begin to ask for another key after the server refused the one it was sent."""
        return await self.async_step_reauth_confirm()

    async def async_step_reauth_confirm(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for another key and try it."""
        known = self._get_reauth_entry().data
        self._form = account_form(known) or self._form
        return await self._async_account_form("reauth_confirm", user_input, known)

    async def _async_account_form(
        self, step_id: str, user_input: dict[str, Any] | None, known: Mapping[str, Any]
    ) -> ConfigFlowResult:
        errors: dict[str, str] = {}
        entered = self._form.entered(user_input or {}, known)
        if user_input is not None:
            errors = await self._async_try(entered)
            if not errors:
                return await self._async_server_found()
        schema = self._form.schema(
            entered, key_only=self.source == SOURCE_REAUTH, key_known=self.source == SOURCE_RECONFIGURE
        )
        told = {"openai_url": OPENAI_URL, "url": known.get(CONF_URL, "")}
        return self.async_show_form(step_id=step_id, data_schema=schema, errors=errors, description_placeholders=told)

    async def _async_try(self, entered: dict[str, Any]) -> dict[str, str]:
        """Try the server and keep what it says; returns the form's errors."""
        url = plain_address(entered.get(CONF_URL, self._form.url))
        if url is None:
            return {CONF_URL if CONF_URL not in self._form.advanced else "base": "invalid_url"}
        account = {**entered, CONF_URL: url}
        try:
            account[CONF_URL], self._provider, self._models = await _async_find_server(self.hass, account)
        except ProviderError as err:
            key = _error_key(err)
            wrong_version = key == "not_compatible" and CONF_API_VERSION in account
            return {"base": "wrong_api_version" if wrong_version else key}
        self._account = account
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
            error = await self._async_model_error(user_input[CONF_MODEL].strip())
            if error is None:
                return self._agent_named(user_input)
            errors[CONF_MODEL] = error
        default_model = {"default": self._models[0].id} if self._models else {}
        schema = probatio.Schema(
            {
                probatio.Required(CONF_NAME, default=DEFAULT_AGENT_NAME): str,
                probatio.Required(CONF_MODEL, **default_model): model_selector(self._models),
            }
        )
        schema = self.add_suggested_values_to_schema(schema, user_input)
        return self.async_show_form(step_id="model", data_schema=schema, errors=errors)

    async def _async_model_error(self, model: str) -> str | None:
        """Return what is wrong with a model. A server at home may have to load it first and is not asked."""
        if not model:
            return "model_missing"
        if self._provider is None or self._form.provider == PROVIDER_OPENAI_CHAT:
            return None
        return await _async_try_model(self._provider, model)

    def _agent_named(self, user_input: dict[str, Any]) -> ConfigFlowResult:
        data = {
            CONF_MODEL: user_input[CONF_MODEL].strip(),
            CONF_LLM_HASS_API: [llm.LLM_API_ASSIST],
            CONF_ROUTING: DEFAULT_ROUTING,
        }
        title = account_title(self._form, self._account)
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
