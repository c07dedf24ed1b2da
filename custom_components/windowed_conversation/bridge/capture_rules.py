"""Rules that a home must meet for a wildcard's capture to be meant, one for each wildcard of the sentences."""

from collections.abc import Awaitable, Callable
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.const import ATTR_ENTITY_ID, STATE_UNAVAILABLE, Platform
from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import entity_registry as er, intent

from ..turn.captures import is_instruction, is_long_name, is_question
from ..turn.routing import Reason
from .places import async_exposed_persons, async_state_at

# Takes an input and the capture of a wildcard in it, and returns the reason against the match.
type Rule = Callable[[HomeAssistant, ConversationInput, str], Awaitable[Reason | None]]

# `AssistSatelliteEntityFeature.ANNOUNCE`, without importing its dependencies.
_ANNOUNCE = 1


_OF_A_RUNNING_TIMER = (
    intent.INTENT_CANCEL_TIMER,
    intent.INTENT_DECREASE_TIMER,
    intent.INTENT_INCREASE_TIMER,
    intent.INTENT_PAUSE_TIMER,
    intent.INTENT_TIMER_STATUS,
    intent.INTENT_UNPAUSE_TIMER,
)


async def _place(hass: HomeAssistant, user_input: ConversationInput, text: str) -> Reason | None:
    if not async_exposed_persons(hass):
        return Reason.NOBODY_KNOWN
    return Reason.UNKNOWN_PLACE if await async_state_at(hass, text, user_input.language) is None else None


async def _new_item(hass: HomeAssistant, user_input: ConversationInput, text: str) -> Reason | None:
    is_asked = is_question(user_input.text) or is_instruction(text, user_input.language)
    return Reason.LONG_ITEM if is_long_name(text) or is_asked else None


async def _listed_item(hass: HomeAssistant, user_input: ConversationInput, text: str) -> Reason | None:
    listed = {item.casefold() for item in await _async_listed_items(hass)}
    return None if text.casefold() in listed else Reason.UNLISTED_ITEM


async def _message(hass: HomeAssistant, user_input: ConversationInput, text: str) -> Reason | None:
    if not _is_heard(hass, user_input.device_id):
        return Reason.NOBODY_HEARS
    return Reason.INSTRUCTION if is_instruction(text, user_input.language) else None


async def _new_timer(hass: HomeAssistant, user_input: ConversationInput, text: str) -> Reason | None:
    return Reason.LONG_NAME if is_long_name(text) else None


async def _running_timer(hass: HomeAssistant, user_input: ConversationInput, text: str) -> Reason | None:
    # private to Home Assistant: if it is something else, the name is used unchanged
    timers = getattr(hass.data.get(TIMER_DATA), "timers", None)
    if not isinstance(timers, dict):
        return None
    names = {str(getattr(timer, "name", None) or "").strip().casefold() for timer in timers.values()}
    return None if text.strip().casefold() in names else Reason.UNKNOWN_TIMER


async def _media(hass: HomeAssistant, user_input: ConversationInput, text: str) -> Reason | None:
    """A search matches nearly any "play ..."."""
    return Reason.MEDIA_SEARCH


# By intent, and the slot that a wildcard fills. The wildcards are the same in every language.
RULES: dict[tuple[str, str], Rule] = {
    (intent.INTENT_GET_STATE, "state"): _place,
    ("HassListAddItem", "item"): _new_item,
    ("HassShoppingListAddItem", "item"): _new_item,
    ("HassListCompleteItem", "item"): _listed_item,
    ("HassListRemoveItem", "item"): _listed_item,
    ("HassShoppingListCompleteItem", "item"): _listed_item,
    (intent.INTENT_START_TIMER, "name"): _new_timer,
    **{(name, "name"): _running_timer for name in _OF_A_RUNNING_TIMER},
    (intent.INTENT_BROADCAST, "message"): _message,
    ("HassMediaSearchAndPlay", "search_query"): _media,
}


@callback
def _is_heard(hass: HomeAssistant, own_device_id: str | None) -> bool:
    """Return whether a satellite other than the one that was spoken to can announce something."""
    registry = er.async_get(hass)
    available = (
        state for state in hass.states.async_all(Platform.ASSIST_SATELLITE) if state.state != STATE_UNAVAILABLE
    )
    entries = (registry.async_get(state.entity_id) for state in available)
    return any(
        entry is not None
        and entry.supported_features & _ANNOUNCE
        and (own_device_id is None or entry.device_id != own_device_id)
        for entry in entries
    )


async def _async_listed_items(hass: HomeAssistant) -> list[str]:
    """Return the items on the exposed lists and on the shopping list. Lists that cannot be read are skipped."""
    lists = [
        state.entity_id
        for state in hass.states.async_all(Platform.TODO)
        if state.state != STATE_UNAVAILABLE and _is_spoken_of(hass, state.entity_id)
    ]
    if not lists:
        return []
    try:
        answer = await hass.services.async_call(
            Platform.TODO, "get_items", {ATTR_ENTITY_ID: lists}, blocking=True, return_response=True
        )
    except HomeAssistantError:
        return []
    found: dict[str, Any] = dict(answer or {})
    return [item["summary"] for each in found.values() for item in each["items"]]


def _is_spoken_of(hass: HomeAssistant, entity_id: str) -> bool:
    """Return whether intents reach a list. Those of the shopping list do so even if it is not exposed."""
    entry = er.async_get(hass).async_get(entity_id)
    is_shopping_list = entry is not None and entry.platform == "shopping_list"
    return is_shopping_list or async_should_expose(hass, conversation.DOMAIN, entity_id)
