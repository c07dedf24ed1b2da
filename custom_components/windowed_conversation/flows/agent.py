"""The forms of an agent. The URL and the key of its model belong to the account."""

from collections.abc import Collection
from typing import Any

from homeassistant.config_entries import (
    SOURCE_RECONFIGURE,
    SOURCE_USER,
    ConfigEntryState,
    ConfigSubentryFlow,
    SubentryFlowResult,
)
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT, Platform
from homeassistant.helpers import entity_registry as er, llm
from homeassistant.helpers.selector import (
    EntitySelector,
    EntitySelectorConfig,
    SelectOptionDict,
    SelectSelector,
    SelectSelectorConfig,
    TemplateSelector,
)
import probatio

from ..agents.agent import AccountData
from ..agents.config import DEFAULT_ROUTING
from ..const import CONF_FALLBACK_AGENTS, CONF_FAMILY, CONF_PROVIDER, CONF_ROUTING, DOMAIN, MEMORY_API, PROVIDER_NONE
from ..providers import ListedModel
from ..turn.routing import Routing
from .agent_sections import agent_sections, choice, in_sections, out_of_sections, sections_in_use
from .model_fields import async_model_fields, has_deployments, models_to_choose, suggested_model
from .names import agent_name, name_or_suggestion
from .numbers import limits_of

_PRIVACY_PAGE = "https://github.com/windowed-conversation/windowed-conversation/blob/main/docs/privacy.md"

_NEW_AGENT: dict[str, Any] = {
    CONF_PROMPT: llm.DEFAULT_INSTRUCTIONS_PROMPT,
    CONF_LLM_HASS_API: [llm.LLM_API_ASSIST],
    CONF_ROUTING: DEFAULT_ROUTING,
}


class AgentFlow(ConfigSubentryFlow):
    """The subentry flow that adds an agent, or changes one."""

    # The name that the form of a new agent suggests.
    _suggested_name = ""

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
        known = in_sections(self._known(listed), account)
        form = await self._schema(listed, sections_in_use(account, known, user_input))
        return self.async_show_form(
            step_id="deployment" if has_deployments(account) else "agent",
            data_schema=self.add_suggested_values_to_schema(form, user_input or known),
            errors=errors,
            description_placeholders={**limits_of(form), "privacy_page": _PRIVACY_PAGE},
        )

    def _known(self, listed: list[ListedModel]) -> dict[str, Any]:
        """Return the agent's known data before anything is entered."""
        if self.source == SOURCE_USER:
            account = self._get_entry().data
            self._suggested_name = agent_name(self.hass, account, suggested_model(account, listed))
            return {CONF_NAME: self._suggested_name, **_NEW_AGENT}
        subentry = self._get_reconfigure_subentry()
        known = {CONF_NAME: subentry.title, CONF_PROMPT: llm.DEFAULT_INSTRUCTIONS_PROMPT, **subentry.data}
        # the form would refuse its own suggestion if it included an API that no longer exists
        there = {api.id for api in self._apis()}
        known[CONF_LLM_HASS_API] = [api for api in known.get(CONF_LLM_HASS_API, ()) if api in there]
        return known

    def _needs_a_name_typed(self, listed: list[ListedModel]) -> bool:
        """Return whether a new agent needs a model name although the list offers none."""
        account, is_new = self._get_entry().data, self.source == SOURCE_USER
        return self._has_model and is_new and not has_deployments(account) and not models_to_choose(account, listed)

    def _errors(self, user_input: dict[str, Any]) -> dict[str, str]:
        errors: dict[str, str] = {}
        if self.source == SOURCE_RECONFIGURE and not user_input[CONF_NAME].strip():
            errors[CONF_NAME] = "name_missing"
        if self._has_model and not user_input[CONF_MODEL].strip():
            errors[CONF_MODEL] = "model_missing"
        return errors

    def _agent_entered(self, user_input: dict[str, Any]) -> SubentryFlowResult:
        data = out_of_sections(user_input)
        entered = data.pop(CONF_NAME, "")
        if self._has_model:
            names = {name: data.pop(name, "").strip() for name in (CONF_MODEL, CONF_FAMILY)}
            data |= {name: value for name, value in names.items() if value}
        if self.source == SOURCE_USER:
            account, suggested = self._get_entry().data, self._suggested_name
            name = name_or_suggestion(self.hass, account, entered, suggested, data.get(CONF_MODEL, ""))
            return self.async_create_entry(title=name, data=data)
        # the account's update listener applies the change
        entry, subentry = self._get_entry(), self._get_reconfigure_subentry()
        return self.async_update_and_abort(entry, subentry, title=entered.strip(), data=data)

    @property
    def _has_model(self) -> bool:
        return bool(self._get_entry().data[CONF_PROVIDER] != PROVIDER_NONE)

    async def _schema(self, listed: list[ListedModel], opened: Collection[str]) -> probatio.Schema:
        """Return the form. Settings that are rarely changed are in sections."""
        account = self._get_entry().data
        # a browser submits no required field that is empty
        may_be_empty = self.source == SOURCE_USER and not self._suggested_name
        fields: dict[Any, Any] = {(probatio.Optional if may_be_empty else probatio.Required)(CONF_NAME): str}
        if self._has_model:
            fields |= {
                **await async_model_fields(self.hass, account, listed),
                probatio.Optional(CONF_PROMPT): TemplateSelector(),
                probatio.Optional(CONF_LLM_HASS_API, default=list): self._api_selector(),
                probatio.Required(CONF_ROUTING): choice(CONF_ROUTING, Routing),
                probatio.Optional(CONF_FALLBACK_AGENTS): self._fallback_selector(),
            }
        return probatio.Schema(fields | agent_sections(account, opened))

    def _fallback_selector(self) -> EntitySelector:
        """Return a field for all conversation entities except the agent's own."""
        config = EntitySelectorConfig(domain=Platform.CONVERSATION, multiple=True)
        if self.source == SOURCE_RECONFIGURE:
            agent_id = self._get_reconfigure_subentry().subentry_id
            own = er.async_get(self.hass).async_get_entity_id(Platform.CONVERSATION, DOMAIN, agent_id)
            config["exclude_entities"] = [own] if own else []
        return EntitySelector(config)

    def _apis(self) -> list[llm.API]:
        """Return the sets of tools to choose from: all but the memory's, for which an agent has tools of its own."""
        return [api for api in llm.async_get_apis(self.hass) if api.id != MEMORY_API]

    def _api_selector(self) -> SelectSelector:
        apis = [SelectOptionDict(label=api.name, value=api.id) for api in self._apis()]
        return SelectSelector(SelectSelectorConfig(options=apis, multiple=True))

    async def _models(self) -> list[ListedModel]:
        """Return the models that the server offers, or last offered if it is away. Any other name can be typed."""
        entry = self._get_entry()
        account: AccountData = entry.runtime_data
        if account.server is None or has_deployments(entry.data):
            return []
        return await account.server.async_models()
