"""Answers without a model: sentence triggers, memory, reminders, local intents, and Home Assistant's own agent."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
import logging
from typing import TYPE_CHECKING, Any

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.components.homeassistant.exposed_entities import async_listen_entity_updates
from homeassistant.core import CALLBACK_TYPE, Context, Event, HomeAssistant, callback
from homeassistant.helpers import (
    area_registry as ar,
    device_registry as dr,
    entity_registry as er,
    floor_registry as fr,
)
from homeassistant.helpers.debounce import Debouncer
from homeassistant.helpers.intent import INTENT_NEVERMIND, IntentResponse, IntentResponseErrorCode, IntentResponseType

from ..bridge.chat_log import async_ask_agent, convert_contents
from ..bridge.openings import async_find_openings, may_open, read_intent
from ..bridge.persons import async_build_place_replacer
from ..const import DOMAIN
from ..memory.bridge.answers import MemoryAnswer, MemoryAnswerer
from ..memory.bridge.sentences import are_sentences_loaded, async_load_sentences
from ..reminders.bridge.answers import ReminderAnswerer, get_sentences
from ..turn.errors import LocalAnswerFailed
from ..turn.routing import WRONG_MATCH_REASONS, RouteReason, Situation
from ..window import Message
from .gate import Gate
from .match_checker import MatchChecker
from .turn_questions import TurnQuestionAnswerer, load_patterns

if TYPE_CHECKING:
    from hassil.recognize import RecognizeResult

_LOGGER = logging.getLogger(__name__)

# The delay after a change before the names are collected. Collecting takes 0.2 seconds of the event loop for 2000
# entities, so it is done once after many changes.
_DEBOUNCE_SECONDS = 5.0

_REGISTRY_EVENTS = (
    ar.EVENT_AREA_REGISTRY_UPDATED,
    dr.EVENT_DEVICE_REGISTRY_UPDATED,
    er.EVENT_ENTITY_REGISTRY_UPDATED,
    fr.EVENT_FLOOR_REGISTRY_UPDATED,
)


async def async_load_requests(hass: HomeAssistant, language: str) -> None:
    """Load the sentences of memory, reminders and questions about turns, if those of memory are not loaded yet."""
    if not are_sentences_loaded(language):
        await hass.async_add_executor_job(get_sentences, language)
        await hass.async_add_executor_job(load_patterns, language)
        # the last, because a turn asks whether these are loaded
        await async_load_sentences(hass, language)


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


async def async_is_never_mind(hass: HomeAssistant, user_input: ConversationInput) -> bool:
    """Return whether an input says "never mind", in any language of Home Assistant's sentences."""
    recognize = getattr(async_get_agent(hass), "async_recognize_intent", None)
    result = await recognize(user_input, strict_intents_only=True) if recognize is not None else None
    return result is not None and result.intent.name == INTENT_NEVERMIND


@dataclass(slots=True)
class LocalAnswerer:
    """Answers one turn locally."""

    hass: HomeAssistant
    user_input: ConversationInput
    chat_log: conversation.ChatLog
    gate: Gate
    can_ask_model: bool
    model_has_tools: bool
    memory: MemoryAnswerer | None = None
    reminders: ReminderAnswerer | None = None
    turn_questions: TurnQuestionAnswerer | None = None
    # Home Assistant's intent response, or None before the answer.
    response: IntentResponse | None = None
    # Whether the answer is a question that waits for a yes or no.
    asks: bool = False
    # The text of Home Assistant's answer, empty before the answer.
    answer_text: str = ""
    # The reason if memory, the reminders or the record have answered.
    own_reason: RouteReason | None = None
    _is_recorded: bool = True

    async def answer_input(self, situation: Situation) -> Callable[[], tuple[Message, ...]] | RouteReason:
        """Answer locally. Return a function that builds the messages to record, or the reason to ask the model."""
        before = len(self.chat_log.content)
        if not self.can_ask_model:
            situation = Situation()
        answer = (
            (self._build_question(await self.gate.async_answer_reply(self._carry_out)) if self.gate.has_reply else None)
            or await self._try_sentence_triggers()
            or await self._ask_own_answerers()
            or await self._try_intents(situation)
        )
        if isinstance(answer, RouteReason) and not self.can_ask_model:
            question = await self.memory.ask_again() if self.memory else None
            if question is not None:
                answer = self._build_memory_response(question)
            elif answer in WRONG_MATCH_REASONS:
                answer = await self._build_apology()
            else:
                answer = await self._answer_loosely()
        if isinstance(answer, RouteReason):
            return answer
        self.response, self.answer_text = answer, get_speech(answer)
        if answer.intent is not None:
            self.gate.called = [answer.intent.intent_type]
        if answer.response_type is IntentResponseType.ERROR:
            raise LocalAnswerFailed(f"local error code {answer.error_code}")
        return partial(convert_contents, self.hass, self.chat_log.content[before:] if self._is_recorded else ())

    async def _carry_out(self, sentence: ConversationInput) -> str:
        response = await conversation.async_handle_intents(self.hass, sentence, self.chat_log)
        response = response or await self._ask_default_agent(sentence)
        if response.intent is not None:
            self.gate.called = [response.intent.intent_type]
        return get_speech(response)

    def _build_question(self, speech: str) -> IntentResponse:
        self.asks = self.gate.expect_reply()
        return self._build_response(speech)

    async def _try_sentence_triggers(self) -> IntentResponse | None:
        """Return the answer of a sentence trigger, which needs no check of its match: a user wrote the sentence."""
        if self.gate.reach.limits and not await self.gate.reach.async_has_no_trigger():
            return self._build_response(await self.gate.async_refuse())
        speech = await conversation.async_handle_sentence_triggers(self.hass, self.user_input, self.chat_log)
        return None if speech is None else self._build_response(speech)

    async def _ask_own_answerers(self) -> IntentResponse | None:
        """Return the answer to a request that Home Assistant does not know, such as "remember that ...", or None."""
        if self.memory is not None and (answer := await self.memory.answer_input()) is not None:
            return self._build_memory_response(answer)
        if self.reminders is not None and (reminder := await self.reminders.answer_input()) is not None:
            self.asks, self.own_reason = reminder.asks, RouteReason.REMINDER_REQUEST
            return self._build_response(reminder.speech)
        if self.turn_questions is not None and (speech := await self.turn_questions.answer_input()) is not None:
            self.own_reason = RouteReason.TURN_QUESTION
            return self._build_response(speech)
        return None

    def _build_memory_response(self, answer: MemoryAnswer) -> IntentResponse:
        self._is_recorded, self.asks, self.own_reason = answer.is_recorded, answer.asks, RouteReason.MEMORY_REQUEST
        return self._build_response(answer.speech)

    def _build_response(self, speech: str) -> IntentResponse:
        response = IntentResponse(self.user_input.language)
        response.async_set_speech(speech)
        self._add_to_chat_log(response)
        return response

    async def _try_intents(self, situation: Situation) -> IntentResponse | RouteReason:
        """Return the answer to a strict match that passes the checks, or the reason to ask the model."""
        checker = MatchChecker(self.hass, self.user_input, situation, self.model_has_tools)
        doubtful: list[RecognizeResult] = []
        gate = self.gate

        def reject_doubtful(result: RecognizeResult) -> bool:
            may_be_withheld = gate.reach.limits or (not gate.is_off and may_open(self.hass, result))
            if may_be_withheld or checker.needs_full_check(result):
                doubtful.append(result)
            return bool(doubtful)

        user_input, handle = self.user_input, conversation.async_handle_intents
        response = await handle(self.hass, user_input, self.chat_log, intent_filter=reject_doubtful)
        for result in doubtful:
            if (reason := await checker.find_rejection_reason(result)) is not None:
                return reason
            openings = await async_find_openings(self.hass, *read_intent(result), user_input)
            is_inside = await gate.reach.async_has_intent(*read_intent(result))
            text = await gate.async_withhold(openings) if is_inside else await gate.async_refuse()
            if text is not None:
                return self._build_question(text)
            if openings:
                # nobody can be asked when a timer ends, so Home Assistant's own agent gets its command
                user_input = replace(user_input, agent_id=conversation.HOME_ASSISTANT_AGENT)
            put_states = await async_build_place_replacer(self.hass, self.user_input.language, result)
            response = await handle(self.hass, user_input, self.chat_log, intent_filter=put_states)
        if response is None:
            return RouteReason.ANSWERS_QUESTION if situation.answers_question else RouteReason.NO_LOCAL_MATCH
        self._add_to_chat_log(response)
        return response

    def _add_to_chat_log(self, response: IntentResponse) -> None:
        self.chat_log.async_add_assistant_content_without_tools(
            conversation.AssistantContent(agent_id=self.user_input.agent_id, content=get_speech(response))
        )

    async def _answer_loosely(self) -> IntentResponse:
        if (text := await self.gate.async_withhold_loose(self.chat_log.conversation_id)) is not None:
            return self._build_question(text)
        return await self._ask_default_agent(self.user_input)

    async def _ask_default_agent(self, user_input: ConversationInput) -> IntentResponse:
        """Return the answer of Home Assistant's own agent, which also matches loosely and apologizes if it fails."""
        own_agent, conversation_id = conversation.HOME_ASSISTANT_AGENT, user_input.conversation_id
        return await async_ask_agent(self.hass, user_input, own_agent, conversation_id or self.chat_log.conversation_id)

    async def _build_apology(self) -> IntentResponse:
        load = getattr(async_get_agent(self.hass), "async_get_or_load_intents", None)
        intents = await load(self.user_input.language) if load else None
        errors = getattr(intents, "error_responses", {})
        if "no_intent" not in errors:
            raise LocalAnswerFailed("Home Assistant would answer wrongly")
        response = IntentResponse(self.user_input.language)
        response.async_set_error(IntentResponseErrorCode.NO_INTENT_MATCH, errors["no_intent"])
        self._add_to_chat_log(response)
        return response


def get_speech(response: IntentResponse) -> str:
    """Return the text of a response that is spoken, or an empty text."""
    return str(response.speech.get("plain", {}).get("speech") or "")
