"""The forms of an agent: how it behaves. Where its model is reached belongs to the account."""

from collections.abc import Mapping
from typing import Any

from homeassistant.config_entries import (
    SOURCE_RECONFIGURE,
    SOURCE_USER,
    ConfigEntryState,
    ConfigSubentryFlow,
    SubentryFlowResult,
)
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT, Platform, UnitOfTime
from homeassistant.core import HomeAssistant
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

from .agent import AccountData
from .bridge.account import compacts, vendor_of
from .bridge.models import async_families
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
    PROVIDER_AZURE,
    PROVIDER_NONE,
    Compaction,
    Counting,
)
from .options_flow import number_selector, window_size_selector
from .providers.errors import ProviderError
from .providers.events import ListedModel
from .providers.profiles import Vendor
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


def model_selector(models: list[ListedModel]) -> SelectSelector:
    """Return a field that offers the models and takes any other name, too."""
    return _name_selector([model.id for model in models])


async def async_family_fields(hass: HomeAssistant, account: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the field for what a deployment runs, none where the model's own name says it."""
    if account[CONF_PROVIDER] != PROVIDER_AZURE:
        return {}
    return {probatio.Optional(CONF_FAMILY): _name_selector(await async_families(hass, Vendor.AZURE))}


def _name_selector(names: list[str]) -> SelectSelector:
    return SelectSelector(SelectSelectorConfig(options=names, custom_value=True, mode=SelectSelectorMode.DROPDOWN))


def _limits_schema() -> probatio.Schema:
    return probatio.Schema(
        {
            probatio.Required(CONF_FIRST_WORD_TIMEOUT, default=DEFAULT_LIMITS.silence): number_selector(
                1, 300, UnitOfTime.SECONDS
            ),
            probatio.Required(CONF_TURN_TIMEOUT, default=DEFAULT_LIMITS.turn): number_selector(
                1, 600, UnitOfTime.SECONDS
            ),
            probatio.Required(CONF_TOOL_ITERATIONS, default=DEFAULT_LIMITS.tool_iterations): number_selector(1, 50),
        }
    )


class AgentFlow(ConfigSubentryFlow):
    """Add an agent, or change one."""

    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Add an agent."""
        return await self._async_agent_form("user", user_input, _NEW_AGENT)

    async def async_step_reconfigure(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Change an agent."""
        subentry = self._get_reconfigure_subentry()
        known = {CONF_NAME: subentry.title, **subentry.data}
        # a set of tools that no longer exists would make the form refuse what it suggests
        there = {api.id for api in llm.async_get_apis(self.hass)}
        known[CONF_LLM_HASS_API] = [api for api in known.get(CONF_LLM_HASS_API, ()) if api in there]
        return await self._async_agent_form("reconfigure", user_input, known)

    async def _async_agent_form(
        self, step_id: str, user_input: dict[str, Any] | None, known: dict[str, Any]
    ) -> SubentryFlowResult:
        if self._get_entry().state is not ConfigEntryState.LOADED:
            return self.async_abort(reason="entry_not_loaded")
        errors: dict[str, str] = {}
        if user_input is not None:
            errors = self._errors(user_input)
            if not errors:
                return self._agent_entered(user_input)
        return self.async_show_form(
            step_id=step_id,
            data_schema=self.add_suggested_values_to_schema(await self._schema(), user_input or known),
            errors=errors,
        )

    def _errors(self, user_input: dict[str, Any]) -> dict[str, str]:
        errors: dict[str, str] = {}
        if not user_input[CONF_NAME].strip():
            errors[CONF_NAME] = "name_missing"
        if self._has_model and not user_input[CONF_MODEL].strip():
            errors[CONF_MODEL] = "model_missing"
        return errors

    def _agent_entered(self, user_input: dict[str, Any]) -> SubentryFlowResult:
        data = {key: value for key, value in user_input.items() if key != CONF_NAME}
        if self._has_model:
            names = {name: data.pop(name, "").strip() for name in (CONF_MODEL, CONF_FAMILY)}
            data |= {name: value for name, value in names.items() if value}
        title = user_input[CONF_NAME].strip()
        if self.source == SOURCE_USER:
            return self.async_create_entry(title=title, data=data)
        # the account's listener takes the change over
        entry, subentry = self._get_entry(), self._get_reconfigure_subentry()
        return self.async_update_and_abort(entry, subentry, title=title, data=data)

    @property
    def _has_model(self) -> bool:
        return bool(self._get_entry().data[CONF_PROVIDER] != PROVIDER_NONE)

    async def _schema(self) -> probatio.Schema:
        fields: dict[Any, Any] = {probatio.Required(CONF_NAME): str}
        if self._has_model:
            fields |= {
                probatio.Required(CONF_MODEL): model_selector(await self._models()),
                **await async_family_fields(self.hass, self._get_entry().data),
                probatio.Optional(CONF_PROMPT): TemplateSelector(),
                probatio.Optional(CONF_LLM_HASS_API, default=list): self._api_selector(),
                probatio.Required(CONF_ROUTING): SelectSelector(
                    SelectSelectorConfig(options=list(Routing), translation_key=CONF_ROUTING)
                ),
            }
        scopes = SelectSelectorConfig(options=list(Scope), translation_key=CONF_SCOPE)
        fields[probatio.Required(CONF_SCOPE, default=DEFAULT_SCOPE)] = SelectSelector(scopes)
        fields[probatio.Optional(CONF_HISTORY_TOKENS)] = window_size_selector()
        if self._has_model:
            left_out = SelectSelectorConfig(
                options=_OFTEN_LEFT_OUT, multiple=True, custom_value=True, mode=SelectSelectorMode.DROPDOWN
            )
            fields[probatio.Optional(CONF_LEFT_OUT, default=list)] = SelectSelector(left_out)
            placement = SelectSelectorConfig(options=list(ContextPlacement), translation_key=CONF_CONTEXT_PLACEMENT)
            default = DEFAULT_CONTEXT_PLACEMENT
            fields[probatio.Required(CONF_CONTEXT_PLACEMENT, default=default)] = SelectSelector(placement)
            fields[probatio.Optional(CONF_CONTEXT_TOKENS)] = window_size_selector()
            fields[probatio.Required(CONF_REPLY_TOKENS, default=DEFAULT_REPLY_TOKENS)] = window_size_selector()
            counting = SelectSelectorConfig(options=list(Counting), translation_key=CONF_COUNTING)
            fields[probatio.Required(CONF_COUNTING, default=DEFAULT_COUNTING)] = SelectSelector(counting)
            if compacts(self._get_entry().data):
                compactions = SelectSelectorConfig(options=list(Compaction), translation_key=CONF_COMPACTION)
                fields[probatio.Required(CONF_COMPACTION, default=DEFAULT_COMPACTION)] = SelectSelector(compactions)
            fields |= self._choices_of_the_model()
            fields[probatio.Optional(CONF_OTHERS)] = self._others_selector()
            fields[probatio.Required(CONF_LIMITS)] = section(_limits_schema(), {"collapsed": True})
        return probatio.Schema(fields)

    def _choices_of_the_model(self) -> dict[Any, Any]:
        """Return the fields for how the model answers; what a server at home makes of an effort nobody knows."""
        fields: dict[Any, Any] = {}
        if vendor_of(self._get_entry().data) is not None:
            # buttons could not be left empty again
            efforts = SelectSelectorConfig(
                options=list(EFFORTS), translation_key=CONF_EFFORT, mode=SelectSelectorMode.DROPDOWN
            )
            fields[probatio.Optional(CONF_EFFORT)] = SelectSelector(efforts)
        temperature = NumberSelectorConfig(min=0, max=2, step=0.1, mode=NumberSelectorMode.BOX)
        fields[probatio.Optional(CONF_TEMPERATURE)] = NumberSelector(temperature)
        return fields

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
        """Return what the server offers now; a server that is away offers nothing, and a name can be typed."""
        account: AccountData = self._get_entry().runtime_data
        try:
            return await account.provider.list_models() if account.provider else []
        except ProviderError:
            return []
