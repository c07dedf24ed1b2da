"""The forms of an agent: how it behaves. Where its model is reached belongs to the account."""

from typing import Any

from homeassistant.config_entries import (
    SOURCE_USER,
    ConfigEntryState,
    ConfigSubentryFlow,
    SubentryFlowResult,
)
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT, UnitOfTime
from homeassistant.data_entry_flow import section
from homeassistant.helpers import llm
from homeassistant.helpers.selector import (
    SelectOptionDict,
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
    TemplateSelector,
)
import probatio

from .agent import AccountData
from .bridge.account import compacts
from .const import (
    CONF_COMPACTION,
    CONF_CONTEXT_TOKENS,
    CONF_COUNTING,
    CONF_FIRST_WORD_TIMEOUT,
    CONF_HISTORY_TOKENS,
    CONF_LEFT_OUT,
    CONF_LIMITS,
    CONF_PROVIDER,
    CONF_REPLY_TOKENS,
    CONF_ROUTING,
    CONF_SCOPE,
    CONF_TOOL_ITERATIONS,
    CONF_TURN_TIMEOUT,
    DEFAULT_AGENT_NAME,
    DEFAULT_COMPACTION,
    DEFAULT_COUNTING,
    DEFAULT_LIMITS,
    DEFAULT_REPLY_TOKENS,
    DEFAULT_ROUTING,
    DEFAULT_SCOPE,
    PROVIDER_NONE,
    Compaction,
    Counting,
)
from .options_flow import number_selector, window_size_selector
from .providers.errors import ProviderError
from .providers.events import ListedModel
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
    return SelectSelector(
        SelectSelectorConfig(
            options=[model.id for model in models], custom_value=True, mode=SelectSelectorMode.DROPDOWN
        )
    )


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
            data[CONF_MODEL] = data[CONF_MODEL].strip()
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
            fields[probatio.Optional(CONF_CONTEXT_TOKENS)] = window_size_selector()
            fields[probatio.Required(CONF_REPLY_TOKENS, default=DEFAULT_REPLY_TOKENS)] = window_size_selector()
            counting = SelectSelectorConfig(options=list(Counting), translation_key=CONF_COUNTING)
            fields[probatio.Required(CONF_COUNTING, default=DEFAULT_COUNTING)] = SelectSelector(counting)
            if compacts(self._get_entry().data):
                compactions = SelectSelectorConfig(options=list(Compaction), translation_key=CONF_COMPACTION)
                fields[probatio.Required(CONF_COMPACTION, default=DEFAULT_COMPACTION)] = SelectSelector(compactions)
            fields[probatio.Required(CONF_LIMITS)] = section(_limits_schema(), {"collapsed": True})
        return probatio.Schema(fields)

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
