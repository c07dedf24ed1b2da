"""Checks of matches with Home Assistant's sentences against the home, such as the text that a wildcard captured."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.components.conversation.const import METADATA_CUSTOM_SENTENCE
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.components.intent import async_device_supports_timers
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.const import ATTR_ENTITY_ID, STATE_UNAVAILABLE, Platform
from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import (
    entity_registry as er,
    intent,
)

from ..bridge.persons import async_get_exposed_persons, async_state_at
from ..memory.turn.speaker import is_instruction
from ..turn import routing
from ..turn.routing import RouteReason, Situation

# Takes an input and the text that a wildcard captured in it. Returns the reason to reject the match, or None.
type MatchRule = Callable[[HomeAssistant, ConversationInput, str], Awaitable[RouteReason | None]]

# The value of `homeassistant.components.assist_satellite.const.AssistSatelliteEntityFeature.ANNOUNCE`, copied to avoid
# importing the component's dependencies.
_ANNOUNCE_FEATURE = 1

_RUNNING_TIMER_INTENTS = (
    intent.INTENT_CANCEL_TIMER,
    intent.INTENT_DECREASE_TIMER,
    intent.INTENT_INCREASE_TIMER,
    intent.INTENT_PAUSE_TIMER,
    intent.INTENT_TIMER_STATUS,
    intent.INTENT_UNPAUSE_TIMER,
)

# Reasons that count only if the model has tools, because a model without tools could not do better.
_REASONS_NEEDING_TOOLS = frozenset(
    {
        RouteReason.MEDIA_SEARCH,
        RouteReason.LONG_ITEM,
        RouteReason.LONG_NAME,
        RouteReason.UNLISTED_ITEM,
        RouteReason.INSTRUCTION,
    }
)

# Reasons for which Home Assistant's own agent may still answer loosely after the model has failed.
REASONS_FOR_DEFAULT_AGENT = _REASONS_NEEDING_TOOLS | {RouteReason.NO_LOCAL_MATCH}

_DELAYED_COMMAND_SLOT = (intent.INTENT_START_TIMER, "conversation_command")

# Parts of the names of Home Assistant's intents that only answer and change nothing.
QUESTION_INTENT_PARTS = ("Get", "Status", "LastItems", "Respond", "Nevermind")


async def _check_person_place(hass: HomeAssistant, user_input: ConversationInput, text: str) -> RouteReason | None:
    if not async_get_exposed_persons(hass):
        return RouteReason.NOBODY_KNOWN
    return RouteReason.UNKNOWN_PLACE if await async_state_at(hass, text, user_input.language) is None else None


async def _check_new_item(hass: HomeAssistant, user_input: ConversationInput, text: str) -> RouteReason | None:
    is_asked = routing.is_question(user_input.text) or is_instruction(text, user_input.language)
    return RouteReason.LONG_ITEM if routing.is_unlikely_name(text) or is_asked else None


async def _check_listed_item(hass: HomeAssistant, user_input: ConversationInput, text: str) -> RouteReason | None:
    listed = {item.casefold() for item in await _async_get_listed_items(hass)}
    return None if text.casefold() in listed else RouteReason.UNLISTED_ITEM


async def _check_message(hass: HomeAssistant, user_input: ConversationInput, text: str) -> RouteReason | None:
    if not _has_other_satellite(hass, user_input.device_id):
        return RouteReason.NOBODY_HEARS
    return RouteReason.INSTRUCTION if is_instruction(text, user_input.language) else None


async def _check_new_timer(hass: HomeAssistant, user_input: ConversationInput, text: str) -> RouteReason | None:
    return RouteReason.LONG_NAME if routing.is_unlikely_name(text) else None


async def _check_running_timer(hass: HomeAssistant, user_input: ConversationInput, text: str) -> RouteReason | None:
    # The timers are private to Home Assistant. If their type has changed, the match is accepted unchecked.
    timers = getattr(hass.data.get(TIMER_DATA), "timers", None)
    if not isinstance(timers, dict):
        return None
    names = {str(getattr(timer, "name", None) or "").strip().casefold() for timer in timers.values()}
    return None if text.strip().casefold() in names else RouteReason.UNKNOWN_TIMER


async def _reject_media_search(hass: HomeAssistant, user_input: ConversationInput, text: str) -> RouteReason | None:
    """Reject the match, because a media search matches nearly any sentence that begins with "play"."""
    return RouteReason.MEDIA_SEARCH


# The rules by intent and by the slot that a wildcard fills. The wildcards are the same in every language.
_RULE_BY_SLOT: dict[tuple[str, str], MatchRule] = {
    (intent.INTENT_GET_STATE, "state"): _check_person_place,
    ("HassListAddItem", "item"): _check_new_item,
    ("HassShoppingListAddItem", "item"): _check_new_item,
    ("HassListCompleteItem", "item"): _check_listed_item,
    ("HassListRemoveItem", "item"): _check_listed_item,
    ("HassShoppingListCompleteItem", "item"): _check_listed_item,
    (intent.INTENT_START_TIMER, "name"): _check_new_timer,
    **{(name, "name"): _check_running_timer for name in _RUNNING_TIMER_INTENTS},
    (intent.INTENT_BROADCAST, "message"): _check_message,
    ("HassMediaSearchAndPlay", "search_query"): _reject_media_search,
}


def _has_other_satellite(hass: HomeAssistant, own_device_id: str | None) -> bool:
    """Return whether any satellite except the speaker's own can play an announcement."""
    registry = er.async_get(hass)
    ready = (state for state in hass.states.async_all(Platform.ASSIST_SATELLITE) if state.state != STATE_UNAVAILABLE)
    entries = (registry.async_get(state.entity_id) for state in ready)
    return any(
        entry is not None
        and entry.supported_features & _ANNOUNCE_FEATURE
        and (own_device_id is None or entry.device_id != own_device_id)
        for entry in entries
    )


async def _async_get_listed_items(hass: HomeAssistant) -> list[str]:
    """Return the items of the exposed to-do lists and the shopping list. Lists that cannot be read are skipped."""
    lists = [
        state.entity_id
        for state in hass.states.async_all(Platform.TODO)
        if state.state != STATE_UNAVAILABLE and _can_intents_use(hass, state.entity_id)
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


def _can_intents_use(hass: HomeAssistant, entity_id: str) -> bool:
    """Return whether intents can use a list. They can use the shopping list even if it is not exposed."""
    entry = er.async_get(hass).async_get(entity_id)
    is_shopping_list = entry is not None and entry.platform == "shopping_list"
    return is_shopping_list or async_should_expose(hass, conversation.DOMAIN, entity_id)


if TYPE_CHECKING:
    from hassil.models import MatchEntity
    from hassil.recognize import RecognizeResult


@dataclass(frozen=True, slots=True)
class MatchChecker:
    """Checks the matches of one input with Home Assistant's sentences against the state of the home."""

    hass: HomeAssistant
    user_input: ConversationInput
    situation: Situation
    model_has_tools: bool

    @callback
    def needs_full_check(self, result: RecognizeResult) -> bool:
        """Return whether a match needs the full check. This is fast, and most matches need none."""
        return not _is_custom(result) and (bool(_get_wildcards(result)) or self._check_sentence(result) is not None)

    async def find_rejection_reason(self, result: RecognizeResult) -> RouteReason | None:
        """Return the reason to reject a match and ask a model instead, or None if the match is good."""
        if _is_custom(result):
            return None
        reason = self._check_sentence(result)
        for entity in _get_wildcards(result):
            reason = reason or await self._check_captured_text(result, entity)
        return None if reason in _REASONS_NEEDING_TOOLS and not self.model_has_tools else reason

    def _check_sentence(self, result: RecognizeResult) -> RouteReason | None:
        is_bare = result.intent_sentence is not None and routing.has_no_required_word(result.intent_sentence.text or "")
        if self.situation.answers_question and (is_bare or not result.entities or _get_wildcards(result)):
            return RouteReason.ANSWERS_QUESTION
        if is_bare and routing.is_question(self.user_input.text):
            return RouteReason.NAME_IN_QUESTION
        if is_bare and self.situation.follows_model_answer:
            return RouteReason.NAME_AFTER_MODEL
        return self._check_home_support(result)

    def _check_home_support(self, result: RecognizeResult) -> RouteReason | None:
        name = result.intent.name
        if name not in self.hass.data.get(intent.DATA_KEY, {}):
            return RouteReason.NO_HANDLER
        if name == intent.INTENT_START_TIMER and "conversation_command" not in result.entities:
            device_id = self.user_input.device_id
            has_timers = device_id is not None and async_device_supports_timers(self.hass, device_id)
            return None if has_timers else RouteReason.NO_TIMERS
        domain = result.entities.get("domain")
        of_persons = name == intent.INTENT_GET_STATE and domain is not None and domain.value == "person"
        return RouteReason.NOBODY_KNOWN if of_persons and not async_get_exposed_persons(self.hass) else None

    async def _check_captured_text(self, result: RecognizeResult, entity: MatchEntity) -> RouteReason | None:
        span, capture = entity.text_span, entity.text
        # The span is wrong if the sentence begins with a mark such as "¿". Otherwise it is preferred, because the
        # entity's text has lost its commas.
        if span is not None and routing.have_same_words(result.original_text[slice(*span)], capture):
            capture = result.original_text[slice(*span)].strip()
            # The item is cut inside a word, as in "pan a l" from "pan a la lista".
            if entity.name == "item" and routing.is_word_cut(result.original_text, span):
                return RouteReason.CUT_WORD
        if (result.intent.name, entity.name) == _DELAYED_COMMAND_SLOT:
            return await self._check_delayed_command(capture)
        rule = _RULE_BY_SLOT.get((result.intent.name, entity.name))
        return await rule(self.hass, self.user_input, capture) if rule else None

    async def _check_delayed_command(self, text: str) -> RouteReason | None:
        """Return the reason to reject a delayed command, or None. "What will the weather be" is not a command."""
        recognize = getattr(async_get_agent(self.hass), "async_recognize_intent", None)
        if recognize is None:
            return None
        command_input = replace(self.user_input, text=text)
        command: RecognizeResult | None = await recognize(command_input, strict_intents_only=True)
        if command is None or any(word in command.intent.name for word in QUESTION_INTENT_PARTS):
            return RouteReason.DELAYED_QUESTION
        reason = await replace(self, user_input=command_input).find_rejection_reason(command)
        return reason and RouteReason.DELAYED_QUESTION


def _is_custom(result: RecognizeResult) -> bool:
    return bool((result.intent_metadata or {}).get(METADATA_CUSTOM_SENTENCE))


def _get_wildcards(result: RecognizeResult) -> list[MatchEntity]:
    return [entity for entity in result.entities_list if entity.is_wildcard]
