"""The forms of an agent: how it behaves. Where its model is reached belongs to the account."""

from collections.abc import Iterable, Mapping
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
    NumberSelector,
    NumberSelectorConfig,
    NumberSelectorMode,
    SelectOptionDict,
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
    TemplateSelector,
)
import probatio

from .agents.agent import AccountData
from .bridge.account import compacts, vendor_of
from .const import (
    CONF_COMPACTION,
    CONF_CONTEXT_PLACEMENT,
    CONF_CONTEXT_TOKENS,
    CONF_COUNTING,
    CONF_EFFORT,
    CONF_FAMILY,
    CONF_FIRST_WORD_TIMEOUT,
    CONF_HISTORY_TOKENS,
    CONF_LEFT_OUT,
    CONF_LIMITS,
    CONF_OTHERS,
    CONF_PROVIDER,
    CONF_REPLY_TOKENS,
    CONF_ROUTING,
    CONF_SCOPE,
    CONF_TEMPERATURE,
    CONF_TOOL_ITERATIONS,
    CONF_TURN_TIMEOUT,
    DEFAULT_AGENT_NAME,
    DEFAULT_COMPACTION,
    DEFAULT_CONTEXT_PLACEMENT,
    DEFAULT_COUNTING,
    DEFAULT_LIMITS,
    DEFAULT_REPLY_TOKENS,
    DEFAULT_ROUTING,
    DEFAULT_SCOPE,
    DOMAIN,
    EFFORTS,
    PROVIDER_NONE,
    Compaction,
    Counting,
)
from .flows.model_fields import async_model_fields, has_deployments, models_to_choose
from .options_flow import number_selector, window_size_selector
from .providers.events import ListedModel
from .turn.context import ContextPlacement
from .turn.routing import Routing
from .turn.scope import Scope

_NEW_AGENT: dict[str, Any] = {
    CONF_NAME: DEFAULT_AGENT_NAME,
    CONF_PROMPT: llm.DEFAULT_INSTRUCTIONS_PROMPT,
    CONF_LLM_HASS_API: [llm.LLM_API_ASSIST],
    CONF_ROUTING: DEFAULT_ROUTING,
}


# Tags that people may want to leave out; any other can be typed.
_OFTEN_LEFT_OUT = ["route:local", "tool_call"]

# The sections of the form that an agent's data know nothing of.
_MODEL_SETTINGS = "model_settings"
_CONVERSATIONS = "conversations"
_SECTIONS = (_MODEL_SETTINGS, _CONVERSATIONS)


def _in_sections(data: Mapping[str, Any], form: probatio.Schema) -> dict[str, Any]:
    """Return an agent's data as the form has them."""
    sections = {name: form.schema[name].schema.schema for name in _SECTIONS if name in form.schema}
    inside = {name: {str(field): data[field] for field in fields if field in data} for name, fields in sections.items()}
    return {**data, **inside}


def _out_of_sections(entered: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was entered in the form as an agent's data have it."""
    outside = {name: value for name, value in entered.items() if name not in _SECTIONS}
    return outside | {field: value for name in _SECTIONS for field, value in entered.get(name, {}).items()}


def _choice(name: str, options: Iterable[str]) -> SelectSelector:
    return SelectSelector(SelectSelectorConfig(options=list(options), translation_key=name))


def _conversations_fields(*, has_model: bool) -> dict[Any, Any]:
    fields: dict[Any, Any] = {
        probatio.Required(CONF_SCOPE, default=DEFAULT_SCOPE): _choice(CONF_SCOPE, Scope),
        probatio.Optional(CONF_HISTORY_TOKENS): window_size_selector(),
    }
    if not has_model:
        return fields
    left_out = SelectSelectorConfig(
        options=_OFTEN_LEFT_OUT, multiple=True, custom_value=True, mode=SelectSelectorMode.DROPDOWN
    )
    placement = probatio.Required(CONF_CONTEXT_PLACEMENT, default=DEFAULT_CONTEXT_PLACEMENT)
    return fields | {
        probatio.Optional(CONF_LEFT_OUT, default=list): SelectSelector(left_out),
        placement: _choice(CONF_CONTEXT_PLACEMENT, ContextPlacement),
    }


def _model_fields(account: Mapping[str, Any]) -> dict[Any, Any]:
    fields: dict[Any, Any] = {}
    if vendor_of(account) is not None:
        # what a server at home makes of an effort nobody knows; and buttons could not be left empty again
        efforts = SelectSelectorConfig(
            options=list(EFFORTS), translation_key=CONF_EFFORT, mode=SelectSelectorMode.DROPDOWN
        )
        fields[probatio.Optional(CONF_EFFORT)] = SelectSelector(efforts)
    temperature = NumberSelectorConfig(min=0, max=2, step=0.1, mode=NumberSelectorMode.BOX)
    fields |= {
        probatio.Optional(CONF_TEMPERATURE): NumberSelector(temperature),
        probatio.Optional(CONF_CONTEXT_TOKENS): window_size_selector(),
        probatio.Required(CONF_REPLY_TOKENS, default=DEFAULT_REPLY_TOKENS): window_size_selector(),
        probatio.Required(CONF_COUNTING, default=DEFAULT_COUNTING): _choice(CONF_COUNTING, Counting),
    }
    if compacts(account):
        compaction = probatio.Required(CONF_COMPACTION, default=DEFAULT_COMPACTION)
        fields[compaction] = _choice(CONF_COMPACTION, Compaction)
    return fields


def _limits_fields() -> dict[Any, Any]:
    return {
        probatio.Required(CONF_FIRST_WORD_TIMEOUT, default=DEFAULT_LIMITS.silence): number_selector(
            1, 300, UnitOfTime.SECONDS
        ),
        probatio.Required(CONF_TURN_TIMEOUT, default=DEFAULT_LIMITS.turn): number_selector(1, 600, UnitOfTime.SECONDS),
        probatio.Required(CONF_TOOL_ITERATIONS, default=DEFAULT_LIMITS.tool_iterations): number_selector(1, 50),
    }


class _Section(section):
    """A section at which its mistakes are told: Home Assistant would tell them at the top of the form, out of sight."""

    def __init__(self, fields: dict[Any, Any], *, collapsed: bool = True) -> None:
        super().__init__(probatio.Schema(fields), {"collapsed": collapsed})

    @override
    def __call__(self, value: Any) -> Any:
        try:
            return super().__call__(value)
        except probatio.MultipleInvalid as err:
            raise probatio.Invalid("; ".join(map(str, err.errors))) from err


class AgentFlow(ConfigSubentryFlow):
    """Add an agent, or change one."""

    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Add an agent."""
        return await self._async_agent_form(None)

    async def async_step_reconfigure(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Change an agent."""
        return await self._async_agent_form(None)

    async def async_step_agent(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Ask how an agent behaves."""
        return await self._async_agent_form(user_input)

    async def async_step_deployment(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Ask how an agent with a deployment on Azure behaves."""
        return await self._async_agent_form(user_input)

    async def _async_agent_form(self, user_input: dict[str, Any] | None) -> SubentryFlowResult:
        if self._get_entry().state is not ConfigEntryState.LOADED:
            return self.async_abort(reason="entry_not_loaded")
        errors: dict[str, str] = {}
        if user_input is not None:
            errors = self._errors(user_input)
            if not errors:
                return self._agent_entered(user_input)
        account, listed = self._get_entry().data, await self._models()
        if user_input is None and self._needs_a_name_typed(listed):
            errors = {CONF_MODEL: "no_models"}
        form = await self._schema(listed)
        return self.async_show_form(
            step_id="deployment" if has_deployments(account) else "agent",
            data_schema=self.add_suggested_values_to_schema(form, user_input or _in_sections(self._known(), form)),
            errors=errors,
        )

    def _known(self) -> dict[str, Any]:
        """Return what is known of the agent before anything is entered."""
        if self.source == SOURCE_USER:
            return _NEW_AGENT
        subentry = self._get_reconfigure_subentry()
        known = {CONF_NAME: subentry.title, **subentry.data}
        # a set of tools that no longer exists would make the form refuse what it suggests
        there = {api.id for api in llm.async_get_apis(self.hass)}
        known[CONF_LLM_HASS_API] = [api for api in known.get(CONF_LLM_HASS_API, ()) if api in there]
        return known

    def _needs_a_name_typed(self, listed: list[ListedModel]) -> bool:
        """Return whether a new agent's model is to be chosen from a list that has none."""
        account, is_new = self._get_entry().data, self.source == SOURCE_USER
        return self._has_model and is_new and not has_deployments(account) and not models_to_choose(account, listed)

    def _errors(self, user_input: dict[str, Any]) -> dict[str, str]:
        errors: dict[str, str] = {}
        if not user_input[CONF_NAME].strip():
            errors[CONF_NAME] = "name_missing"
        if self._has_model and not user_input[CONF_MODEL].strip():
            errors[CONF_MODEL] = "model_missing"
        return errors

    def _agent_entered(self, user_input: dict[str, Any]) -> SubentryFlowResult:
        data = _out_of_sections(user_input)
        title = data.pop(CONF_NAME).strip()
        if self._has_model:
            names = {name: data.pop(name, "").strip() for name in (CONF_MODEL, CONF_FAMILY)}
            data |= {name: value for name, value in names.items() if value}
        if self.source == SOURCE_USER:
            return self.async_create_entry(title=title, data=data)
        # the account's listener takes the change over
        entry, subentry = self._get_entry(), self._get_reconfigure_subentry()
        return self.async_update_and_abort(entry, subentry, title=title, data=data)

    @property
    def _has_model(self) -> bool:
        return bool(self._get_entry().data[CONF_PROVIDER] != PROVIDER_NONE)

    async def _schema(self, listed: list[ListedModel]) -> probatio.Schema:
        """Return the form: what makes an agent what it is, and in sections that are closed what few change."""
        account, has_model = self._get_entry().data, self._has_model
        fields: dict[Any, Any] = {probatio.Required(CONF_NAME): str}
        if has_model:
            fields |= {
                **await async_model_fields(self.hass, account, listed),
                probatio.Optional(CONF_PROMPT): TemplateSelector(),
                probatio.Optional(CONF_LLM_HASS_API, default=list): self._api_selector(),
                probatio.Required(CONF_ROUTING): _choice(CONF_ROUTING, Routing),
                probatio.Optional(CONF_OTHERS): self._others_selector(),
                probatio.Required(_MODEL_SETTINGS): _Section(_model_fields(account)),
            }
        conversations = _conversations_fields(has_model=has_model)
        fields[probatio.Required(_CONVERSATIONS)] = _Section(conversations, collapsed=has_model)
        if has_model:
            fields[probatio.Required(CONF_LIMITS)] = _Section(_limits_fields())
        return probatio.Schema(fields)

    def _others_selector(self) -> EntitySelector:
        """Return a field for all conversation entities but the agent's own."""
        config = EntitySelectorConfig(domain=Platform.CONVERSATION, multiple=True)
        if self.source == SOURCE_RECONFIGURE:
            agent_id = self._get_reconfigure_subentry().subentry_id
            own = er.async_get(self.hass).async_get_entity_id(Platform.CONVERSATION, DOMAIN, agent_id)
            config["exclude_entities"] = [own] if own else []
        return EntitySelector(config)

    def _api_selector(self) -> SelectSelector:
        apis = [SelectOptionDict(label=api.name, value=api.id) for api in llm.async_get_apis(self.hass)]
        return SelectSelector(SelectSelectorConfig(options=apis, multiple=True))

    async def _models(self) -> list[ListedModel]:
        """Return what the server offers, or offered last if it is away; any other name can be typed."""
        entry = self._get_entry()
        account: AccountData = entry.runtime_data
        if account.server is None or has_deployments(entry.data):
            return []
        return await account.server.async_models()
