"""Answers without a model: sentence triggers, memory, Home Assistant's own agent, and local intents with checks.

A match of a local intent is checked first: the text that a wildcard captured is compared with the home.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
import logging
from typing import TYPE_CHECKING, Any

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.components.conversation.const import METADATA_CUSTOM_SENTENCE
from homeassistant.components.homeassistant.exposed_entities import async_listen_entity_updates, async_should_expose
from homeassistant.components.intent import async_device_supports_timers
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.const import ATTR_ENTITY_ID, STATE_UNAVAILABLE, Platform
from homeassistant.core import CALLBACK_TYPE, Context, Event, HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import (
    area_registry as ar,
    device_registry as dr,
    entity_registry as er,
    floor_registry as fr,
    intent,
)
from homeassistant.helpers.debounce import Debouncer
from homeassistant.helpers.intent import INTENT_NEVERMIND, IntentResponse, IntentResponseErrorCode, IntentResponseType

from ..bridge.chat_log import async_ask_agent, convert_contents
from ..bridge.openings import async_find_openings, may_open
from ..bridge.persons import async_build_place_replacer, async_get_exposed_persons, async_state_at
from ..const import DOMAIN
from ..memory.bridge.answers import MemoryAnswer, MemoryAnswerer
from ..memory.turn.speaker import is_instruction
from ..reminders.bridge.answers import ReminderAnswerer
from ..turn import routing
from ..turn.errors import LocalAnswerFailed
from ..turn.routing import WRONG_MATCH_REASONS, RouteReason, Situation
from ..window import Message
from .gate import Gate

_LOGGER = logging.getLogger(__name__)

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

# The delay after a change before the names are collected. Collecting takes 0.2 seconds of the event loop for 2000
# entities, so it is done once after many changes.
_DEBOUNCE_SECONDS = 5.0

_REGISTRY_EVENTS = (
    ar.EVENT_AREA_REGISTRY_UPDATED,
    dr.EVENT_DEVICE_REGISTRY_UPDATED,
    er.EVENT_ENTITY_REGISTRY_UPDATED,
    fr.EVENT_FLOOR_REGISTRY_UPDATED,
)


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
RULE_BY_SLOT: dict[tuple[str, str], MatchRule] = {
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
        """Return the reason why this home cannot handle the intent of a match, or None if it can."""
        name = result.intent.name
        if name not in [handler.intent_type for handler in intent.async_get(self.hass)]:
            return RouteReason.NO_HANDLER
        if name == intent.INTENT_START_TIMER and "conversation_command" not in result.entities:
            device_id = self.user_input.device_id
            has_timers = device_id is not None and async_device_supports_timers(self.hass, device_id)
            return None if has_timers else RouteReason.NO_TIMERS
        domain = result.entities.get("domain")
        of_persons = name == intent.INTENT_GET_STATE and domain is not None and domain.value == "person"
        return RouteReason.NOBODY_KNOWN if of_persons and not async_get_exposed_persons(self.hass) else None

    async def _check_captured_text(self, result: RecognizeResult, entity: MatchEntity) -> RouteReason | None:
        """Return the reason to reject the text that a wildcard captured, or None if it is plausible."""
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
        rule = RULE_BY_SLOT.get((result.intent.name, entity.name))
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


async def async_prepare_sentences(hass: HomeAssistant, language: str | None = None) -> None:
    """Load the sentences of a language. Collect the names of areas and exposed entities if these have changed."""
    own_agent = async_get_agent(hass)
    if own_agent is not None:
        await own_agent.async_prepare(language)


async def async_prepare_first_command(hass: HomeAssistant) -> None:
    """Parse all sentences of the home's language in the executor, so that the first command does not wait for it."""
    await async_prepare_sentences(hass)
    recognize = getattr(async_get_agent(hass), "async_recognize_intent", None)
    if recognize is not None:
        # sentences are parsed when a text is first compared with them, and any text is
        nothing = ConversationInput("", Context(), None, None, None, hass.config.language, DOMAIN)
        await recognize(nothing, strict_intents_only=True)


@callback
def async_keep_sentences_prepared(hass: HomeAssistant) -> CALLBACK_TYPE:
    """Collect the names again after each change of registries or exposure. Return a function that stops this."""
    prepare = partial(async_prepare_sentences, hass)
    debouncer = Debouncer(hass, _LOGGER, cooldown=_DEBOUNCE_SECONDS, immediate=False, function=prepare, background=True)

    @callback
    def on_change(_event: Event[Any] | None = None) -> None:
        debouncer.async_schedule_call()

    stops: list[Callable[[], None]] = [hass.bus.async_listen(event, on_change) for event in _REGISTRY_EVENTS]
    stops.append(async_listen_entity_updates(hass, conversation.DOMAIN, on_change))

    @callback
    def stop() -> None:
        for each in (*stops, debouncer.async_shutdown):
            each()

    return stop


async def async_is_never_mind(hass: HomeAssistant, user_input: conversation.ConversationInput) -> bool:
    """Return whether an input says "never mind", in any language of Home Assistant's sentences."""
    recognize = getattr(async_get_agent(hass), "async_recognize_intent", None)
    result = await recognize(user_input, strict_intents_only=True) if recognize is not None else None
    return result is not None and result.intent.name == INTENT_NEVERMIND


class LocalAnswerer:
    """Answers one turn locally."""

    def __init__(
        self,
        hass: HomeAssistant,
        user_input: conversation.ConversationInput,
        chat_log: conversation.ChatLog,
        gate: Gate,
        *,
        can_ask_model: bool,
        model_has_tools: bool,
        memory: MemoryAnswerer | None = None,
        reminders: ReminderAnswerer | None = None,
    ) -> None:
        self._hass = hass
        self._user_input = user_input
        self._chat_log = chat_log
        self._gate = gate
        self._can_ask_model = can_ask_model
        self._model_has_tools = model_has_tools
        self._memory_answers = memory
        self._reminder_answers = reminders
        self._is_recorded = True
        # Home Assistant's intent response, or None before the answer.
        self.response: IntentResponse | None = None
        # Whether the answer is a question that waits for a yes or no.
        self.asks = False
        # The text of Home Assistant's answer, empty before the answer.
        self.answer_text = ""
        # Whether memory has answered.
        self.is_memory_answer = False

    async def answer_input(self, situation: Situation) -> Callable[[], tuple[Message, ...]] | RouteReason:
        """Answer locally. Return a function that builds the messages to record, or the reason to ask the model."""
        before = len(self._chat_log.content)
        if not self._can_ask_model:
            situation = Situation()
        answer = (
            (await self._answer_gate() if self._gate.has_reply else None)
            or await self._try_sentence_triggers()
            or await self._ask_memory()
            or await self._ask_reminders()
            or await self._try_intents(situation)
        )
        if isinstance(answer, RouteReason) and not self._can_ask_model:
            answer = await self._ask_again() or await (
                self._build_apology() if answer in WRONG_MATCH_REASONS else self._answer_loosely()
            )
        if isinstance(answer, RouteReason):
            return answer
        self.response, self.answer_text = answer, get_speech(answer)
        if answer.response_type is IntentResponseType.ERROR:
            raise LocalAnswerFailed(f"local error code {answer.error_code}")
        return partial(convert_contents, self._hass, self._chat_log.content[before:] if self._is_recorded else ())

    async def _answer_gate(self) -> IntentResponse:
        """Return the answer to a yes or a code, after carrying out the action that waited for it."""
        return self._build_question(await self._gate.async_answer_reply(self._carry_out))

    async def _carry_out(self, sentence: ConversationInput) -> str:
        response = await conversation.async_handle_intents(self._hass, sentence, self._chat_log)
        return get_speech(response or await self._ask_default_agent(sentence))

    def _build_question(self, speech: str) -> IntentResponse:
        """Return the response with a text of the gate, which may be a question."""
        self.asks = self._gate.expect_reply()
        return self._build_response(speech)

    async def _try_sentence_triggers(self) -> IntentResponse | None:
        """Return the answer of a sentence trigger. It needs no check, because a user wrote the trigger's sentence."""
        speech = await conversation.async_handle_sentence_triggers(self._hass, self._user_input, self._chat_log)
        return None if speech is None else self._build_response(speech)

    async def _ask_memory(self) -> IntentResponse | None:
        """Return the answer of memory to a request such as "remember that ...", which Home Assistant does not know."""
        return self._build_memory_response(await self._memory_answers.answer_input() if self._memory_answers else None)

    async def _ask_again(self) -> IntentResponse | None:
        """Return the question of memory to which the input is neither a yes nor a no, or None."""
        return self._build_memory_response(await self._memory_answers.ask_again() if self._memory_answers else None)

    def _build_memory_response(self, answer: MemoryAnswer | None) -> IntentResponse | None:
        if answer is None:
            return None
        self._is_recorded, self.asks, self.is_memory_answer = answer.is_recorded, answer.asks, True
        return self._build_response(answer.speech)

    async def _ask_reminders(self) -> IntentResponse | None:
        """Return the answer to a request such as "remind me ...", which Home Assistant does not know either."""
        answer = await self._reminder_answers.answer_input() if self._reminder_answers else None
        if answer is None:
            return None
        self.asks = answer.asks
        return self._build_response(answer.speech)

    def _build_response(self, speech: str) -> IntentResponse:
        response = IntentResponse(self._user_input.language)
        response.async_set_speech(speech)
        self._add_to_chat_log(response)
        return response

    async def _try_intents(self, situation: Situation) -> IntentResponse | RouteReason:
        """Return the answer to a strict match that passes the checks, or the reason to ask the model."""
        checker = MatchChecker(self._hass, self._user_input, situation, self._model_has_tools)
        doubtful: list[RecognizeResult] = []

        def reject_doubtful(result: RecognizeResult) -> bool:
            if checker.needs_full_check(result) or (not self._gate.is_off and may_open(self._hass, result)):
                doubtful.append(result)
            return bool(doubtful)

        user_input, handle = self._user_input, conversation.async_handle_intents
        response = await handle(self._hass, user_input, self._chat_log, intent_filter=reject_doubtful)
        for result in doubtful:
            if (reason := await checker.find_rejection_reason(result)) is not None:
                return reason
            openings = await async_find_openings(self._hass, result, user_input)
            if (text := await self._gate.async_withhold(openings)) is not None:
                return self._build_question(text)
            if openings:
                # nobody can be asked when a timer ends, so Home Assistant's own agent gets its command
                user_input = replace(user_input, agent_id=conversation.HOME_ASSISTANT_AGENT)
            put_states = await async_build_place_replacer(self._hass, self._user_input.language, result)
            response = await handle(self._hass, user_input, self._chat_log, intent_filter=put_states)
        if response is None:
            return RouteReason.ANSWERS_QUESTION if situation.answers_question else RouteReason.NO_LOCAL_MATCH
        self._add_to_chat_log(response)
        return response

    def _add_to_chat_log(self, response: IntentResponse) -> None:
        self._chat_log.async_add_assistant_content_without_tools(
            conversation.AssistantContent(agent_id=self._user_input.agent_id, content=get_speech(response))
        )

    async def _answer_loosely(self) -> IntentResponse:
        if (text := await self._gate.async_withhold_loose(self._chat_log.conversation_id)) is not None:
            return self._build_question(text)
        return await self._ask_default_agent(self._user_input)

    async def _ask_default_agent(self, user_input: ConversationInput) -> IntentResponse:
        """Return the answer of Home Assistant's own agent, which also matches loosely and apologizes if it fails."""
        own_agent, conversation_id = conversation.HOME_ASSISTANT_AGENT, user_input.conversation_id
        return await async_ask_agent(
            self._hass, user_input, own_agent, conversation_id or self._chat_log.conversation_id
        )

    async def _build_apology(self) -> IntentResponse:
        """Return Home Assistant's own apology for not understanding a sentence, in the user's language."""
        load = getattr(async_get_agent(self._hass), "async_get_or_load_intents", None)
        intents = await load(self._user_input.language) if load else None
        errors = getattr(intents, "error_responses", {})
        if "no_intent" not in errors:
            raise LocalAnswerFailed("Home Assistant would answer wrongly")
        response = IntentResponse(self._user_input.language)
        response.async_set_error(IntentResponseErrorCode.NO_INTENT_MATCH, errors["no_intent"])
        self._add_to_chat_log(response)
        return response


def get_speech(response: IntentResponse) -> str:
    """Return the text of a response that is spoken, or an empty text."""
    return str(response.speech.get("plain", {}).get("speech") or "")
