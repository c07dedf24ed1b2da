"""The hand-over: a turn that an Assist pipeline waits for goes on in the background, and its answer comes later."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from functools import partial
import logging
import time
from typing import Any
from uuid import uuid7

from homeassistant.components import conversation
from homeassistant.components.conversation import ChatLog, ConversationInput, ConversationResult
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.chat_session import ChatSession
from homeassistant.helpers.intent import IntentResponse, IntentResponseType
from homeassistant.util.hass_dict import HassKey

from ..bridge.chat_log import (
    BUSY_ERRORS,
    ChatLogReply,
    add_copied_contents,
    async_open_session,
    async_watch_pipeline_inputs,
    copy_chat_log,
    leave_session,
)
from ..bridge.delivery import (
    Delivery,
    async_announce,
    async_can_announce,
    async_format_late_answer,
    async_mention,
    async_notify,
)
from ..bridge.errors import async_get_spoken_text, log_fault
from ..bridge.fillers import FillerMode, Fillers
from ..bridge.turn_report import EVENT_ANSWER, async_fire_agent_event
from ..const import DOMAIN
from ..turn.limits import BACKGROUND_TIMEOUT
from ..turn.routing import RoutingMode
from .agent import Agent
from .conversation_turn import ConversationTurn
from .local_intents import async_is_never_mind, get_speech

_LOGGER = logging.getLogger(__name__)

# In seconds after the input. The player of a satellite ends a stream after 30 seconds without a byte, which a filler
# may have begun (ESPHome's audio_reader.cpp).
HAND_OVER_SECONDS = 25.0
# The same where a satellite that is silent until then announces the answer later.
SILENT_HAND_OVER_SECONDS = 10.0

# In seconds. The answer to a question of ours is expected for this long.
_QUESTION_SECONDS = 30.0
_RETRY_SECONDS = 0.25
# The longest wait for a chat log that other turns use, in seconds.
_MAX_CHAT_LOG_SECONDS = 300.0


@dataclass(slots=True)
class _RunningTurns:
    """The conversations and satellites, by their ids, that turns of any agent use while a pipeline waits for them."""

    # The turns in the background.
    hand_overs: list[HandOver] = field(default_factory=list)
    # Until when the answer to a question is expected from a satellite, on the monotonic clock.
    question_ends: dict[str, float] = field(default_factory=dict)
    _use_counts: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def using(self, *ids: str) -> Iterator[None]:
        """Return a context manager during which these ids are in use."""
        for each in ids:
            self.question_ends.pop(each, None)
        self._use_counts.update(ids)
        try:
            yield
        finally:
            self._use_counts -= Counter(ids)

    def is_in_use(self, each: str) -> bool:
        """Return whether a turn uses this id, or a question is open there."""
        return each in self._use_counts or self.question_ends.get(each, 0.0) > time.monotonic()


_RUNNING_TURNS_KEY: HassKey[_RunningTurns] = HassKey(f"{DOMAIN}_running_turns")


class PipelineTurn:
    """A turn that an Assist pipeline waits for.

    It runs in a task, a chat log and a set of tools of its own, so that it can go on after the pipeline's run. Until
    then, its satellite speaks fillers if the answer takes long. `received_at` is the time of the input on the clock of
    the event loop.
    """

    def __init__(self, turn: ConversationTurn, chat_log: ChatLog, received_at: float) -> None:
        agent, user_input = turn.agent, turn.user_input
        hass, config = agent.hass, agent.config
        self.turn = turn
        self.reply = ChatLogReply(copy_chat_log(chat_log), turn.entity_id)
        self._received_at = received_at
        satellite = er.async_get(hass).async_get(user_input.satellite_id or "")
        self._satellite_registry_id = satellite.id if satellite else None
        self._pipeline_log = chat_log
        self._fillers = Fillers(hass, user_input, self.reply, config.filler, config.filler_sentence)
        self._can_announce = satellite is not None and async_can_announce(hass, satellite.entity_id)
        # somebody has chosen the silence, or hears fillers meanwhile
        may_be_silent = config.filler is FillerMode.OFF or self._fillers.are_heard or not self._can_announce
        self._hand_over_seconds = HAND_OVER_SECONDS if may_be_silent else SILENT_HAND_OVER_SECONDS
        asks_model = agent.model is not None and config.routing is not RoutingMode.LOCAL_ONLY
        self._can_hand_over = asks_model and config.turn_timeout > self._hand_over_seconds
        if self._can_hand_over:
            turn.wait_ends_at = received_at + max(config.turn_timeout, BACKGROUND_TIMEOUT)

    async def async_run(self, answer: Coroutine[Any, Any, ConversationResult]) -> ConversationResult:
        """Return the result of `answer`, the turn, or the promise of an answer if no word was said in time."""
        turn, hass = self.turn, self.turn.agent.hass
        satellite_id, running = turn.user_input.satellite_id, _get_running_turns(hass)
        elapsed = asyncio.get_running_loop().time() - self._received_at
        with running.using(*filter(None, (self._pipeline_log.conversation_id, satellite_id))):
            task = hass.async_create_background_task(answer, f"turn of {turn.entity_id}", eager_start=True)
            try:
                with self._fillers.waiting(self._received_at):
                    if self._can_hand_over and not task.done():
                        await asyncio.wait({task}, timeout=self._hand_over_seconds - elapsed)
                    if self._can_hand_over and not task.done() and (promise := await self._async_promise_answer(task)):
                        return promise
                    result = await task
            except asyncio.CancelledError:
                task.cancel()
                await asyncio.wait({task})
                raise
            finally:
                if self.reply.has_listener:
                    add_copied_contents(self._pipeline_log, self.reply.chat_log)
        if satellite_id is not None and result.continue_conversation:
            running.question_ends[satellite_id] = time.monotonic() + _QUESTION_SECONDS
        return result

    async def _async_promise_answer(self, task: asyncio.Task[ConversationResult]) -> ConversationResult | None:
        """Move the turn to the background and return the promise of its answer, or None if the answer has begun."""
        hass, language = self.turn.agent.hass, self.turn.user_input.language
        key = "hand_over" if self._can_announce else "hand_over_notice"
        phrase = await async_get_spoken_text(hass, language, "common", key)
        if self.reply.has_begun or task.done():
            return None
        if self.reply.is_being_spoken:
            self.reply.speak(phrase)
        self.reply.detach()
        leave_session(task)
        self.turn.state.move_to_background()
        ChatLogReply(self._pipeline_log, self.turn.entity_id).add_answer(phrase)
        HandOver(self.turn, task, self._satellite_registry_id, self.turn.user_input.conversation_id or "").start()
        return _build_result(language, phrase, self._pipeline_log.conversation_id)


@dataclass(eq=False, slots=True)
class HandOver:
    """A turn in the background, whose answer was promised to the person who asked."""

    turn: ConversationTurn
    task: asyncio.Task[ConversationResult]
    satellite_registry_id: str | None
    # The one that the session of the input has.
    conversation_id: str
    _id: str = field(default_factory=lambda: str(uuid7()))
    _delivery: asyncio.Task[None] | None = None
    _is_unwanted: bool = False

    @callback
    def start(self) -> None:
        """Wait for the answer and deliver it, until the account is unloaded."""
        agent = self.turn.current_agent
        _get_running_turns(agent.hass).hand_overs.append(self)
        agent.state.promises.add(self._id, self.conversation_id)
        # a task inherits the session and the chat log of the pipeline's run, which ends now
        create_task = partial(agent.entry.async_create_background_task, agent.hass, self._async_finish(agent))
        self._delivery = Context().run(create_task, f"promised answer of {self.turn.entity_id}")

    async def async_end(self) -> None:
        """End the turn, because its answer is not wanted any more."""
        self._is_unwanted = True
        if self._delivery is not None:
            self._delivery.cancel()
            await asyncio.wait({self._delivery})

    async def _async_end_if_unwanted(self, user_input: ConversationInput) -> None:
        """End the turn if the pipeline itself has answered a "never mind", so that no agent was asked."""
        if await async_is_never_mind(self.turn.agent.hass, user_input):
            await self.async_end()

    async def _async_finish(self, agent: Agent) -> None:
        hass, user_input, outcome = agent.hass, self.turn.user_input, Delivery.INTERRUPTED

        @callback
        def on_pipeline_input(text: str) -> None:
            work = self._async_end_if_unwanted(replace(user_input, text=text))
            hass.async_create_background_task(work, f"never mind {self.turn.entity_id}")

        stop_watching = async_watch_pipeline_inputs(hass, self.conversation_id, on_pipeline_input)
        try:
            with async_open_session(hass, user_input):
                await asyncio.wait({self.task})
            response = self.task.result().response
            await self._async_add_to_chat_log(get_speech(response))
            outcome = await self._async_deliver(agent, response)
        except asyncio.CancelledError:
            self.task.cancel()
            await asyncio.wait({self.task})
            outcome = Delivery.ENDED if self._is_unwanted else outcome
            raise
        except Exception as err:  # noqa: BLE001 - the event says that there will be no answer
            log_fault(_LOGGER, "A promised answer could not be delivered", err)
        finally:
            stop_watching()
            _get_running_turns(hass).hand_overs.remove(self)
            # Home Assistant does not wait for a cancelled task when it stops, and the recorder may have ended. The
            # promise stays stored, and the next start fires the event.
            if not hass.is_stopping:
                agent.state.promises.remove(self._id)
                answered = {"outcome": outcome, "turn_id": self.turn.record_id}
                async_fire_agent_event(hass, EVENT_ANSWER, agent.id, conversation_id=self.conversation_id, **answered)

    async def _async_add_to_chat_log(self, text: str) -> None:
        """Add the answer to the chat log of the conversation when no turn uses it, if the conversation still exists."""
        running, ends_at = _get_running_turns(self.turn.agent.hass), time.monotonic() + _MAX_CHAT_LOG_SECONDS
        while time.monotonic() < ends_at:
            if not running.is_in_use(self.conversation_id) and self._try_add_to_chat_log(text):
                return
            await asyncio.sleep(_RETRY_SECONDS)

    def _try_add_to_chat_log(self, text: str) -> bool:
        """Return whether the answer was added, or will never be. If another agent uses the chat log, it was not."""
        hass = self.turn.agent.hass
        try:
            with async_open_session(hass, self.turn.user_input) as session:
                if session.conversation_id == self.conversation_id:
                    with conversation.async_get_chat_log(hass, session) as chat_log:
                        ChatLogReply(chat_log, self.turn.entity_id).add_answer(text)
        except BUSY_ERRORS:
            return False
        return True

    async def _async_deliver(self, agent: Agent, response: IntentResponse) -> Delivery:
        hass, name, user_input, registry_id = (
            agent.hass,
            agent.config.name,
            self.turn.user_input,
            self.satellite_registry_id,
        )
        language, context, is_in_use = user_input.language, user_input.context, _get_running_turns(hass).is_in_use
        is_error = response.response_type is IntentResponseType.ERROR
        text = await async_format_late_answer(hass, language, user_input.text, get_speech(response), is_error=is_error)
        if registry_id is not None and await async_announce(hass, registry_id, text, context, is_in_use):
            return Delivery.ANNOUNCED
        if await async_notify(hass, self.turn.speaker.person, name, text, context):
            return Delivery.NOTIFIED
        mention = await async_get_spoken_text(hass, language, "common", "answer_mention")
        async_mention(hass, name, mention.format(agent=name), self._id)
        return Delivery.READY


async def async_end_hand_overs(
    agent: Agent, entity_id: str, user_input: ConversationInput, session: ChatSession
) -> ConversationResult | None:
    """End the promised answers of a conversation if its next input says "never mind". Return the result, or None."""
    unwanted = [
        each
        for each in _get_running_turns(agent.hass).hand_overs
        if (each.turn.agent.id, each.conversation_id, each.turn.user_input.context.user_id)
        == (agent.id, session.conversation_id, user_input.context.user_id)
    ]
    if not unwanted or not await async_is_never_mind(agent.hass, user_input):
        return None
    for each in unwanted:
        await each.async_end()
    phrase = await async_get_spoken_text(agent.hass, user_input.language, "common", "all_right")
    with suppress(*BUSY_ERRORS), conversation.async_get_chat_log(agent.hass, session, user_input) as chat_log:
        ChatLogReply(chat_log, entity_id).add_answer(phrase)
    return _build_result(user_input.language, phrase, session.conversation_id)


def _build_result(language: str, text: str, conversation_id: str) -> ConversationResult:
    response = IntentResponse(language)
    response.async_set_speech(text)
    return ConversationResult(response, conversation_id)


@callback
def async_fire_lost_answers(agent: Agent) -> None:
    """Fire the events of promised answers that were lost because Home Assistant was stopped."""
    for conversation_id in agent.state.promises.take_lost():
        data = {"conversation_id": conversation_id, "outcome": Delivery.INTERRUPTED, "turn_id": None}
        async_fire_agent_event(agent.hass, EVENT_ANSWER, agent.id, **data)


@callback
def async_is_in_use(hass: HomeAssistant, satellite_id: str) -> bool:
    """Return whether a turn of any agent uses a satellite, or has asked its user a question."""
    return _get_running_turns(hass).is_in_use(satellite_id)


def _get_running_turns(hass: HomeAssistant) -> _RunningTurns:
    return hass.data.setdefault(_RUNNING_TURNS_KEY, _RunningTurns())
