"""Config flow of an account (server and key): add, reauthenticate or reconfigure it, verified by a real request.

The forms of agents, and of the window's settings, are in `flows`.
"""

from collections.abc import Mapping
from functools import partialmethod
from typing import Any, override

from homeassistant.components.assist_pipeline import Pipeline
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline, async_update_pipeline
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
from homeassistant.const import CONF_API_KEY, CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT, CONF_URL, Platform
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import entity_registry as er, llm
import probatio

from . import const
from .agents.agent import AccountConfigEntry
from .agents.config import DEFAULT_INSTRUCTIONS, DEFAULT_MEMORY_DAYS, DEFAULT_ROUTING
from .flows.account import (
    ACCOUNT_ERRORS,
    ACCOUNT_FORMS,
    MODEL_ERRORS,
    RejectedAccount,
    VerifiedAccount,
    async_try_account,
    async_try_model,
    build_account_title,
    parse_base_urls,
)
from .flows.agent import AgentFlow, TaskFlow
from .flows.fields import (
    TASK_SUFFIX,
    async_build_model_fields,
    async_reads_images,
    choose_agent_name,
    get_model_field,
    has_deployments,
    list_models,
    make_unique_title,
    suggest_agent_name,
    suggest_model,
    switch_field,
)
from .flows.options import WindowOptionsFlow

# The steps that add an account, in the order of the menu, and the provider of each.
_PROVIDER_BY_STEP = {
    "openai": const.PROVIDER_OPENAI,
    "azure": const.PROVIDER_AZURE,
    "gemini": const.PROVIDER_GEMINI,
    "anthropic": const.PROVIDER_ANTHROPIC,
    "server": const.PROVIDER_OPENAI_CHAT,
}
# The steps whose forms differ in their texts from the step `account`.
_OWN_FORM_STEPS = ("azure", "server")

# The switch that lets the preferred assistant use the new agent.
_CONF_USE_IN_ASSISTANT = "use_in_assistant"


class WindowedConversationConfigFlow(ConfigFlow, domain=const.DOMAIN):
    """The config flow of an account, with its first agent."""

    VERSION = 1

    def __init__(self) -> None:
        self._form = ACCOUNT_FORMS[const.PROVIDER_OPENAI_CHAT]
        self._form_step_id = ""
        self._typed_key = ""
        self._tested: VerifiedAccount | None = None
        self._used_in: Pipeline | None = None

    @override
    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the kind of account."""
        return self.async_show_menu(step_id="user", menu_options=[*_PROVIDER_BY_STEP, "local"])

    async def async_step_local(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Add an account without a model, which needs only a confirmation."""
        account = {const.CONF_PROVIDER: const.PROVIDER_NONE}
        self._async_abort_entries_match(account)
        if user_input is None:
            return self.async_show_form(step_id="local", data_schema=probatio.Schema({}))
        return self._add_account("Home Assistant", account, suggest_agent_name(self.hass, account, ""), {})

    async def _async_add_account(self, provider: str, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the data of an account with this provider and verify it."""
        self._form = ACCOUNT_FORMS[provider]
        step_id = next(step for step, kind in _PROVIDER_BY_STEP.items() if kind == provider)
        return await self._async_handle_account_form(
            step_id if step_id in _OWN_FORM_STEPS else "account", user_input, {}
        )

    async def async_step_account(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Verify the data of an account with the chosen provider."""
        return await self._async_add_account(self._form.provider, user_input)

    async_step_openai = partialmethod(_async_add_account, const.PROVIDER_OPENAI)
    async_step_azure = partialmethod(_async_add_account, const.PROVIDER_AZURE)
    async_step_gemini = partialmethod(_async_add_account, const.PROVIDER_GEMINI)
    async_step_anthropic = partialmethod(_async_add_account, const.PROVIDER_ANTHROPIC)
    async_step_server = partialmethod(_async_add_account, const.PROVIDER_OPENAI_CHAT)

    async def async_step_reconfigure(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for a new address or key and verify it. The account keeps its agents."""
        entry = self._get_reconfigure_entry()
        form = ACCOUNT_FORMS.get(entry.data[const.CONF_PROVIDER])
        # an account without a model has no form
        if form is None:
            return self.async_abort(reason="nothing_to_change")
        self._form = form
        return await self._async_handle_account_form("reconfigure", user_input, entry.data)

    async def async_step_reauth(self, entry_data: Mapping[str, Any]) -> ConfigFlowResult:
        """Start reauthentication after the server refused the key."""
        self._form_step_id = "reauth_confirm" if CONF_API_KEY in entry_data else "reauth_first_key"
        return await self.async_step_reauth_confirm()

    async def async_step_reauth_confirm(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for a new key and verify it. A server without a key, or a proxy in front of it, may require one now."""
        account = self._get_reauth_entry().data
        self._form = ACCOUNT_FORMS[account[const.CONF_PROVIDER]]
        return await self._async_handle_account_form(self._form_step_id, user_input, account)

    async_step_reauth_first_key = async_step_reauth_confirm

    async def _async_handle_account_form(
        self, step_id: str, user_input: dict[str, Any] | None, account: Mapping[str, Any]
    ) -> ConfigFlowResult:
        self._form_step_id = step_id
        entered = self._form.build_account_data(user_input or {}, account)
        self._typed_key = (user_input or {}).get(CONF_API_KEY, "").strip()
        if user_input is None:
            return self._show_account_form(entered)
        if self._form.requires_key and CONF_API_KEY not in entered:
            return self._show_account_form(entered, "key_missing")
        urls = parse_base_urls(entered.get(CONF_URL, self._form.default_url), has_key=CONF_API_KEY in entered)
        if not urls:
            return self._show_account_form(entered, "invalid_url")
        tried = await async_try_account(self.hass, entered, urls)
        if isinstance(tried, RejectedAccount):
            wants_key = tried.error_key == "invalid_auth" and CONF_API_KEY not in entered
            error = "key_wanted" if wants_key else tried.error_key
            return self._show_account_form(entered, error, tried.redirect_url)
        return await self._async_accept_account(tried)

    def _show_account_form(
        self, entered: Mapping[str, Any], error: str = "", new_address: str = ""
    ) -> ConfigFlowResult:
        key_only, key_exists = self.source == SOURCE_REAUTH, self.source == SOURCE_RECONFIGURE
        schema = self._form.build_schema(
            entered, key_only=key_only, key_exists=key_exists, typed_key=self._typed_key, error=error
        )
        errors = {self._form.find_error_field(error, key_only=key_only): error} if error else {}
        placeholders = {**self._form.link_placeholders, "url": entered.get(CONF_URL, ""), "new_address": new_address}
        return self.async_show_form(
            step_id=self._form_step_id, data_schema=schema, errors=errors, description_placeholders=placeholders
        )

    async def _async_accept_account(self, tried: VerifiedAccount) -> ConfigFlowResult:
        own_id = self.context.get("entry_id")
        others = [each for each in self._async_current_entries(include_ignore=False) if each.entry_id != own_id]
        if self.source != SOURCE_REAUTH and any(dict(entry.data) == tried.data for entry in others):
            return self.async_abort(reason="already_configured")
        self._tested = tried
        if self.source == SOURCE_USER:
            return await self.async_step_model()
        entry = self._get_reauth_entry() if self.source == SOURCE_REAUTH else self._get_reconfigure_entry()
        error = await self._async_find_key_error(entry, tried)
        if error is not None:
            return self._show_account_form(tried.data, error)
        # A loaded account has an update listener that reloads it; an account that failed to set up has none.
        if entry.update_listeners:
            if entry.data == tried.data:
                self.hass.config_entries.async_schedule_reload(entry.entry_id)
            return self.async_update_and_abort(entry, data=tried.data)
        return self.async_update_reload_and_abort(entry, data=tried.data)

    async def _async_find_key_error(self, entry: ConfigEntry, tried: VerifiedAccount) -> str | None:
        """Return the error of an agent's model, because not every server checks the key when it lists models."""
        models = (agent.data.get(CONF_MODEL) for agent in entry.get_subentries_of_type(const.SUBENTRY_CONVERSATION))
        model = next(filter(None, models), None)
        error = await async_try_model(tried, model) if model else None
        return error if error in ACCOUNT_ERRORS else None

    async def async_step_model(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the first agent's name and model, and try the model."""
        assert self._tested is not None
        field, assistant = get_model_field(self._tested.data), _find_preferred_assistant(self.hass)
        account = self._tested.data
        errors = {} if has_deployments(account) or list_models(account, self._tested.models) else {field: "no_models"}
        if user_input is not None:
            model = user_input[field].strip()
            error = await async_try_model(self._tested, model) if model else "model_missing"
            if error is None:
                self._used_in = assistant if user_input.get(_CONF_USE_IN_ASSISTANT) else None
                return await self._async_create_account_with_agent(self._tested, user_input, model)
            if error in ACCOUNT_ERRORS:
                return self._show_account_form(self._tested.data, error)
            errors = {field if error in {"model_missing", *MODEL_ERRORS} else "base": error}
        schema = await self._async_build_model_schema(self._tested, assistant)
        return self.async_show_form(
            step_id="model",
            data_schema=self.add_suggested_values_to_schema(schema, user_input),
            errors=errors,
            description_placeholders={
                "memory_days": str(DEFAULT_MEMORY_DAYS),
                "assistant": assistant.name if assistant else "",
            },
        )

    async def _async_build_model_schema(self, tried: VerifiedAccount, assistant: Pipeline | None) -> probatio.Schema:
        fields = await async_build_model_fields(self.hass, tried.data, tried.models)
        name = self._suggest_name(tried)
        marker = probatio.Required(CONF_NAME, default=name) if name else probatio.Optional(CONF_NAME)
        if assistant is not None:
            # whoever adds another account may only want to try it
            fields |= switch_field(_CONF_USE_IN_ASSISTANT, default=not _is_own_agent(self.hass, assistant))
        return probatio.Schema({marker: str, **fields})

    def _suggest_name(self, tried: VerifiedAccount) -> str:
        return suggest_agent_name(self.hass, tried.data, suggest_model(tried.data, tried.models))

    async def _async_create_account_with_agent(
        self, tried: VerifiedAccount, user_input: dict[str, Any], model: str
    ) -> ConfigFlowResult:
        account = tried.data
        data: dict[str, Any] = {
            CONF_MODEL: model,
            CONF_PROMPT: DEFAULT_INSTRUCTIONS,
            CONF_LLM_HASS_API: [llm.LLM_API_ASSIST],
            const.CONF_ROUTING: DEFAULT_ROUTING,
        }
        if family := user_input.get(const.CONF_FAMILY, "").strip():
            data[const.CONF_FAMILY] = family
        if await async_reads_images(account, tried.provider, model):
            data[const.CONF_IMAGES] = True
        title = make_unique_title(self.hass, build_account_title(self._form, account))
        default = suggest_agent_name(self.hass, account, model)
        name = choose_agent_name(user_input.get(CONF_NAME, ""), self._suggest_name(tried), default)
        # as core's integrations add one
        task = ConfigSubentryData(
            data={key: data[key] for key in (CONF_MODEL, const.CONF_FAMILY, const.CONF_IMAGES) if key in data},
            subentry_type=const.SUBENTRY_AI_TASK,
            title=suggest_agent_name(self.hass, account, model, suffix=TASK_SUFFIX),
            unique_id=None,
        )
        return self._add_account(title, account, name, data, task)

    def _add_account(
        self, title: str, account: dict[str, Any], name: str, agent: dict[str, Any], *others: ConfigSubentryData
    ) -> ConfigFlowResult:
        first = ConfigSubentryData(data=agent, subentry_type=const.SUBENTRY_CONVERSATION, title=name, unique_id=None)
        return self.async_create_entry(title=title, data=account, subentries=[first, *others])

    @override
    async def async_on_create_entry(self, result: ConfigFlowResult) -> ConfigFlowResult:
        """Let the preferred assistant use the new agent, if the user chose that, and say so."""
        agent_id, *_ = result["result"].subentries
        entity_id = er.async_get(self.hass).async_get_entity_id(Platform.CONVERSATION, const.DOMAIN, agent_id)
        if self._used_in is None or entity_id is None:
            return result
        # otherwise the model would not know of the commands that Home Assistant handles
        await async_update_pipeline(self.hass, self._used_in, conversation_engine=entity_id, prefer_local_intents=False)
        return result | {
            "description": "used_in_assistant",
            "description_placeholders": {"assistant": self._used_in.name},
        }

    @staticmethod
    @callback
    @override
    def async_get_options_flow(config_entry: AccountConfigEntry) -> OptionsFlow:
        return WindowOptionsFlow()

    @classmethod
    @callback
    @override
    def async_get_supported_subentry_types(cls, config_entry: ConfigEntry) -> dict[str, type[ConfigSubentryFlow]]:
        agents: dict[str, type[ConfigSubentryFlow]] = {const.SUBENTRY_CONVERSATION: AgentFlow}
        has_model = config_entry.data[const.CONF_PROVIDER] != const.PROVIDER_NONE
        return agents | {const.SUBENTRY_AI_TASK: TaskFlow} if has_model else agents


def _find_preferred_assistant(hass: HomeAssistant) -> Pipeline | None:
    """Return the preferred assistant, or None if Home Assistant runs without assistants."""
    return async_get_pipeline(hass) if "assist_pipeline" in hass.config.components else None


def _is_own_agent(hass: HomeAssistant, assistant: Pipeline) -> bool:
    agent = er.async_get(hass).async_get(assistant.conversation_engine)
    return agent is not None and agent.platform == const.DOMAIN
