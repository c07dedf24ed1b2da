"""The repair flows: another model, settings of an agent, and a file that is deleted or kept."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from homeassistant.components.repairs import FlowType, RepairsFlow, RepairsFlowResult
from homeassistant.config_entries import SOURCE_RECONFIGURE
from homeassistant.const import CONF_MODEL
from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
import probatio

from .agents.agent import Agent, async_find_agent
from .agents.issues import ATTR_OWNER, Issue, async_find_issue
from .agents.live_context import calculate_live_limit
from .agents.setup import async_change_damaged_file, async_delete_leftover_file
from .bridge.errors import format_count
from .const import CONF_FAMILY
from .flows.account import MODEL_ERRORS, VerifiedAccount, async_try_model
from .flows.agent import async_weigh_agent, format_weight
from .flows.fields import async_build_model_fields, get_model_field, has_deployments, pop_model_names
from .store import delete_damaged_file, keep_damaged_file

type FileChange = Callable[[HomeAssistant], Coroutine[Any, Any, bool]]


class IssueFlow(RepairsFlow):
    """The base of the flows. An issue may be solved, or its account unloaded, while its flow is open."""

    @property
    def _issue(self) -> ir.IssueEntry | None:
        return async_find_issue(self.hass, self.issue_id)

    @property
    def _placeholders(self) -> dict[str, str]:
        return (self._issue and self._issue.translation_placeholders) or {}

    def _find_agent(self) -> Agent | None:
        """Return the agent or the AI task of the issue, or None if nothing can be changed any more."""
        issue = self._issue
        return None if issue is None else async_find_agent(self.hass, str((issue.data or {}).get(ATTR_OWNER)))

    def _abort_unchanged(self) -> RepairsFlowResult:
        return self.async_abort(reason="not_possible")


class FileFlow(IssueFlow):
    """Offers changes to a file. Each keyword argument is named after the step that makes the change."""

    def __init__(self, **changes: FileChange) -> None:
        self._changes = changes

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Offer the changes."""
        return self.async_show_menu(menu_options=[*self._changes], description_placeholders=self._placeholders)

    async def async_step_delete(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Delete the file."""
        return await self._async_finish("delete")

    async def async_step_keep(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Keep the file permanently."""
        return await self._async_finish("keep")

    async def _async_finish(self, name: str) -> RepairsFlowResult:
        is_done = self._issue is not None and await self._changes[name](self.hass)
        return self.async_create_entry(data={}) if is_done else self._abort_unchanged()


class RetiredModelFlow(IssueFlow):
    """Asks for another model for an agent. Home Assistant passes the id of the issue as the input of the first step."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Open the form."""
        return await self.async_step_model()

    async def async_step_model(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Ask for the model, and try it."""
        agent = self._find_agent()
        if agent is None or (server := agent.entry.runtime_data.server) is None:
            return self._abort_unchanged()
        account, errors = agent.entry.data, dict[str, str]()
        field, models = get_model_field(account), [] if has_deployments(account) else await server.async_list_models()
        if user_input is not None:
            model, verified = user_input[field].strip(), VerifiedAccount({**account}, server.provider, models)
            if model and await async_try_model(verified, model) not in MODEL_ERRORS:
                return self._save(user_input)
            errors = {field: "model_refused"}
        schema = probatio.Schema(await async_build_model_fields(self.hass, account, models))
        return self.async_show_form(
            step_id="model",
            data_schema=self.add_suggested_values_to_schema(schema, user_input),
            errors=errors,
            description_placeholders=self._placeholders,
        )

    def _save(self, entered: dict[str, Any]) -> RepairsFlowResult:
        agent = self._find_agent()
        if agent is None or (subentry := agent.entry.subentries.get(agent.id)) is None:
            return self._abort_unchanged()
        others = {name: value for name, value in subentry.data.items() if name not in (CONF_MODEL, CONF_FAMILY)}
        data = others | pop_model_names(agent.entry.data, {**entered})
        # the account's update listener applies the change
        self.hass.config_entries.async_update_subentry(agent.entry, subentry, data=data)
        return self.async_create_entry(data={})


class SmallModelFlow(IssueFlow):
    """Shows what the requests of an agent weigh, and opens its settings. The set-up clears the issue if they fit."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Show the weight of the requests."""
        agent = self._find_agent()
        if agent is None:
            return self._abort_unchanged()
        language = self.hass.config.language
        weight = format_weight(await async_weigh_agent(agent), language)
        # a model that is too small has no room for it
        weight["live_context"] = format_count(calculate_live_limit(agent.config), language)
        return self.async_show_menu(menu_options=["settings"], description_placeholders=weight | self._placeholders)

    async def async_step_settings(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Open the form of the agent."""
        agent = self._find_agent()
        if agent is None or (subentry := agent.entry.subentries.get(agent.id)) is None:
            return self._abort_unchanged()
        form = await self.hass.config_entries.subentries.async_init(
            (agent.entry.entry_id, subentry.subentry_type),
            context={"source": SOURCE_RECONFIGURE, "subentry_id": agent.id},
        )
        return self.async_abort(
            reason="settings_opened",
            description_placeholders=self._placeholders,
            next_flow=(FlowType.CONFIG_SUBENTRIES_FLOW, form["flow_id"]),
        )


_FLOW_BY_ISSUE: dict[str, Callable[[], RepairsFlow]] = {
    Issue.MODEL_RETIRED: RetiredModelFlow,
    Issue.MODEL_TOO_SMALL: SmallModelFlow,
    Issue.MEMORY_DAMAGED: partial(
        FileFlow,
        delete=partial(async_change_damaged_file, delete_damaged_file),
        keep=partial(async_change_damaged_file, keep_damaged_file),
    ),
    Issue.MEMORY_LEFTOVER: partial(FileFlow, delete=async_delete_leftover_file),
}


async def async_create_fix_flow(
    hass: HomeAssistant, issue_id: str, data: dict[str, str | int | float | None] | None
) -> RepairsFlow:
    """Return the repair flow of a fixable issue."""
    issue = async_find_issue(hass, issue_id)
    assert issue is not None
    return _FLOW_BY_ISSUE[issue.translation_key or ""]()
