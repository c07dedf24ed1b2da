"""Logbook entries for each turn, each promised answer, and each deletion or replacement in memory."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from homeassistant.components.logbook.const import LOGBOOK_ENTRY_ENTITY_ID, LOGBOOK_ENTRY_MESSAGE, LOGBOOK_ENTRY_NAME
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.helpers.translation import async_get_cached_translations

from .bridge.delivery import Delivery
from .bridge.errors import ERROR_KEY_BY_CLASS_NAME, format_decimal, plural_form
from .bridge.turn_report import EVENT_ANSWER, EVENT_FORGOTTEN, EVENT_REMINDER, EVENT_REPLACED, EVENT_TURN
from .const import DOMAIN
from .memory.turn.speaker import SpeakerSource
from .providers import Redirected
from .turn.errors import LocalAnswerFailed
from .turn.routing import Route

_MIN_DURATION_SECONDS = 0.1

# The text of each route, except for fallback agents.
_ANSWER_KEYS: dict[str, str] = {Route.LOCAL: "answered_locally", Route.MODEL: "answered_by_model"}


@callback
def async_describe_events(
    hass: HomeAssistant, async_describe_event: Callable[[str, str, Callable[[Event], dict[str, Any]]], None]
) -> None:
    """Register how the events of turns and of forgetting are described."""
    for event_type, format_text in (
        (EVENT_TURN, _format_turn),
        (EVENT_ANSWER, _format_promise),
        (EVENT_FORGOTTEN, _format_forgetting),
        (EVENT_REPLACED, lambda hass, _event: _common_text(hass, "replaced_fact")),
        (EVENT_REMINDER, _format_reminder),
    ):
        async_describe_event(DOMAIN, event_type, partial(_describe_event, hass, format_text))


@callback
def _describe_event(
    hass: HomeAssistant, format_text: Callable[[HomeAssistant, Mapping[str, Any]], str], event: Event
) -> dict[str, Any]:
    entity_id = event.data[ATTR_ENTITY_ID]
    return {
        LOGBOOK_ENTRY_NAME: _entity_name(hass, entity_id),
        LOGBOOK_ENTRY_MESSAGE: format_text(hass, event.data),
        LOGBOOK_ENTRY_ENTITY_ID: entity_id,
    }


def _format_turn(hass: HomeAssistant, turn: Mapping[str, Any]) -> str:
    if turn["error"]:
        return _format_failure(hass, turn["error"])
    key = _ANSWER_KEYS.get(turn["route"], "answered_by_agent")
    agent = _entity_name(hass, turn.get("answered_by") or "")
    # shorter times would be displayed as 0.0 or 0.1
    seconds = format_decimal(max(turn["duration"], _MIN_DURATION_SECONDS), hass.config.language, 1)
    sign = "<" if turn["duration"] < _MIN_DURATION_SECONDS else ""
    text = _common_text(hass, key, agent=agent, seconds=f"{sign}{seconds}")
    source = SpeakerSource(turn.get("known_by") or SpeakerSource.LOGIN)
    if source is SpeakerSource.LOGIN:
        return text
    return f"{text} ({_common_text(hass, 'known_by_voice' if source.is_voice else 'known_by_device')})"


def _format_promise(hass: HomeAssistant, promise: Mapping[str, Any]) -> str:
    is_lost = promise["outcome"] in (Delivery.ENDED, Delivery.INTERRUPTED)
    return _common_text(hass, "answer_lost" if is_lost else "answer_ready")


def _format_forgetting(hass: HomeAssistant, forgotten: Mapping[str, Any]) -> str:
    count: int = forgotten["exchanges"]
    return _common_text(hass, f"forgotten_exchanges_{plural_form(hass.config.language, count)}", count=str(count))


def _format_reminder(hass: HomeAssistant, reminder: Mapping[str, Any]) -> str:
    """Return whether a reminder was delivered, but not its text, which may be deleted from the list."""
    if reminder["outcome"] in [*Delivery]:
        return _common_text(hass, "reminder_delivered")
    return _common_text(hass, "reminder_expired" if reminder["outcome"] == "expired" else "reminder_missed")


def _format_failure(hass: HomeAssistant, error: str) -> str:
    """Return the reason of a failed turn. Its event contains neither core's error text nor the URL of a redirect."""
    if error == ERROR_KEY_BY_CLASS_NAME[LocalAnswerFailed.__name__]:
        return _common_text(hass, "failed_locally")
    if error == ERROR_KEY_BY_CLASS_NAME[Redirected.__name__]:
        return _common_text(hass, "failed_redirected")
    return _common_text(hass, "failed_because", reason=_get_translation(hass, "exceptions", f"{error}.message"))


def _entity_name(hass: HomeAssistant, entity_id: str) -> str:
    state = hass.states.get(entity_id)
    return state.name if state else entity_id


def _common_text(hass: HomeAssistant, key: str, **placeholders: str) -> str:
    return _get_translation(hass, "common", key).format(**placeholders)


def _get_translation(hass: HomeAssistant, category: str, key: str) -> str:
    """Return a translated text in Home Assistant's language, or an empty string if there is none."""
    texts = async_get_cached_translations(hass, hass.config.language, category, DOMAIN)
    return texts.get(f"component.{DOMAIN}.{category}.{key}", "")
