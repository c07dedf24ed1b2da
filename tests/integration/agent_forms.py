"""Helpers for the form of an agent."""

from collections.abc import Mapping
from typing import Any

from homeassistant.config_entries import SOURCE_USER
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import section
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_ASK_BEFORE_OPENING,
    CONF_CAMERAS,
    CONF_CONTEXT_PLACEMENT,
    CONF_EXACT_COUNTING,
    CONF_MAX_ANSWER_TOKENS,
    CONF_MEMORY,
    CONF_RECORD,
    CONF_ROUTING,
    CONF_SCOPE,
    CONF_STATES,
    CONF_TURN_TIMEOUT,
    SUBENTRY_CONVERSATION,
)

from .conftest import Submit

FRIDAY: dict[str, Any] = {
    CONF_NAME: "Friday",
    CONF_MODEL: "scripted",
    CONF_PROMPT: "You are {{ 'Friday' }}.",
    CONF_LLM_HASS_API: ["assist"],
    CONF_ROUTING: "model_only",
    CONF_SCOPE: "device",
    CONF_CONTEXT_PLACEMENT: "system",
    CONF_MEMORY: "off",
    CONF_RECORD: "full",
    CONF_STATES: True,
    CONF_CAMERAS: False,
    CONF_ASK_BEFORE_OPENING: "always",
    CONF_MAX_ANSWER_TOKENS: 500,
    CONF_EXACT_COUNTING: False,
    CONF_TURN_TIMEOUT: 30,
}


async def open_new(home: HomeAssistant, entry: MockConfigEntry) -> Submit:
    """Open the form for a new agent, and return it."""
    flows = home.config_entries.subentries
    kind = (entry.entry_id, SUBENTRY_CONVERSATION)
    return Submit(home, flows, await flows.async_init(kind, context={"source": SOURCE_USER}))


async def open_agent_form(home: HomeAssistant, entry: MockConfigEntry) -> Submit:
    """Open the form that changes the account's first agent, and return it."""
    shown = await entry.start_subentry_reconfigure_flow(home, next(iter(entry.subentries)))
    return Submit(home, home.config_entries.subentries, shown)


def get_selectors(form: Submit) -> dict[str, Any]:
    """Return the selectors of the form by field name, in display order."""
    return {str(marker): value for marker, value in _shown(form.shown["data_schema"].schema)}


def suggested(form: Submit) -> dict[str, Any]:
    """Return the suggested values of the form by field name."""
    markers = [marker for marker, _ in _shown(form.shown["data_schema"].schema)]
    return {str(marker): marker.description["suggested_value"] for marker in markers if marker.description}


def get_default(form: Submit, field: str) -> Any:
    """Return the default value of a field in the form."""
    return next(marker.default() for marker, _ in _shown(form.shown["data_schema"].schema) if marker == field)


def _shown(fields: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return [
        shown
        for marker, value in fields.items()
        for shown in (_shown(value.schema.schema) if isinstance(value, section) else [(marker, value)])
    ]
