"""Answers without a model: sentence triggers, requests to memory, local intents, and Home Assistant's own agent."""

from collections.abc import Callable
from functools import partial
import logging
from typing import TYPE_CHECKING, Any

from homeassistant.components import conversation
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.components.homeassistant.exposed_entities import async_listen_entity_updates
from homeassistant.core import CALLBACK_TYPE, Event, HomeAssistant, callback
from homeassistant.helpers import (
    area_registry as ar,
    device_registry as dr,
    entity_registry as er,
    floor_registry as fr,
)
from homeassistant.helpers.debounce import Debouncer
from homeassistant.helpers.intent import IntentResponse, IntentResponseErrorCode, IntentResponseType

from ..turn.errors import LocalAnswerFailed
from ..turn.routing import NEVER_RIGHT, Reason, Situation
from ..window import Message
from .chat_log import async_ask_agent, to_messages
from .match_check import MatchChecker
from .memory_answers import MemoryAnswers
from .persons import async_put_states

_LOGGER = logging.getLogger(__name__)

# The delay after a change before the names are collected. Collecting takes 0.2 seconds of the event loop for 2000
# entities, so it is done once after many changes.
_QUIET_SECONDS = 5.0

_CHANGES = (
    ar.EVENT_AREA_REGISTRY_UPDATED,
    dr.EVENT_DEVICE_REGISTRY_UPDATED,
    er.EVENT_ENTITY_REGISTRY_UPDATED,
    fr.EVENT_FLOOR_REGISTRY_UPDATED,
)


async def async_prepare_sentences(hass: HomeAssistant, language: str | None = None) -> None:
    """Load the sentences of a language. Collect the names of areas and exposed entities if these have changed."""
    own_agent = async_get_agent(hass)
    if own_agent is not None:
        await own_agent.async_prepare(language)


@callback
def async_keep_prepared(hass: HomeAssistant) -> CALLBACK_TYPE:
    """Collect the names again after each change of registries or exposure. Return a function that stops this."""
    prepare = partial(async_prepare_sentences, hass)
    debouncer = Debouncer(hass, _LOGGER, cooldown=_QUIET_SECONDS, immediate=False, function=prepare, background=True)

    @callback
    def changed(_event: Event[Any] | None = None) -> None:
        debouncer.async_schedule_call()

    stops: list[Callable[[], None]] = [hass.bus.async_listen(event, changed) for event in _CHANGES]
    stops.append(async_listen_entity_updates(hass, conversation.DOMAIN, changed))

    @callback
    def stop() -> None:
        for each in (*stops, debouncer.async_shutdown):
            each()

    return stop


if TYPE_CHECKING:
    from hassil.recognize import RecognizeResult


class LocalIntents:
    """Answers one turn locally. `response` is Home Assistant's intent response, or None before the answer.

    `asks` is True if the answer is a question that waits for a yes or no.
    """

    def __init__(
        self,
        hass: HomeAssistant,
        user_input: conversation.ConversationInput,
        chat_log: conversation.ChatLog,
        *,
        model_is_next: bool,
        model_has_tools: bool,
        memory: MemoryAnswers | None = None,
    ) -> None:
        self._hass = hass
        self._user_input = user_input
        self._chat_log = chat_log
        self._model_is_next = model_is_next
        self._model_has_tools = model_has_tools
        self._memory = memory
        self._is_recorded = True
        self.response: IntentResponse | None = None
        self.asks = False
        # The text of Home Assistant's answer, empty before the answer.
        self.speech = ""

    async def answer(self, situation: Situation) -> Callable[[], tuple[Message, ...]] | Reason:
        """Answer locally. Return a function that builds the messages to record, or the reason to ask the model."""
        before = len(self._chat_log.content)
        if not self._model_is_next:
            situation = Situation()
        answer = await self._by_trigger() or await self._by_memory() or await self._strict(situation)
        if isinstance(answer, Reason) and not self._model_is_next:
            answer = await (self._not_understood() if answer in NEVER_RIGHT else self._own_agent())
        if isinstance(answer, Reason):
            return answer
        self.response, self.speech = answer, _speech(answer)
        if answer.response_type is IntentResponseType.ERROR:
            raise LocalAnswerFailed(f"local error code {answer.error_code}")
        return partial(to_messages, self._hass, self._chat_log.content[before:] if self._is_recorded else ())

    async def _by_trigger(self) -> IntentResponse | None:
        """Return the answer of a sentence trigger. It needs no check, because a user wrote the trigger's sentence."""
        speech = await conversation.async_handle_sentence_triggers(self._hass, self._user_input, self._chat_log)
        return None if speech is None else self._response(speech)

    async def _by_memory(self) -> IntentResponse | None:
        """Return the answer of memory to a request such as "remember that ...", which Home Assistant does not know."""
        answer = await self._memory.answer() if self._memory else None
        if answer is None:
            return None
        self._is_recorded, self.asks = answer.is_kept, answer.asks
        return self._response(answer.speech)

    def _response(self, speech: str) -> IntentResponse:
        response = IntentResponse(self._user_input.language)
        response.async_set_speech(speech)
        self._leave_in_chat_log(response)
        return response

    async def _strict(self, situation: Situation) -> IntentResponse | Reason:
        """Return the answer to a strict match that passes the checks, or the reason to ask the model."""
        checker = MatchChecker(self._hass, self._user_input, situation, self._model_has_tools)
        doubtful: list[RecognizeResult] = []

        def is_refused(result: RecognizeResult) -> bool:
            if checker.may_be_wrong(result):
                doubtful.append(result)
            return bool(doubtful)

        handle = partial(conversation.async_handle_intents, self._hass, self._user_input, self._chat_log)
        response = await handle(intent_filter=is_refused)
        for result in doubtful:
            if (reason := await checker.reason_against(result)) is not None:
                return reason
            put_states = await async_put_states(self._hass, self._user_input.language, result)
            response = await handle(intent_filter=put_states)
        if response is None:
            return Reason.ANSWERS_QUESTION if situation.answers_question else Reason.NO_LOCAL_MATCH
        self._leave_in_chat_log(response)
        return response

    def _leave_in_chat_log(self, response: IntentResponse) -> None:
        self._chat_log.async_add_assistant_content_without_tools(
            conversation.AssistantContent(agent_id=self._user_input.agent_id, content=_speech(response))
        )

    async def _own_agent(self) -> IntentResponse:
        """Return the answer of Home Assistant's own agent, which also matches loosely and apologizes if it fails."""
        own_agent = conversation.HOME_ASSISTANT_AGENT
        return await async_ask_agent(self._hass, self._user_input, own_agent, self._chat_log.conversation_id)

    async def _not_understood(self) -> IntentResponse:
        """Return Home Assistant's own apology for not understanding a sentence, in the user's language."""
        load = getattr(async_get_agent(self._hass), "async_get_or_load_intents", None)
        intents = await load(self._user_input.language) if load else None
        errors = getattr(intents, "error_responses", {})
        if "no_intent" not in errors:
            raise LocalAnswerFailed("Home Assistant would answer wrongly")
        response = IntentResponse(self._user_input.language)
        response.async_set_error(IntentResponseErrorCode.NO_INTENT_MATCH, errors["no_intent"])
        self._leave_in_chat_log(response)
        return response


def _speech(response: IntentResponse) -> str:
    return str(response.speech.get("plain", {}).get("speech") or "")
