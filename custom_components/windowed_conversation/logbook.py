"""Logbook entries for each turn (who answered, how fast, or why the turn failed) and each deletion from memory."""

from collections.abc import Callable, Mapping
from typing import Any

from homeassistant.components.logbook.const import LOGBOOK_ENTRY_ENTITY_ID, LOGBOOK_ENTRY_MESSAGE, LOGBOOK_ENTRY_NAME
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.helpers.translation import async_get_cached_translations

from .bridge.errors import ERROR_KEYS, plural
from .bridge.turn_report import EVENT_FORGOTTEN, EVENT_TURN
from .const import DOMAIN
from .providers import Redirected
from .turn.errors import LocalAnswerFailed
from .turn.routing import Route

# In seconds: shorter times would be displayed as 0.0.
_SHORTEST_SHOWN = 0.05


@callback
def async_describe_events(
    hass: HomeAssistant, async_describe_event: Callable[[str, str, Callable[[Event], dict[str, Any]]], None]
) -> None:
    """Register how the events of turns and of forgetting are described."""

    def describe(sentence: Callable[[HomeAssistant, Mapping[str, Any]], str]) -> Callable[[Event], dict[str, Any]]:
        @callback
        def row(event: Event) -> dict[str, Any]:
            entity_id = event.data[ATTR_ENTITY_ID]
            return {
                LOGBOOK_ENTRY_NAME: _name(hass, entity_id),
                LOGBOOK_ENTRY_MESSAGE: sentence(hass, event.data),
                LOGBOOK_ENTRY_ENTITY_ID: entity_id,
            }

        return row

    async_describe_event(DOMAIN, EVENT_TURN, describe(_sentence))
    async_describe_event(DOMAIN, EVENT_FORGOTTEN, describe(_forgotten))


def _sentence(hass: HomeAssistant, turn: Mapping[str, Any]) -> str:
    if turn["error"]:
        return _failure(hass, turn["error"])
    if turn["route"] == Route.LOCAL:
        return _common(hass, "answered_locally")
    by_model, seconds = turn["route"] == Route.LLM, f"{turn['duration']:.1f}"
    if turn["duration"] < _SHORTEST_SHOWN:
        if by_model:
            return _common(hass, "answered_by_model_at_once")
        return _common(hass, "answered_by_agent_at_once", agent=_name(hass, turn["answered_by"]))
    if by_model:
        return _common(hass, "answered_by_model", seconds=seconds)
    return _common(hass, "answered_by_agent", agent=_name(hass, turn["answered_by"]), seconds=seconds)


def _forgotten(hass: HomeAssistant, forgotten: Mapping[str, Any]) -> str:
    count: int = forgotten["exchanges"]
    return _common(hass, f"forgotten_exchanges_{plural(hass.config.language, count)}", count=str(count))


def _failure(hass: HomeAssistant, error: str) -> str:
    """Return the reason of a failed turn. Its event contains neither core's error text nor the URL of a redirect."""
    if error == ERROR_KEYS[LocalAnswerFailed.__name__]:
        return _common(hass, "failed_locally")
    if error == ERROR_KEYS[Redirected.__name__]:
        return _common(hass, "failed_redirected")
    return _common(hass, "failed_because", reason=_text(hass, "exceptions", f"{error}.message"))


def _name(hass: HomeAssistant, entity_id: str) -> str:
    state = hass.states.get(entity_id)
    return state.name if state else entity_id


def _common(hass: HomeAssistant, key: str, **placeholders: str) -> str:
    return _text(hass, "common", key).format(**placeholders)


def _text(hass: HomeAssistant, category: str, key: str) -> str:
    """Return a translated text in Home Assistant's language, or an empty string if there is none."""
    texts = async_get_cached_translations(hass, hass.config.language, category, DOMAIN)
    return texts.get(f"component.{DOMAIN}.{category}.{key}", "")
