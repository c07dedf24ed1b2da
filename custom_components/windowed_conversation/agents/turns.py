"""The turns of an agent: a ConversationInput becomes a turn, and the turn's outcome a ConversationResult."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
import logging
import math
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput, ConversationResult
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers.chat_session import ChatSession
from homeassistant.helpers.intent import IntentResponse, IntentResponseErrorCode, IntentResponseType

from ..bridge.chat_log import BUSY_ERRORS, async_open_session, handled_by_pipeline
from ..bridge.errors import async_error_phrase, error_key, error_text_of, log_fault, sentence_after
from ..bridge.local_intents import LocalIntents
from ..bridge.persons import async_device_owners, async_speaker
from ..bridge.turn_report import answer_attributes, async_trace_turn
from ..turn.errors import Busy, IdTooLong
from ..turn.routing import Reason, Route, Routing, Situation, check_id, first_choice, window_key
from ..turn.state import LocalMessages, Turn, TurnHandlers
from ..turn.turn import run_turn
from ..window import WindowBusy, WindowError
from .after_turn import after_turn
from .agent import Agent
from .conversation_turn import ConversationTurn, async_build_question, memory_answers
from .live_context import NO_SIZES
from .lookup import async_learn
from .store import async_store

_LOGGER = logging.getLogger(__name__)

# In seconds, between checks whether a pipeline has released the chat log.
_LOOK_AGAIN = 0.05

_FAULT = "A turn failed in an unexpected way"


async def async_take_turn(agent: Agent, entity_id: str, user_input: ConversationInput) -> ConversationResult:
    """Answer an input as the next turn of its conversation. If the turn cannot begin, answer with an error."""
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
    """Answer an input once the window and the chat log are free. Each is used by one turn at a time.

    Raises `IdTooLong`, and `WindowBusy` if the wait is longer than the turn timeout.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + agent.config.limits.turn
    speaker = await async_speaker(agent.hass, user_input, async_device_owners(agent.hass))
    key = window_key(
        agent.config.scope,
        session.conversation_id,
        device=speaker.device,
        user=user_input.context.user_id,
        owner=speaker.person if speaker.by_device else None,
    )
    speaker = speaker.in_window(key)
    while True:
        async with agent.windows.turn(str(key), timeout=ends_at - loop.time()) as window:
            with ExitStack() as stack:
                try:
                    chat_log = stack.enter_context(conversation.async_get_chat_log(agent.hass, session, user_input))
                except BUSY_ERRORS:
                    pass
                else:
                    turn = ConversationTurn(agent, entity_id, str(key), user_input, speaker, chat_log, window)
                    return await async_answer(turn)
        if loop.time() >= ends_at:
            raise WindowBusy("another agent's turn has the chat log")
        await asyncio.sleep(_LOOK_AGAIN)


async def async_answer(turn: ConversationTurn) -> ConversationResult:
    """Run a turn and return its result. An unexpected exception also becomes a spoken answer."""
    llm_api = turn.chat_log.llm_api
    try:
        _record_pipeline_answers(turn)
        state = turn.state = Turn(
            turn.window,
            turn.speaker.said,
            first_choice(turn.agent.config.routing, turn.speaker.said),
            turn.agent.config.limits,
            turn.reply,
            _handlers(turn),
        )
        try:
            await run_turn(state)
        finally:
            _on_end(turn)
        if state.decision.route is Route.LOCAL and turn.local is not None and turn.local.response is not None:
            response, log = turn.local.response, turn.chat_log
            return ConversationResult(response, log.conversation_id, continue_conversation=turn.local.asks)
        if state.error is not None:
            return await _async_failed(turn, state.error, state.speech)
        return conversation.async_get_result_from_chat_log(turn.user_input, turn.chat_log)
    except Exception as err:  # noqa: BLE001 - no error is answered with silence
        log_fault(_LOGGER, _FAULT, err)
        return await _async_failed(turn, err, turn.reply.text)
    finally:
        # other agents use the chat log as well, so restore the tools that it had
        turn.chat_log.llm_api = llm_api


def _record_pipeline_answers(turn: ConversationTurn) -> None:
    """Add the exchanges that the pipeline answered since our last turn to the window, except for forgotten ones."""
    agent = turn.agent
    store = async_store(agent.hass)
    for exchange in handled_by_pipeline(turn.chat_log, turn.entity_id, turn.window.messages()):
        agent.last_answers.pop(turn.key, None)
        if store is not None and store.predates_forgetting(exchange[0].created or -math.inf):
            continue
        try:
            turn.window.record(exchange, tags={f"route:{Route.LOCAL}"})
        except WindowError as err:
            _LOGGER.debug("An exchange of the pipeline is not whole: %s", type(err).__name__)


def _handlers(turn: ConversationTurn) -> TurnHandlers:
    """Return the callbacks through which the turn acts on Home Assistant. Each creates its objects when called."""
    hass, config = turn.agent.hass, turn.agent.config

    async def answer_locally(situation: Situation) -> LocalMessages | Reason:
        turn.local = LocalIntents(
            hass,
            turn.user_input,
            turn.chat_log,
            model_is_next=config.routing is not Routing.LOCAL_ONLY,
            model_has_tools=bool(config.llm_apis),
            memory=memory_answers(turn),
        )
        return await turn.local.answer(situation)

    def background(work: Coroutine[Any, Any, None]) -> None:
        entry = turn.current_agent.entry
        entry.async_create_background_task(hass, work, f"model of {turn.entity_id} is loaded")

    return TurnHandlers(
        answer_locally,
        partial(async_build_question, turn),
        defer=partial(_defer, turn),
        on_billed=partial(async_learn, hass),
        background=background,
    )


def _defer(turn: ConversationTurn, work: Callable[[], None]) -> None:
    turn.current_agent.after_turn(turn.key, work)


def _on_end(turn: ConversationTurn) -> None:
    """Trace the ended turn, and defer the steps after it until its answer is sent."""
    sizes = turn.context.sizes if turn.context else NO_SIZES
    turn.attributes = {**answer_attributes(turn.agent.hass, turn.state), **sizes, "turn_id": turn.record_id}
    async_trace_turn(turn.state, turn.attributes, turn.window.stats())
    _defer(turn, partial(after_turn, turn))


async def _async_failed(turn: ConversationTurn, error: Exception, spoken: str) -> ConversationResult:
    """Return the result of a failed turn, with the error message after any text that was already spoken.

    A pipeline shows an error response beside the streamed text, but a streaming text-to-speech engine does not speak
    it. In that case, the error message becomes part of the answer, and the response is a normal one.
    """
    code, phrase = await _async_error_answer(turn.agent, turn.user_input, error)
    _defer(turn, partial(turn.current_agent.statistics.on_failure, error_key(error), phrase, turn.record_id))
    if not spoken.strip():
        turn.reply.leave(phrase)
        return _error_result(turn.user_input, code, phrase)
    last_message = await turn.reply.break_off(phrase)
    result = _error_result(turn.user_input, code, f"{spoken}{sentence_after(spoken, phrase)}")
    if turn.reply.is_heard:
        # ACTION_DONE would claim that something was done
        result.response.response_type = IntentResponseType.QUERY_ANSWER
        result.response.async_set_speech(last_message)
    return result


async def _async_refused(agent: Agent, user_input: ConversationInput, error: Exception) -> ConversationResult:
    return _error_result(user_input, *await _async_error_answer(agent, user_input, error))


async def _async_error_answer(
    agent: Agent, user_input: ConversationInput, error: Exception
) -> tuple[IntentResponseErrorCode, str]:
    """Return the response code and the error message, in the user's language."""
    failure = error_text_of(error)
    return failure.code, await async_error_phrase(agent.hass, user_input.language, failure)


def _error_result(user_input: ConversationInput, code: IntentResponseErrorCode, message: str) -> ConversationResult:
    response = IntentResponse(user_input.language)
    response.async_set_error(code, message)
    return ConversationResult(response, user_input.conversation_id)
