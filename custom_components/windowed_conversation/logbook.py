"""Logbook entries for each turn, each promised answer, and each deletion or replacement in memory."""

from collections.abc import Callable, Mapping
from typing import Any

from homeassistant.components.logbook.const import LOGBOOK_ENTRY_ENTITY_ID, LOGBOOK_ENTRY_MESSAGE, LOGBOOK_ENTRY_NAME
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.helpers.translation import async_get_cached_translations

from .bridge.delivery import Delivery
from .bridge.errors import ERROR_KEY_BY_CLASS_NAME, plural_form
from .bridge.turn_report import EVENT_ANSWER, EVENT_FORGOTTEN, EVENT_REMINDER, EVENT_REPLACED, EVENT_TURN
from .const import DOMAIN
from .memory.core import base_language
from .providers import Redirected
from .turn.errors import LocalAnswerFailed
from .turn.routing import Route

_MIN_DURATION_SECONDS = 0.1

# All other languages of the translations have a comma before decimals.
_DECIMAL_POINT_LANGUAGES = frozenset({"en", "ja", "zh"})


@callback
def async_describe_events(
    hass: HomeAssistant, async_describe_event: Callable[[str, str, Callable[[Event], dict[str, Any]]], None]
) -> None:
    """Register how the events of turns and of forgetting are described."""

    def make_describer(format_text: Callable[[HomeAssistant, Any], str]) -> Callable[[Event], dict[str, Any]]:
        @callback
        def describe_event(event: Event) -> dict[str, Any]:
            entity_id = event.data[ATTR_ENTITY_ID]
            return {
                LOGBOOK_ENTRY_NAME: _entity_name(hass, entity_id),
                LOGBOOK_ENTRY_MESSAGE: format_text(hass, event.data),
                LOGBOOK_ENTRY_ENTITY_ID: entity_id,
            }

        return describe_event

    async_describe_event(DOMAIN, EVENT_TURN, make_describer(_format_turn))
    async_describe_event(DOMAIN, EVENT_ANSWER, make_describer(_format_promise))
    async_describe_event(DOMAIN, EVENT_FORGOTTEN, make_describer(_format_forgetting))
    async_describe_event(DOMAIN, EVENT_REPLACED, make_describer(_format_replacement))
    async_describe_event(DOMAIN, EVENT_REMINDER, make_describer(_format_reminder))


def _format_turn(hass: HomeAssistant, turn: Mapping[str, Any]) -> str:
    if turn["error"]:
        return _format_failure(hass, turn["error"])
    key, agent = "answered_by_agent", ""
    if turn["route"] == Route.LOCAL:
        key = "answered_locally"
    elif turn["route"] == Route.MODEL:
        key = "answered_by_model"
    else:
        agent = _entity_name(hass, turn["answered_by"])
    return _common_text(hass, key, agent=agent, seconds=_format_seconds(hass.config.language, turn["duration"]))


def _format_seconds(language: str, seconds: float) -> str:
    """Return a number of seconds with one decimal, after the sign that the language uses."""
    text = f"<{_MIN_DURATION_SECONDS}" if seconds < _MIN_DURATION_SECONDS else f"{seconds:.1f}"
    return text if base_language(language) in _DECIMAL_POINT_LANGUAGES else text.replace(".", ",")


def _format_promise(hass: HomeAssistant, promise: Mapping[str, Any]) -> str:
    is_lost = promise["outcome"] in (Delivery.ENDED, Delivery.INTERRUPTED)
    return _common_text(hass, "answer_lost" if is_lost else "answer_ready")


def _format_forgetting(hass: HomeAssistant, forgotten: Mapping[str, Any]) -> str:
    count: int = forgotten["exchanges"]
    return _common_text(hass, f"forgotten_exchanges_{plural_form(hass.config.language, count)}", count=str(count))


def _format_replacement(hass: HomeAssistant, _replaced: Mapping[str, Any]) -> str:
    return _common_text(hass, "replaced_fact")


def _format_reminder(hass: HomeAssistant, reminder: Mapping[str, Any]) -> str:
    """Return whether a reminder was delivered, but not its text, which may be deleted from the list."""
    is_delivered = reminder["outcome"] in [*Delivery]
    return _common_text(hass, "reminder_delivered" if is_delivered else "reminder_missed")


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
