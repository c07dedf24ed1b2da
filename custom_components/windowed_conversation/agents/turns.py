"""The turns of an agent: a ConversationInput becomes a turn, and the turn's outcome a ConversationResult."""

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
import logging
import math

from homeassistant.components import conversation
from homeassistant.components.conversation import AssistantContent, ConversationInput, ConversationResult
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers.chat_session import ChatSession
from homeassistant.helpers.intent import (
    IntentResponse,
    IntentResponseErrorCode,
    IntentResponseTarget,
    IntentResponseTargetType,
    IntentResponseType,
)

from ..bridge.chat_log import (
    BUSY_ERRORS,
    ChatLogReply,
    async_open_session,
    find_pipeline_exchanges,
    find_pipeline_log,
    open_own_log,
    replace_input_text,
)
from ..bridge.errors import (
    async_get_error_phrase,
    async_get_heard_phrase,
    async_get_spoken_text,
    describe_error,
    format_next_sentence,
    get_error_key,
    log_fault,
)
from ..bridge.persons import async_find_speaker, async_get_speaker_rows
from ..bridge.turn_report import async_trace_turn, list_reached_entities, name_asked_agents
from ..const import FRONTEND, PANEL_PATH
from ..home.bridge.states import async_get_home_states
from ..turn.errors import IdTooLong
from ..turn.routing import (
    Route,
    RouteDecision,
    RouteReason,
    RoutingMode,
    Scope,
    build_window_key,
    check_id,
    decide_first_route,
)
from ..turn.state import Turn
from ..turn.turn import run_turn
from ..window import Message
from .after_turn import defer_steps
from .agent import Agent
from .conversation_turn import ConversationTurn
from .echo import SpokenAnswer, async_record_spoken_answer, async_take_echoed_answer
from .gate import async_open_gate
from .hand_over import PipelineTurn, async_end_hand_overs
from .local_intents import async_load_requests
from .record import describe_turn
from .store import async_get_store

_LOGGER = logging.getLogger(__name__)

# Of one answer, for cards.
_MAX_ENTITIES = 10

_FAULT_MESSAGE = "A turn failed in an unexpected way"


async def async_take_turn(agent: Agent, entity_id: str, user_input: ConversationInput) -> ConversationResult:
    """Answer an input as the next turn of its conversation. If the turn cannot begin, answer with an error."""
    await async_load_requests(agent.hass, user_input.language)
    try:
        check_id(user_input.conversation_id or "")
        with async_open_session(agent.hass, user_input) as session:
            user_input = replace(user_input, conversation_id=session.conversation_id)
            return await _async_answer_in_order(agent, entity_id, user_input, session)
    except (IdTooLong, Unauthorized) as err:
        code, _, phrase = await _async_describe_error(agent, user_input, err)
        if isinstance(err, IdTooLong):
            user_input = replace(user_input, conversation_id=None)
        return _error_result(user_input, code, phrase)


async def _async_answer_in_order(
    agent: Agent, entity_id: str, user_input: ConversationInput, session: ChatSession
) -> ConversationResult:
    """Answer an input in its place among the turns of its window. Raises `IdTooLong`."""
    received_at = asyncio.get_running_loop().time()
    speaker = await async_find_speaker(agent.hass, user_input, async_get_speaker_rows(agent.hass))
    if speaker.text != user_input.text:
        user_input = replace(user_input, text=speaker.text)
    gate = await async_open_gate(agent.hass, agent.id, agent.config, agent.state.gate, user_input, speaker=speaker)
    if gate.digits:
        user_input, speaker = gate.user_input, replace(speaker, text=gate.user_input.text)
    is_promised = session.conversation_id in agent.state.promises.conversations.values()
    if is_promised and (result := await async_end_hand_overs(agent, entity_id, user_input, session)) is not None:
        return result
    # a conversation that everybody shares has what only others may see
    is_apart = bool(speaker.limits) and agent.config.scope is Scope.AGENT
    key = build_window_key(
        Scope.CONVERSATION if is_apart else agent.config.scope,
        session.conversation_id,
        device=speaker.device,
        user=user_input.context.user_id,
        owner=speaker.person if speaker.is_known_by_device else None,
    )
    turn = ConversationTurn(agent, entity_id, str(key), user_input, speaker.for_window(key), gate)
    turn.wait_ends_at = received_at + agent.config.turn_timeout
    if (pipeline_log := find_pipeline_log(session)) is not None:
        replace_input_text(pipeline_log, user_input.text)
        pipeline_turn = PipelineTurn(turn, pipeline_log, received_at)
        return await pipeline_turn.async_run(_async_answer_pipeline(turn, pipeline_turn.reply))
    with agent.windows.reserve(turn.window_key) as place, ExitStack() as stack:
        open_log = partial(_open_chat_log, stack, turn, session)
        turn.begin(place, open_log(is_own=not place.is_first), partial(open_log, is_own=False))
        return await async_answer(turn)


async def _async_answer_pipeline(turn: ConversationTurn, reply: ChatLogReply) -> ConversationResult:
    with turn.agent.windows.reserve(turn.window_key) as place:
        turn.begin(place, reply)
        return await async_answer(turn)


def _open_chat_log(stack: ExitStack, turn: ConversationTurn, session: ChatSession, *, is_own: bool) -> ChatLogReply:
    """Return the reply to an input in its chat log, or in a log of its own while another turn uses the chat log."""
    hass, user_input = turn.agent.hass, turn.user_input
    stack.close()
    if not is_own:
        try:
            chat_log = stack.enter_context(conversation.async_get_chat_log(hass, session, user_input))
        except BUSY_ERRORS:
            is_own = True
        else:
            # other agents use the chat log as well, so restore the tools that it has
            stack.callback(setattr, chat_log, "llm_api", chat_log.llm_api)
    if is_own:
        chat_log = stack.enter_context(open_own_log(hass, user_input))
    return ChatLogReply(chat_log, turn.entity_id)


async def async_answer(turn: ConversationTurn) -> ConversationResult:
    """Run a turn and return its result. An unexpected exception also becomes a spoken answer."""
    hass, user_input = turn.agent.hass, turn.user_input
    satellite_id, echoed = user_input.satellite_id, None
    if satellite_id is not None:
        echoed = async_take_echoed_answer(hass, satellite_id, turn.speaker.text)
    try:
        _record_pipeline_answers(turn)
        state = turn.state = Turn(
            turn.window,
            turn.speaker.text,
            _decide_route(turn, is_echo=echoed is not None),
            turn.agent.config.turn_timeout,
            turn,
        )
        try:
            await run_turn(state)
            turn.agent.last_memory_answers.update(turn.dialog.answers)
        finally:
            record = turn.record = describe_turn(turn)
            turn.attributes = {
                "reason": record["reason"],
                "error": record["error"],
                **name_asked_agents(hass, record),
                **(turn.live_context.metrics if turn.live_context else {"recalled_tokens": None, "recall_ms": None}),
                "turn_id": turn.record_id,
                "entities": _find_entities(turn),
            }
            stats = turn.stats_before if state.run is None else turn.window.stats()
            async_trace_turn(state, record, turn.attributes, stats)
            defer_steps(turn)
        result = await _async_build_result(turn) if echoed is None else _build_echo_result(turn, echoed)
    except Exception as err:  # noqa: BLE001 - no error is answered with silence
        log_fault(_LOGGER, _FAULT_MESSAGE, err)
        result = await _async_build_failure_result(turn, err, turn.reply.text)
    if satellite_id is not None and not turn.is_in_background:
        async_record_spoken_answer(hass, satellite_id, result)
    return result


def _decide_route(turn: ConversationTurn, *, is_echo: bool) -> RouteDecision:
    """Return the first route. The last answer of memory is taken by the next input that is no echo."""
    if is_echo:
        return RouteDecision(Route.LOCAL, RouteReason.ECHO)
    if turn.dialog.answers:
        said = [each.content for each in turn.chat_log.content if isinstance(each, AssistantContent) and each.content]
        turn.dialog.take_last_answer(said[-1] if said else "")
    # the next input finds only what this turn has said, not what its model is about to ask
    turn.dialog.answers = {}
    if turn.gate.take_reply():
        return RouteDecision(Route.LOCAL, RouteReason.LOCAL_MATCH)
    return decide_first_route(turn.agent.config.routing, turn.speaker.text)


def _build_echo_result(turn: ConversationTurn, echoed: SpokenAnswer) -> ConversationResult:
    """Return a silent result, as Home Assistant's "never mind" has. After a question, the satellite listens again."""
    turn.reply.add_answer("")
    response = IntentResponse(turn.user_input.language)
    response.async_set_speech("")
    return ConversationResult(response, turn.chat_log.conversation_id, continue_conversation=echoed.is_question)


async def _async_build_result(turn: ConversationTurn) -> ConversationResult:
    state, log = turn.state, turn.chat_log
    if state.decision.route is Route.LOCAL and turn.intents is not None and turn.intents.response is not None:
        response = turn.intents.response
        if turn.reply.is_being_spoken:
            turn.reply.speak(turn.intents.answer_text)
        asks = turn.intents.asks or log.continue_conversation
        if turn.reply.has_listener:
            await _async_complete_answer(turn, response, turn.intents.answer_text, asks=asks)
        return ConversationResult(response, log.conversation_id, continue_conversation=asks)
    if state.error is not None:
        return await _async_build_failure_result(turn, state.error, state.sent_text)
    # the result is made of the last content, so the sources come after it
    result = conversation.async_get_result_from_chat_log(turn.user_input, log)
    if (question := await turn.gate.async_find_unasked_question(state.sent_text)) is not None:
        result.response.async_set_speech(await turn.reply.add_sentence(question))
    result.continue_conversation |= turn.gate.expect_reply()
    _add_card(turn, result.response)
    if turn.reply.has_listener:
        await _async_complete_answer(turn, result.response, turn.reply.text, asks=result.continue_conversation)
    if state.sources:
        await turn.reply.add_sources(state.sources)
    return result


async def _async_complete_answer(turn: ConversationTurn, response: IntentResponse, answer: str, *, asks: bool) -> None:
    """Complete an answer that a person hears or reads.

    One that does not ask gets the reminders that could not be delivered, and one in the chat dialog, which has no
    satellite, shows where the page explains it.
    """
    hass, user_input, speaker = turn.agent.hass, turn.user_input, turn.speaker
    take = turn.reminders.reminders.async_take_unheard
    if not asks and (unheard := await take(turn.reminders.satellite, speaker.person, speaker.language)):
        ending = format_next_sentence(answer, unheard)
        turn.reply.speak(ending, is_new=not answer)
        response.async_set_speech(f"{answer}{ending}")
    if user_input.satellite_id is not None or FRONTEND not in hass.config.components:
        return
    links = {"why.link": f"turns?turn={turn.id}"}
    if turn.state.decision.reason is RouteReason.MEMORY_REQUEST:
        links = {"memory.title": "memory", **links}
    named = [
        f"[{await async_get_spoken_text(hass, user_input.language, 'config_panel', key)}](/{PANEL_PATH}/{address})"
        for key, address in links.items()
    ]
    turn.reply.show_details(" · ".join(named))


def _find_entities(turn: ConversationTurn) -> list[str]:
    """Return the entities that were reached, and those that a model was asked about or whose pictures it looked at."""
    found, run = [each for run in turn.tool_runs for each in run.entity_ids], turn.state.run
    if turn.intents is not None and turn.intents.response is not None:
        found += list_reached_entities(turn.intents.response)
    if run is not None and (home_states := async_get_home_states(turn.agent.hass)) is not None:
        looks = [picture.name for picture in run.question.pictures.values()]
        # of a long text, only the beginning is read
        text = " ".join((*looks, turn.speaker.text, turn.state.sent_text))
        found += home_states.get_home(turn.user_input.language).find_mentions(text).entities
    return [*dict.fromkeys(found)][:_MAX_ENTITIES]


def _add_card(turn: ConversationTurn, response: IntentResponse) -> None:
    """Add the entities of a model's answer to the response, as an intent does, and its sources as a card."""
    states = filter(None, map(turn.agent.hass.states.get, turn.attributes["entities"]))
    targets = [IntentResponseTarget(each.name, IntentResponseTargetType.ENTITY, each.entity_id) for each in states]
    response.async_set_results(targets)
    if turn.state.sources:
        lines = [f"{source.title}: {source.url}" for source in turn.state.sources]
        response.async_set_card(turn.agent.config.name, "\n".join(lines))


def _record_pipeline_answers(turn: ConversationTurn) -> None:
    """Add the exchanges that the pipeline answered since our last turn to the window, except for forgotten ones."""
    agent, store = turn.agent, async_get_store(turn.agent.hass)
    for exchange in find_pipeline_exchanges(turn.chat_log, turn.entity_id, turn.window.messages()):
        agent.last_memory_answers.pop(turn.window_key, None)
        if store is None or not store.predates_forgetting(exchange[0].created or -math.inf):
            turn.defer(partial(_add_pipeline_exchange, turn, exchange))


def _add_pipeline_exchange(turn: ConversationTurn, exchange: tuple[Message, ...]) -> None:
    # a turn that was interrupted meanwhile may have added it already
    window = turn.get_window()
    if not any(each.created == exchange[0].created for each in window.messages()):
        window.add_exchange(exchange, tags={f"route:{Route.LOCAL}"})


async def _async_build_failure_result(turn: ConversationTurn, error: Exception, spoken: str) -> ConversationResult:
    """Return the result of a failed turn, with the error message after any text that was already spoken.

    A pipeline shows an error response beside the streamed text, but a streaming text-to-speech engine does not speak
    it. In that case, the error message becomes part of the answer, and the response is a normal one.
    """
    code, message, phrase = await _async_describe_error(turn.agent, turn.user_input, error)
    agent = turn.current_agent
    on_failure = agent.statistics.on_failure
    agent.defer_work(turn.window_key, (on_failure,), get_error_key(error), message, turn.record_id)
    if not spoken.strip() and not turn.reply.is_being_spoken:
        turn.reply.add_answer(phrase)
        return _error_result(turn.user_input, code, phrase)
    last_message = await turn.reply.add_sentence(phrase)
    result = _error_result(turn.user_input, code, f"{spoken}{format_next_sentence(spoken, phrase)}")
    if turn.reply.has_listener:
        # ACTION_DONE would claim that something was done
        result.response.response_type = IntentResponseType.QUERY_ANSWER
        result.response.async_set_speech(last_message)
    return result


async def _async_describe_error(
    agent: Agent, user_input: ConversationInput, error: Exception
) -> tuple[IntentResponseErrorCode, str, str]:
    failure, hass, language = describe_error(error), agent.hass, user_input.language
    message = await async_get_error_phrase(hass, language, failure)
    if user_input.satellite_id is None:
        return failure.code, message, message
    has_local_commands = agent.config.routing is not RoutingMode.MODEL_ONLY
    phrase = await async_get_heard_phrase(hass, language, failure, has_local_commands=has_local_commands)
    return failure.code, message, phrase


def _error_result(user_input: ConversationInput, code: IntentResponseErrorCode, message: str) -> ConversationResult:
    response = IntentResponse(user_input.language)
    response.async_set_error(code, message)
    return ConversationResult(response, user_input.conversation_id)
