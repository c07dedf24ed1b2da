"""The subentry flow of an agent. Rarely changed settings are in sections, which are collapsed unless they have changes.

The URL and the key of the agent's model belong to the account.
"""

from collections.abc import Collection, Mapping
from typing import Any, override

from homeassistant.config_entries import (
    SOURCE_RECONFIGURE,
    SOURCE_USER,
    ConfigEntryState,
    ConfigSubentryFlow,
    SubentryFlowResult,
)
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT, Platform, UnitOfTime
from homeassistant.data_entry_flow import section
from homeassistant.helpers import entity_registry as er, llm
from homeassistant.helpers.selector import (
    EntitySelector,
    EntitySelectorConfig,
    SelectOptionDict,
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
    TemplateSelector,
)
import probatio

from .. import const
from ..agents.agent import AccountData
from ..agents.config import (
    DEFAULT_COMPACTION,
    DEFAULT_CONTEXT_PLACEMENT,
    DEFAULT_COUNTING,
    DEFAULT_FALLBACK_TIMEOUT,
    DEFAULT_HEAD_START,
    DEFAULT_LIMITS,
    DEFAULT_MEMORY,
    DEFAULT_RECORD,
    DEFAULT_ROUTING,
    DEFAULT_SCOPE,
    DEFAULT_STATES,
    default_temperature,
)
from ..bridge.account import can_shorten
from ..providers import DEFAULT_SETTINGS, SELECTABLE_EFFORTS, ListedModel
from ..turn.context import ContextPlacement
from ..turn.routing import RoutingMode, Scope
from .fields import (
    FormFields,
    OutOfRangeError,
    async_build_model_fields,
    build_choice,
    choose_agent_name,
    dropdown,
    has_deployments,
    limit_texts,
    list_models,
    number_field,
    suggest_agent_name,
    suggest_model,
    switch_field,
    token_field,
)

_PRIVACY_PAGE = "https://github.com/windowed-conversation/windowed-conversation/blob/main/docs/privacy.md"

_NEW_AGENT_SETTINGS: dict[str, Any] = {
    CONF_PROMPT: llm.DEFAULT_INSTRUCTIONS_PROMPT,
    CONF_LLM_HASS_API: [llm.LLM_API_ASSIST],
    const.CONF_ROUTING: DEFAULT_ROUTING,
}

# Tags that people may want to exclude. The user can type any other tag.
_SUGGESTED_TAGS = ["route:local", "tool_call"]
# Domains that some people ask about. The user can type any other domain.
_OFTEN_ADDED = ["automation", "number", "select", "sun", "timer", "update"]

_MODEL_SECTION = "model_settings"
_CONVERSATIONS_SECTION = "conversations"
_HOME_SECTION = "home"
# The sections of the form. The stored data of an agent has no sections.
_SECTION_NAMES = (_MODEL_SECTION, _CONVERSATIONS_SECTION, _HOME_SECTION)


class AgentFlow(ConfigSubentryFlow):
    """The subentry flow that adds or reconfigures an agent."""

    _suggested_name = ""

    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Add a new agent, or reconfigure an existing one."""
        return await self.async_step_agent()

    async_step_reconfigure = async_step_user

    async def async_step_agent(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Ask for the settings of an agent."""
        if self._get_entry().state is not ConfigEntryState.LOADED:
            return self.async_abort(reason="entry_not_loaded")
        errors: dict[str, str] = {}
        if user_input is not None:
            errors = self._find_input_errors(user_input)
            if not errors:
                return self._store_agent(user_input)
        account, models = self._get_entry().data, await self._async_list_models()
        if user_input is None and self._must_type_model(models):
            errors = {CONF_MODEL: "no_models"}
        data = _nest_in_sections(self._suggest_agent_data(models), account)
        form = await self._async_build_schema(models, _find_open_sections(account, data, user_input))
        return self.async_show_form(
            step_id="deployment" if has_deployments(account) else "agent",
            data_schema=self.add_suggested_values_to_schema(form, user_input or data),
            errors=errors,
            description_placeholders={**limit_texts(form), "privacy_page": _PRIVACY_PAGE},
        )

    async_step_deployment = async_step_agent

    def _suggest_agent_data(self, models: list[ListedModel]) -> dict[str, Any]:
        if self.source == SOURCE_USER:
            account = self._get_entry().data
            self._suggested_name = suggest_agent_name(self.hass, account, suggest_model(account, models))
            return {CONF_NAME: self._suggested_name, **_NEW_AGENT_SETTINGS}
        subentry = self._get_reconfigure_subentry()
        data = {CONF_NAME: subentry.title, CONF_PROMPT: llm.DEFAULT_INSTRUCTIONS_PROMPT, **subentry.data}
        # the form would refuse its own suggestion if it included an API that does not exist any more
        there = {api.id for api in self._list_apis()}
        data[CONF_LLM_HASS_API] = [api for api in data.get(CONF_LLM_HASS_API, ()) if api in there]
        return data

    def _must_type_model(self, models: list[ListedModel]) -> bool:
        """Return whether the name of a new agent's model must be typed because the server lists none."""
        account, is_new = self._get_entry().data, self.source == SOURCE_USER
        return self._has_model and is_new and not has_deployments(account) and not list_models(account, models)

    def _find_input_errors(self, user_input: dict[str, Any]) -> dict[str, str]:
        errors: dict[str, str] = {}
        if self.source == SOURCE_RECONFIGURE and not user_input[CONF_NAME].strip():
            errors[CONF_NAME] = "name_missing"
        if self._has_model and not user_input[CONF_MODEL].strip():
            errors[CONF_MODEL] = "model_missing"
        return errors

    def _store_agent(self, user_input: dict[str, Any]) -> SubentryFlowResult:
        data = _flatten_sections(user_input)
        entered = data.pop(CONF_NAME, "")
        if self._has_model:
            names = {name: data.pop(name, "").strip() for name in (CONF_MODEL, const.CONF_FAMILY)}
            data |= {name: value for name, value in names.items() if value}
        if self.source == SOURCE_USER:
            account, suggested = self._get_entry().data, self._suggested_name
            name = choose_agent_name(self.hass, account, entered, suggested, data.get(CONF_MODEL, ""))
            return self.async_create_entry(title=name, data=data)
        # the account's update listener applies the change
        entry, subentry = self._get_entry(), self._get_reconfigure_subentry()
        return self.async_update_and_abort(entry, subentry, title=entered.strip(), data=data)

    @property
    def _has_model(self) -> bool:
        return bool(self._get_entry().data[const.CONF_PROVIDER] != const.PROVIDER_NONE)

    async def _async_build_schema(self, models: list[ListedModel], open_sections: Collection[str]) -> probatio.Schema:
        account = self._get_entry().data
        # a browser does not submit a form with an empty required field
        may_be_empty = self.source == SOURCE_USER and not self._suggested_name
        fields: dict[Any, Any] = {(probatio.Optional if may_be_empty else probatio.Required)(CONF_NAME): str}
        if self._has_model:
            fields |= {
                **await async_build_model_fields(self.hass, account, models),
                probatio.Optional(CONF_PROMPT): TemplateSelector(),
                probatio.Optional(CONF_LLM_HASS_API, default=list): self._build_api_selector(),
                **build_choice(const.CONF_ROUTING, RoutingMode),
                probatio.Optional(const.CONF_FALLBACK_AGENTS): self._build_fallback_selector(),
            }
        return probatio.Schema(fields | build_agent_sections(account, open_sections))

    def _build_fallback_selector(self) -> EntitySelector:
        """Return a selector of all conversation entities except the agent's own."""
        config = EntitySelectorConfig(domain=Platform.CONVERSATION, multiple=True)
        if self.source == SOURCE_RECONFIGURE:
            agent_id = self._get_reconfigure_subentry().subentry_id
            own = er.async_get(self.hass).async_get_entity_id(Platform.CONVERSATION, const.DOMAIN, agent_id)
            config["exclude_entities"] = [own] if own else []
        return EntitySelector(config)

    def _list_apis(self) -> list[llm.API]:
        """Return the LLM APIs to choose from: all except the memory API, because our agents have memory tools."""
        return [api for api in llm.async_get_apis(self.hass) if api.id != const.MEMORY_API_ID]

    def _build_api_selector(self) -> SelectSelector:
        apis = [SelectOptionDict(label=api.name, value=api.id) for api in self._list_apis()]
        return SelectSelector(SelectSelectorConfig(options=apis, multiple=True))

    async def _async_list_models(self) -> list[ListedModel]:
        """Return the models that the server lists, or listed last if it is away. The user can type any other name."""
        entry = self._get_entry()
        account: AccountData = entry.runtime_data
        if account.server is None or has_deployments(entry.data):
            return []
        return await account.server.async_list_models()


class _ErrorShowingSection(section):
    """A section that shows its own errors. Home Assistant would show them at the top of the form, out of sight."""

    def __init__(self, fields: dict[Any, Any], *, collapsed: bool) -> None:
        super().__init__(probatio.Schema(fields), {"collapsed": collapsed})

    @override
    def __call__(self, value: Any) -> Any:
        try:
            return super().__call__(value)
        except probatio.MultipleInvalid as err:
            first = err.errors[0]
            # an OutOfRangeError is a translation key, which must stay unchanged; other texts name the field
            message = first.error_message if isinstance(first, OutOfRangeError) else str(first)
            raise probatio.Invalid(message) from err


def build_agent_sections(account: Mapping[str, Any], open_sections: Collection[str] = ()) -> dict[Any, Any]:
    """Return the sections of an agent's form, all collapsed except for `open_sections`."""
    return {
        probatio.Required(name): _ErrorShowingSection(fields, collapsed=name not in open_sections)
        for name, fields in _build_section_fields(account).items()
    }


def _find_open_sections(
    account: Mapping[str, Any], before: Mapping[str, Any], entered: Mapping[str, Any] | None
) -> set[str]:
    """Return the sections to show open: those with changes, or the only section of an account without a model."""
    if account[const.CONF_PROVIDER] == const.PROVIDER_NONE:
        return {_CONVERSATIONS_SECTION}
    if entered is None:
        return set()
    sections = _build_section_fields(account)
    return {
        name
        for name, fields in sections.items()
        if any(entered[name].get(str(field)) != _get_previous_value(field, before.get(name, {})) for field in fields)
    }


def _nest_in_sections(data: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
    sections = _build_section_fields(account)
    inside = {
        name: {str(field): data[field] for field in sections[name] if field in data}
        for name in _SECTION_NAMES
        if name in sections
    }
    return {**data, **inside}


def _flatten_sections(entered: Mapping[str, Any]) -> dict[str, Any]:
    outside = {name: value for name, value in entered.items() if name not in _SECTION_NAMES}
    return outside | {field: value for name in _SECTION_NAMES for field, value in entered.get(name, {}).items()}


def _build_section_fields(account: Mapping[str, Any]) -> dict[str, FormFields]:
    memory = switch_field(const.CONF_MEMORY, default=DEFAULT_MEMORY) | build_choice(
        const.CONF_RECORD, const.RecordLevel, DEFAULT_RECORD
    )
    conversations = build_choice(const.CONF_SCOPE, Scope, DEFAULT_SCOPE) | token_field(const.CONF_HISTORY_TOKENS)
    if account[const.CONF_PROVIDER] == const.PROVIDER_NONE:
        return {_CONVERSATIONS_SECTION: conversations | memory}
    excluded = {probatio.Optional(const.CONF_EXCLUDED_TAGS, default=list): dropdown(_SUGGESTED_TAGS, multiple=True)}
    placement = build_choice(const.CONF_CONTEXT_PLACEMENT, ContextPlacement, DEFAULT_CONTEXT_PLACEMENT)
    domains = {probatio.Optional(const.CONF_STATES_DOMAINS, default=list): dropdown(_OFTEN_ADDED, multiple=True)}
    return {
        _MODEL_SECTION: _build_model_fields(account),
        _CONVERSATIONS_SECTION: conversations | excluded | placement | memory,
        _HOME_SECTION: switch_field(const.CONF_STATES, default=DEFAULT_STATES) | domains,
        const.CONF_LIMITS: _build_limits_fields(),
    }


def _build_model_fields(account: Mapping[str, Any]) -> FormFields:
    # a list of buttons could not be left empty again
    efforts = SelectSelectorConfig(
        options=list(SELECTABLE_EFFORTS), translation_key=const.CONF_EFFORT, mode=SelectSelectorMode.DROPDOWN
    )
    temperature = default_temperature(account)
    suggested = probatio.UNDEFINED if temperature is None else temperature
    compaction = (
        build_choice(const.CONF_COMPACTION, const.Compaction, DEFAULT_COMPACTION) if can_shorten(account) else {}
    )
    return {
        probatio.Optional(const.CONF_EFFORT): SelectSelector(efforts),
        **number_field(const.CONF_TEMPERATURE, 0, 2, step=0.1, default=suggested, required=False),
        **number_field(const.CONF_TOP_P, 0, 1, step=0.05),
        **token_field(const.CONF_CONTEXT_TOKENS),
        **token_field(const.CONF_MAX_ANSWER_TOKENS, DEFAULT_SETTINGS.max_answer_tokens),
        **build_choice(const.CONF_COUNTING, const.Counting, DEFAULT_COUNTING),
        **compaction,
        **switch_field(const.CONF_HEAD_START, default=DEFAULT_HEAD_START),
    }


def _build_limits_fields() -> FormFields:
    seconds, limits = UnitOfTime.SECONDS, DEFAULT_LIMITS
    return {
        **number_field(const.CONF_FALLBACK_TIMEOUT, 1, 300, seconds, default=DEFAULT_FALLBACK_TIMEOUT),
        **number_field(const.CONF_IDLE_TIMEOUT, 1, 300, seconds),
        **number_field(const.CONF_TURN_TIMEOUT, 1, 600, seconds, default=limits.turn_timeout),
        **number_field(const.CONF_MAX_TOOL_ITERATIONS, 1, 50, default=limits.max_tool_iterations),
    }


def _get_previous_value(field: Any, data: Mapping[str, Any]) -> Any:
    default = None if field.default is probatio.UNDEFINED else field.default()
    return data.get(str(field), default)
