"""What Home Assistant's activity says of a turn: who answered, how fast, or why nobody did. No text that was said."""

from collections.abc import Callable, Mapping
from typing import Any

from homeassistant.components.logbook.const import LOGBOOK_ENTRY_ENTITY_ID, LOGBOOK_ENTRY_MESSAGE, LOGBOOK_ENTRY_NAME
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.helpers.translation import async_get_cached_translations

from .bridge.turn_report import EVENT_TURN
from .const import DOMAIN
from .turn.routing import Route


@callback
def async_describe_events(
    hass: HomeAssistant, async_describe_event: Callable[[str, str, Callable[[Event], dict[str, Any]]], None]
) -> None:
    """Say what a turn's event means."""

    @callback
    def describe_turn(event: Event) -> dict[str, Any]:
        entity_id = event.data[ATTR_ENTITY_ID]
        return {
            LOGBOOK_ENTRY_NAME: _name(hass, entity_id),
            LOGBOOK_ENTRY_MESSAGE: _sentence(hass, event.data),
            LOGBOOK_ENTRY_ENTITY_ID: entity_id,
        }

    async_describe_event(DOMAIN, EVENT_TURN, describe_turn)


def _sentence(hass: HomeAssistant, turn: Mapping[str, Any]) -> str:
    seconds = f"{turn['duration']:.1f}"
    if turn["error"]:
        reason = _text(hass, "exceptions", f"{turn['error']}.message")
        # the event has no figures for a sentence with placeholders
        if not reason or "{" in reason:
            return _common(hass, "failed")
        return _common(hass, "failed_because", reason=reason)
    if turn["route"] == Route.LOCAL:
        return _common(hass, "answered_locally")
    if turn["route"] == Route.LLM:
        return _common(hass, "answered_by_model", seconds=seconds)
    return _common(hass, "answered_by_agent", agent=_name(hass, turn["answered_by"]), seconds=seconds)


def _name(hass: HomeAssistant, entity_id: str) -> str:
    state = hass.states.get(entity_id)
    return state.name if state else entity_id


def _common(hass: HomeAssistant, key: str, **placeholders: str) -> str:
    return _text(hass, "common", key).format(**placeholders)


def _text(hass: HomeAssistant, category: str, key: str) -> str:
    """Return a text in Home Assistant's language, empty if there is none."""
    texts = async_get_cached_translations(hass, hass.config.language, category, DOMAIN)
    return texts.get(f"component.{DOMAIN}.{category}.{key}", "")
