"""The turns of an agent: an input of Home Assistant's becomes a turn, and the turn's outcome a result."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
import logging
import math
import time
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.conversation import ChatLog, ConversationInput, ConversationResult
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers.chat_session import ChatSession
from homeassistant.helpers.intent import IntentResponse, IntentResponseErrorCode, IntentResponseType

from ..bridge.chat_log import BUSY_ERRORS, async_open_session, handled_by_pipeline
from ..bridge.errors import async_error_phrase, error_key, error_text_of, log_fault, sentence_after
from ..bridge.local_intents import LocalIntents
from ..bridge.persons import async_speaker
from ..bridge.reply import ChatLogReply
from ..bridge.turn_report import answer_attributes, async_trace_turn
from ..const import RecordLevel
from ..turn.errors import Busy, IdTooLong
from ..turn.progress import Outcome
from ..turn.routing import Route, Routing
from ..turn.scope import WindowKey, check_id, window_key
from ..turn.speaker import Speaker
from ..turn.turn import Ways, run_turn
from ..window import Window, WindowBusy, WindowError, WindowStats
from .after_turn import after_turn
from .agent import Agent
from .device_owners import async_device_owners
from .ended_turn import EndedTurn
from .live_context import NO_FIGURES
from .lookup import async_find_agent, async_learn
from .memory_use import memory_use
from .question import ModelQuestion
from .recording import new_record_id
from .store import async_store

_LOGGER = logging.getLogger(__name__)

# How long to wait before looking again whether a pipeline is done with the chat log, in seconds.
_LOOK_AGAIN = 0.05

_FAULT = "A turn failed in an unexpected way"


async def async_take_turn(agent: Agent, entity_id: str, user_input: ConversationInput) -> ConversationResult:
    """Answer an input after the earlier ones of its conversation; a turn that cannot begin is answered, too."""
    try:
        check_id(user_input.conversation_id or "")
        with async_open_session(agent.hass, user_input) as session:
            user_input = replace(user_input, conversation_id=session.conversation_id)
            return await _async_in_order(agent, entity_id, user_input, session)
    except IdTooLong as err:
        return await _async_refused(agent, replace(user_input, conversation_id=None), err)
    except Unauthorized as err:
        return await _async_refused(agent, user_input, err)
    except WindowBusy as err:
        return await _async_refused(agent, user_input, Busy(str(err)))


async def _async_in_order(
    agent: Agent, entity_id: str, user_input: ConversationInput, session: ChatSession
) -> ConversationResult:
    """Wait for the window and for the chat log, which Home Assistant lets one turn at a time have, and answer.

    Raises `IdTooLong`, and `WindowBusy` if that takes longer than a turn may.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + agent.config.limits.turn
    speaker = await async_speaker(agent.hass, user_input, async_device_owners(agent.hass))
    key = _window_key(agent, user_input, session, speaker)
    speaker = speaker.in_window(key)
    while True:
        async with agent.windows.turn(str(key), timeout=ends_at - loop.time()) as window:
            with ExitStack() as stack:
                try:
                    chat_log = stack.enter_context(conversation.async_get_chat_log(agent.hass, session, user_input))
                except BUSY_ERRORS:
                    pass
                else:
                    reply = ChatLogReply(chat_log, entity_id)
                    before = window.stats()
                    turn = ConversationTurn(
                        agent, entity_id, str(key), user_input, speaker, chat_log, reply, window, before
                    )
                    return await turn.async_answer()
        if loop.time() >= ends_at:
            raise WindowBusy("another agent's turn has the chat log")
        await asyncio.sleep(_LOOK_AGAIN)


def _window_key(agent: Agent, user_input: ConversationInput, session: ChatSession, speaker: Speaker) -> WindowKey:
    owner = speaker.person if speaker.by_device else None
    user, device = user_input.context.user_id, speaker.device
    return window_key(agent.config.scope, session.conversation_id, device=device, user=user, owner=owner)


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One turn, which has the window of its key and the chat log; `before` are the window's figures at its start.

    `id` is its id in the record, `at` when it began, in seconds since the epoch.
    """

    agent: Agent
    entity_id: str
    key: str
    user_input: ConversationInput
    speaker: Speaker
    chat_log: ChatLog
    reply: ChatLogReply
    window: Window
    before: WindowStats
    id: str = field(default_factory=new_record_id)
    at: float = field(default_factory=time.time)

    async def async_answer(self) -> ConversationResult:
        """Run the turn and return its result; a fault of ours is spoken, too."""
        llm_api = self.chat_log.llm_api
        try:
            return await self._async_answer()
        except Exception as err:  # noqa: BLE001 - whatever it is, it is not answered with silence
            log_fault(_LOGGER, _FAULT, err)
            return await self._async_failed(err, self.reply.said)
        finally:
            # other agents use the log, too: restore the tools that it had
            self.chat_log.llm_api = llm_api

    async def _async_answer(self) -> ConversationResult:
        config, user_input, chat_log = self.agent.config, self.user_input, self.chat_log
        self._take_over()
        memory = memory_use(self.agent, self.speaker, self.key)
        local = LocalIntents(
            self.agent.hass,
            user_input,
            chat_log,
            model_is_next=config.routing is not Routing.LOCAL_ONLY,
            model_has_tools=bool(config.llm_apis),
            memory=memory.answers,
        )
        question = ModelQuestion(
            self.agent,
            self.entity_id,
            user_input,
            chat_log,
            window=self.window,
            speaker=self.speaker,
            own_tools=memory.tools,
        )
        on_end = partial(self._on_end, question, local)
        on_billed = partial(async_learn, self.agent.hass)
        ways = Ways(
            local,
            question,
            self.reply,
            after_turn=self._after_turn,
            on_billed=on_billed,
            on_end=on_end,
            background=self._in_background,
        )
        outcome = await run_turn(self.window, self.speaker.said, config.routing, ways, config.limits)
        if outcome.decision.route is Route.LOCAL and local.response is not None:
            return ConversationResult(local.response, chat_log.conversation_id, continue_conversation=local.asks)
        if outcome.error is not None:
            return await self._async_failed(outcome.error, outcome.spoken)
        return conversation.async_get_result_from_chat_log(user_input, chat_log)

    def _on_end(self, question: ModelQuestion, local: LocalIntents, outcome: Outcome) -> None:
        """Trace the turn that ended, and leave what follows it for when its answer is on its way."""
        answer = {
            **answer_attributes(self.agent.hass, outcome),
            **(question.context.figures if question.context else NO_FIGURES),
            "turn_id": self._recorded_id,
        }
        async_trace_turn(outcome, answer, self.window.stats())

        heard = outcome.spoken or local.speech

        def follow() -> None:
            stats = self.before, self.window.stats()
            asked = self.user_input, self.speaker
            ids = self.id, self.at, self.entity_id
            ended = EndedTurn(*ids, *asked, self.window, *stats, outcome, answer, heard, question.prompt)
            after_turn(self._agent_now, ended)

        self._after_turn(follow)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        entry = self._agent_now.entry
        entry.async_create_background_task(self.agent.hass, work, f"model of {self.entity_id} is loaded")

    @property
    def _recorded_id(self) -> str | None:
        """The id by which the turn is found in the record, None if it is not recorded."""
        return None if self.agent.config.record is RecordLevel.OFF else self.id

    def _after_turn(self, work: Callable[[], None]) -> None:
        self._agent_now.after_turn(self.key, work)

    def _take_over(self) -> None:
        """Take in what the pipeline answered since our last turn, and since something was last forgotten."""
        store = async_store(self.agent.hass)
        for exchange in handled_by_pipeline(self.chat_log, self.entity_id, self.window.messages()):
            self.agent.last_answers.pop(self.key, None)
            if store is not None and store.predates_forgetting(exchange[0].created or -math.inf):
                continue
            try:
                self.window.record(exchange, tags={f"route:{Route.LOCAL}"})
            except WindowError as err:
                _LOGGER.debug("An exchange of the pipeline is not whole: %s", type(err).__name__)

    @property
    def _agent_now(self) -> Agent:
        """The agent, or the one that a reload during the turn has made of what is kept."""
        return async_find_agent(self.agent.hass, self.agent.id) or self.agent

    async def _async_failed(self, error: Exception, spoken: str) -> ConversationResult:
        """Tell the user what went wrong, after what was already said.

        A pipeline shows an error response beside the streamed words, but a text-to-speech engine that streams does not
        say it. So in that case the failure is part of the answer, and the response is a normal one.
        """
        code, phrase = await _async_error_answer(self.agent, self.user_input, error)
        statistics, key = self._agent_now.statistics, error_key(error)
        self._after_turn(partial(statistics.on_failure, key, phrase, self._recorded_id))
        if not spoken.strip():
            self.reply.leave(phrase)
            return _error_result(self.user_input, code, phrase)
        last_message = await self.reply.break_off(phrase)
        result = _error_result(self.user_input, code, f"{spoken}{sentence_after(spoken, phrase)}")
        if self.reply.is_heard:
            # not ACTION_DONE, which would claim that something was done
            result.response.response_type = IntentResponseType.QUERY_ANSWER
            result.response.async_set_speech(last_message)
        return result


async def _async_refused(agent: Agent, user_input: ConversationInput, error: Exception) -> ConversationResult:
    """Return the result of an input whose turn could not begin."""
    return _error_result(user_input, *await _async_error_answer(agent, user_input, error))


async def _async_error_answer(
    agent: Agent, user_input: ConversationInput, error: Exception
) -> tuple[IntentResponseErrorCode, str]:
    """Return the response code and the sentence for an error, in the user's language."""
    failure = error_text_of(error)
    return failure.code, await async_error_phrase(agent.hass, user_input.language, failure)


def _error_result(user_input: ConversationInput, code: IntentResponseErrorCode, message: str) -> ConversationResult:
    response = IntentResponse(user_input.language)
    response.async_set_error(code, message)
    return ConversationResult(response, user_input.conversation_id)
