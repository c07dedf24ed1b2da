"""Checks of a sentence that Home Assistant has matched: compares the text that a wildcard captured with the home."""

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
from homeassistant.helpers import entity_registry as er, intent

from ..turn.routing import Reason, Situation, cuts_word, is_bare, is_instruction, is_long_name, is_question, same_words
from .persons import async_exposed_persons, async_state_at

# Takes an input and the text that a wildcard captured in it. Returns the reason to reject the match, or None.
type Rule = Callable[[HomeAssistant, ConversationInput, str], Awaitable[Reason | None]]

# The value of `AssistSatelliteEntityFeature.ANNOUNCE`, copied to avoid importing the component's dependencies.
_ANNOUNCE = 1

_OF_A_RUNNING_TIMER = (
    intent.INTENT_CANCEL_TIMER,
    intent.INTENT_DECREASE_TIMER,
    intent.INTENT_INCREASE_TIMER,
    intent.INTENT_PAUSE_TIMER,
    intent.INTENT_TIMER_STATUS,
    intent.INTENT_UNPAUSE_TIMER,
)

# Reasons that count only if the model has tools, because a model without tools could not do better.
_FOR_TOOLS = frozenset(
    {Reason.MEDIA_SEARCH, Reason.LONG_ITEM, Reason.LONG_NAME, Reason.UNLISTED_ITEM, Reason.INSTRUCTION}
)

_DELAYED_COMMAND = (intent.INTENT_START_TIMER, "conversation_command")

# Parts of the names of Home Assistant's intents that only answer and change nothing.
_QUESTION_INTENTS = ("Get", "Status", "LastItems", "Respond", "Nevermind")


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
    # The timers are private to Home Assistant. If their type has changed, the match is accepted unchecked.
    timers = getattr(hass.data.get(TIMER_DATA), "timers", None)
    if not isinstance(timers, dict):
        return None
    names = {str(getattr(timer, "name", None) or "").strip().casefold() for timer in timers.values()}
    return None if text.strip().casefold() in names else Reason.UNKNOWN_TIMER


async def _media(hass: HomeAssistant, user_input: ConversationInput, text: str) -> Reason | None:
    """Reject the match, because a media search matches nearly any sentence that begins with "play"."""
    return Reason.MEDIA_SEARCH


# The rules by intent and by the slot that a wildcard fills. The wildcards are the same in every language.
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


def _is_heard(hass: HomeAssistant, own_device_id: str | None) -> bool:
    """Return whether any satellite except the speaker's own can play an announcement."""
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
    """Return the items of the exposed to-do lists and the shopping list. Lists that cannot be read are skipped."""
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
    def may_be_wrong(self, result: RecognizeResult) -> bool:
        """Return whether a match needs the full check. This is fast, and most matches need none."""
        return not _is_custom(result) and (bool(_wildcards(result)) or self._sentence_reason(result) is not None)

    async def reason_against(self, result: RecognizeResult) -> Reason | None:
        """Return the reason to reject a match and ask a model instead, or None if the match is good."""
        if _is_custom(result):
            return None
        reason = self._sentence_reason(result)
        for entity in _wildcards(result):
            reason = reason or await self._capture_reason(result, entity)
        return None if reason in _FOR_TOOLS and not self.model_has_tools else reason

    def _sentence_reason(self, result: RecognizeResult) -> Reason | None:
        is_bare_name = result.intent_sentence is not None and is_bare(result.intent_sentence.text or "")
        if self.situation.answers_question and (is_bare_name or not result.entities or _wildcards(result)):
            return Reason.ANSWERS_QUESTION
        if is_bare_name and is_question(self.user_input.text):
            return Reason.NAME_IN_QUESTION
        if is_bare_name and self.situation.after_model:
            return Reason.NAME_AFTER_MODEL
        return self._home_reason(result)

    def _home_reason(self, result: RecognizeResult) -> Reason | None:
        """Return the reason why this home cannot handle the intent of a match, or None if it can."""
        name = result.intent.name
        if name not in [handler.intent_type for handler in intent.async_get(self.hass)]:
            return Reason.NO_HANDLER
        if name == intent.INTENT_START_TIMER and "conversation_command" not in result.entities:
            device_id = self.user_input.device_id
            has_timers = device_id is not None and async_device_supports_timers(self.hass, device_id)
            return None if has_timers else Reason.NO_TIMERS
        domain = result.entities.get("domain")
        of_persons = name == intent.INTENT_GET_STATE and domain is not None and domain.value == "person"
        return Reason.NOBODY_KNOWN if of_persons and not async_exposed_persons(self.hass) else None

    async def _capture_reason(self, result: RecognizeResult, entity: MatchEntity) -> Reason | None:
        """Return the reason to reject the text that a wildcard captured, or None if it is plausible."""
        span, capture = entity.text_span, entity.text
        # The span is wrong if the sentence begins with a mark such as "¿". Otherwise it is preferred, because the
        # entity's text has lost its commas.
        if span is not None and same_words(result.original_text[slice(*span)], capture):
            capture = result.original_text[slice(*span)].strip()
            # The item is cut inside a word, as in "pan a l" from "pan a la lista".
            if entity.name == "item" and cuts_word(result.original_text, span):
                return Reason.CUT_WORD
        if (result.intent.name, entity.name) == _DELAYED_COMMAND:
            return await self._command_reason(capture)
        rule = RULES.get((result.intent.name, entity.name))
        return await rule(self.hass, self.user_input, capture) if rule else None

    async def _command_reason(self, text: str) -> Reason | None:
        """Return the reason to reject a delayed command, or None. "What will the weather be" is not a command."""
        recognize = getattr(async_get_agent(self.hass), "async_recognize_intent", None)
        if recognize is None:
            return None
        command_input = replace(self.user_input, text=text)
        command: RecognizeResult | None = await recognize(command_input, strict_intents_only=True)
        if command is None or any(word in command.intent.name for word in _QUESTION_INTENTS):
            return Reason.DELAYED_QUESTION
        reason = await replace(self, user_input=command_input).reason_against(command)
        return reason and Reason.DELAYED_QUESTION


def _is_custom(result: RecognizeResult) -> bool:
    return bool((result.intent_metadata or {}).get(METADATA_CUSTOM_SENTENCE))


def _wildcards(result: RecognizeResult) -> list[MatchEntity]:
    return [entity for entity in result.entities_list if entity.is_wildcard]
