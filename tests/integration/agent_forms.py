"""The form of an agent, as Home Assistant's frontend shows and submits it, field by field."""

from collections.abc import Mapping
from typing import Any, override

from homeassistant.config_entries import SOURCE_USER
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import section
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_PLACEMENT,
    CONF_COUNTING,
    CONF_EXCLUDED_TAGS,
    CONF_FALLBACK_TIMEOUT,
    CONF_HEAD_START,
    CONF_IDLE_TIMEOUT,
    CONF_LIMITS,
    CONF_MAX_ANSWER_TOKENS,
    CONF_MEMORY,
    CONF_RECORD,
    CONF_ROUTING,
    CONF_SCOPE,
    CONF_STATES,
    CONF_STATES_DOMAINS,
    CONF_TOOL_ITERATIONS,
    CONF_TURN_TIMEOUT,
    SUBENTRY_CONVERSATION,
)

from .conftest import Submit

LIMITS = {CONF_FALLBACK_TIMEOUT: 8, CONF_IDLE_TIMEOUT: 5, CONF_TURN_TIMEOUT: 30, CONF_TOOL_ITERATIONS: 3}
FRIDAY: dict[str, Any] = {
    CONF_NAME: "Friday",
    CONF_MODEL: "scripted",
    CONF_PROMPT: "You are {{ 'Friday' }}.",
    CONF_LLM_HASS_API: ["assist"],
    CONF_ROUTING: "llm_only",
    CONF_SCOPE: "device",
    CONF_EXCLUDED_TAGS: ["route:local"],
    CONF_CONTEXT_PLACEMENT: "system",
    CONF_MEMORY: False,
    CONF_RECORD: "whole",
    CONF_STATES: True,
    CONF_STATES_DOMAINS: ["timer"],
    CONF_MAX_ANSWER_TOKENS: 500,
    CONF_COUNTING: "estimate",
    CONF_HEAD_START: True,
    CONF_LIMITS: LIMITS,
}


class AgentForm(Submit):
    """Submits an agent's form: every section that is shown is sent, with those of its fields that are entered."""

    @override
    async def __call__(self, **user_input: Any) -> Any:
        """Return the step after the form; a field that it does not show is sent beside the sections."""
        entered, sections = dict(user_input), dict[str, Any]()
        for name, fields in sections_of(self).items():
            inside = {field: entered.pop(field) for field in fields if field in entered}
            sections[name] = entered.pop(name, {}) | inside
        return await super().__call__(**entered, **sections)


async def open_new(home: HomeAssistant, entry: MockConfigEntry) -> AgentForm:
    """Open the form of a new agent."""
    flows = home.config_entries.subentries
    kind = (entry.entry_id, SUBENTRY_CONVERSATION)
    return AgentForm(home, flows, await flows.async_init(kind, context={"source": SOURCE_USER}))


async def open_change(home: HomeAssistant, entry: MockConfigEntry) -> AgentForm:
    """Open the form that changes the account's first agent."""
    shown = await entry.start_subentry_reconfigure_flow(home, next(iter(entry.subentries)))
    return AgentForm(home, home.config_entries.subentries, shown)


def sections_of(form: Submit) -> dict[str, dict[str, Any]]:
    """Return the fields of the sections that are shown, by the sections' names."""
    schema = form.shown.get("data_schema")
    shown = schema.schema if schema else {}
    return {
        str(name): {str(field): value for field, value in each.schema.schema.items()}
        for name, each in shown.items()
        if isinstance(each, section)
    }


def fields_of(form: Submit) -> dict[str, Any]:
    """Return the fields of the form with their selectors, in the order in which they are shown."""
    return {str(marker): value for marker, value in _shown(form.shown["data_schema"].schema)}


def suggested(form: Submit) -> dict[str, Any]:
    """Return the values that the form suggests, by field."""
    markers = [marker for marker, _ in _shown(form.shown["data_schema"].schema)]
    return {str(marker): marker.description["suggested_value"] for marker in markers if marker.description}


def default_of(form: Submit, field: str) -> Any:
    """Return the default of a field."""
    return next(marker.default() for marker, _ in _shown(form.shown["data_schema"].schema) if marker == field)


def _shown(fields: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return [
        shown
        for marker, value in fields.items()
        for shown in (_shown(value.schema.schema) if isinstance(value, section) else [(marker, value)])
    ]
