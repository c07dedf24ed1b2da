"""The record of a turn or a summary, most of which the writer thread builds."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
import time
from typing import Any, NamedTuple
from uuid import uuid7

from homeassistant.core import callback

from ..bridge.chat_log import WEB_SEARCH_TOOL
from ..bridge.errors import ERROR_KEY_BY_CLASS_NAME, get_error_key
from ..bridge.persons import async_find_automation
from ..bridge.turn_report import NO_USAGE, build_waterfall
from ..const import RecordLevel
from ..providers import Request, ToolSchema, Usage
from ..record import (
    EMPTY_TURN,
    AttemptRecord,
    ToolCallText,
    TurnRecord,
    calculate_fingerprint,
    encode_json,
    store_turn,
)
from ..store import WriteJob
from ..turn.attempts import Attempt, AttemptResult, get_attempt_result
from ..window import Message, Role
from .account import MAX_SPEAKER_TURNS, RecentTurn, SentContext
from .agent import Agent
from .conversation_turn import ConversationTurn
from .costs import async_price
from .store import async_get_store
from .turn_log import log_requests


class TurnText(NamedTuple):
    """The text of a turn, with the tool calls that its requests do not have."""

    said: str
    answer: str
    tool_calls: tuple[ToolCallText, ...] = ()


def describe_turn(turn: ConversationTurn) -> TurnRecord:
    """Return the record of a turn that has ended, without its requests and its text."""
    state, speaker = turn.state, turn.speaker
    error = state.error or state.interruption
    result = get_attempt_result(error)
    record: TurnRecord = {
        **EMPTY_TURN,
        "usage": NO_USAGE,
        "turn_id": turn.id,
        "time": turn.started_at,
        "agent": turn.agent.id,
        "entity_id": turn.entity_id,
        "conversation_id": turn.window.conversation_id,
        "person": speaker.person,
        "known_by": speaker.person and speaker.source,
        "device": speaker.device,
        "automation": async_find_automation(turn.agent.hass, turn.user_input.context),
        "route": state.decision.route,
        "reason": state.decision.reason,
        "outcome": result,
        "error": get_error_key(error) if result is AttemptResult.ERROR and error else None,
        "message": str(state.error) if state.error else None,
        # unless a model is asked
        "tools": turn.gate.called,
        "cost": "0",
        "duration": state.duration_seconds,
        "waterfall": build_waterfall(state.started_at, state.attempts, turn.tool_runs, turn.recognition_seconds),
    }
    if state.run is None:
        return record
    return {
        **add_request_sums(record, state.attempts),
        "answered_by": state.answered_by,
        "failures": [{"agent": each.agent, "error": get_error_key(each.error)} for each in state.failures],
        "failed_tool_calls": state.failed_tool_calls,
        "memory_late": turn.live_context is not None and turn.live_context.is_search_late,
        "cost": None,
        "time_to_first_token": state.first_token_seconds,
    }


def add_request_sums(record: TurnRecord, attempts: Sequence[Attempt]) -> TurnRecord:
    """Return a record with the number of its requests, the sum of their usage, and the names of the called tools."""
    usage = sum([each.billed_request.usage for each in attempts if each.billed_request], Usage())
    tools = dict.fromkeys([name for each in attempts for name in _list_called_tools(each)])
    return {**record, "requests": len(attempts), "usage": asdict(usage), "tools": [*tools]}


@callback
def async_record_turn(agent: Agent, turn: ConversationTurn) -> None:
    """Keep a turn in working memory, and pass its record to the writer thread."""
    state, run, record = turn.state, turn.state.run, turn.record
    speech = state.sent_text or (turn.intents.answer_text if turn.intents else "")
    searches: tuple[ToolCallText, ...] = ()
    if state.sources:
        # like a tool's result, sources are part of the text, which is forgotten earlier than the statistics
        sources = encode_json({"sources": [asdict(source) for source in state.sources]})
        searches = ({"name": WEB_SEARCH_TOOL, "arguments": {}, "result": sources},)
    text, attempts = TurnText(turn.speaker.text, speech, searches), tuple(state.attempts)
    complete = partial(build_turn_record, record, attempts, state.started_at, text)
    if run is not None and (run.question.files or run.question.pictures):
        # the text of the requests is kept instead of the requests, which hold the pictures
        complete, attempts = partial(copy, complete()), ()
    context = turn.live_context.sent if turn.live_context is not None else SentContext()
    store = async_get_store(agent.hass)
    # a turn that began before the end of a deletion may repeat the deleted text
    if store is not None and not store.predates_forgetting(record["time"]):
        speaker_id, turns = turn.speaker.person or turn.speaker.device, agent.state.recent_turns
        own = [each for each in turns if each.speaker_id == speaker_id]
        if len(own) >= MAX_SPEAKER_TURNS:
            turns.remove(own[0])
        turns.append(RecentTurn(record, turn.window_key, speaker_id, turn.speaker, speech, complete, context, attempts))
    _async_store_turn(agent, record, state.attempts, state.started_at, text)


@dataclass(slots=True)
class BackgroundRequests:
    """The requests of one piece of work outside of turns."""

    attempts: list[Attempt] = field(default_factory=list)
    # Is recorded if the agent's record level allows it.
    text: TurnText | None = None
    # Is known once they have ended.
    usage: Usage = field(default_factory=Usage)


@contextmanager
def record_background(agent: Agent, **statistics: Any) -> Iterator[BackgroundRequests]:
    """Yield an object for the requests that the block sends, then count, price and record them, even if it fails.

    `statistics` are the fields of the `TurnRecord` that the requests do not give.
    """
    requests, at, started = BackgroundRequests(), time.time(), time.monotonic()
    error: BaseException | None = None
    try:
        yield requests
    except BaseException as err:
        error = err
        raise
    finally:
        attempts, result = requests.attempts, get_attempt_result(error)
        base: TurnRecord = {**EMPTY_TURN, **statistics}  # type: ignore[typeddict-item]
        record: TurnRecord = {
            **add_request_sums(base, attempts),
            "turn_id": str(uuid7()),
            "time": at,
            "agent": agent.id,
            "outcome": result,
            "error": get_error_key(error) if result is AttemptResult.ERROR and error else None,
            "answered_by": None if error else agent.id,
            "duration": time.monotonic() - started,
            "waterfall": build_waterfall(started, attempts),
        }
        billed = [each.billed_request for each in attempts if each.billed_request is not None]
        requests.usage = sum((each.usage for each in billed), Usage())
        server = agent.entry.runtime_data.server
        if server is not None and AttemptResult.ANSWERED in [each.result for each in attempts]:
            server.on_answered(agent.id)
        agent.statistics.add_use(requests.usage, len(attempts))
        log_requests(record["turn_id"], attempts)
        _async_store_turn(agent, record, attempts, started, requests.text)
        async_price(agent, record["turn_id"], billed or None, of_turn=False)
        agent.notify_listeners()


@callback
def _async_store_turn(
    agent: Agent, statistics: TurnRecord, attempts: Sequence[Attempt], started: float, text: TurnText | None
) -> None:
    """Pass a record to the writer thread, with the text that the agent's record level allows, if it is given."""
    store, level = async_get_store(agent.hass), agent.config.record
    if store is None or level is RecordLevel.OFF:
        return
    stored_text = text if level is RecordLevel.FULL and not store.predates_forgetting(statistics["time"]) else None
    build = partial(build_turn_record, statistics, tuple(attempts), started, stored_text)
    store.async_queue_record(WriteJob(store_turn, arguments=(build,)))


def build_turn_record(
    statistics: TurnRecord, attempts: Sequence[Attempt], started: float, text: TurnText | None
) -> TurnRecord:
    """Return a record completed with its requests and, if `text` is given, the text with all tool calls.

    `started` is the start of the turn, in seconds on the monotonic clock.
    """
    requests = [_build_attempt_record(each, started, has_text=text is not None) for each in attempts]
    record: TurnRecord = {**statistics, "attempts": requests}
    if text is None:
        return record
    calls = [*_build_tool_calls(attempts), *text.tool_calls]
    return {**record, "has_text": True, "said": text.said, "answer": text.answer, "tool_calls": calls}


def _build_attempt_record(attempt: Attempt, started: float, *, has_text: bool) -> AttemptRecord:
    request, system, messages = attempt.request, "", attempt.request.messages
    if messages and messages[0].role is Role.SYSTEM:
        system, messages = messages[0].content, messages[1:]
    is_error = attempt.result is AttemptResult.ERROR
    record: AttemptRecord = {
        "purpose": attempt.purpose,
        "agent": attempt.model.agent_id,
        "provider": attempt.model.provider.name,
        "model": request.model,
        "outcome": attempt.result,
        "error": ERROR_KEY_BY_CLASS_NAME.get(attempt.error_name or "", "unexpected") if is_error else None,
        "finish": attempt.finish_reason,
        "began": max(0.0, attempt.started_at - started),
        "time_to_first_byte": attempt.first_byte_seconds,
        "time_to_first_token": attempt.first_token_seconds,
        "duration": attempt.ended_at - attempt.started_at,
        "parameters": _build_parameters(request),
        "prompt": calculate_fingerprint(system) if system else None,
        "tool_list": _calculate_tools_fingerprint(request.tools) if request.tools else None,
        "tools": _list_called_tools(attempt),
        "usage": asdict(attempt.billed_request.usage) if attempt.billed_request else None,
    }
    if has_text:
        tools = [_build_tool(each) for each in request.tools]
        record["sent"] = {"system": system, "tools": tools, "messages": [_build_message(each) for each in messages]}
    return record


def _list_called_tools(attempt: Attempt) -> list[str]:
    """Return the names of the called tools. The name of one that was not offered is invented, so it is not recorded."""
    request = attempt.request
    offered = {tool.name for tool in (*request.tools, *request.deferred_tools)}
    return [call.name if call.name in offered else "unknown" for call in attempt.tool_calls]


def _build_message(message: Message) -> dict[str, Any]:
    """Return a message without the provider's residue and without the data of attachments."""
    fields = {
        "role": message.role,
        "content": message.content,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls
        ],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "attachments": [
            {"mime_type": each.mime_type, "name": each.name, "bytes": len(each.data)} for each in message.attachments
        ],
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}


def _build_parameters(request: Request) -> dict[str, Any]:
    settings = request.settings
    parameters = {
        "effort": settings.effort,
        "temperature": settings.temperature,
        "compaction": settings.compaction or None,
        "max_answer_tokens": request.answer_limit,
        "may_call": None if request.may_call else False,
        "requires_call": request.requires_call or None,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def _build_tool_calls(attempts: Sequence[Attempt]) -> list[ToolCallText]:
    """Return the tool calls of a turn, with their results as sent in the requests that followed."""
    results: dict[str | None, str] = {}
    for attempt in attempts:
        results.update(_find_tool_results(attempt.request.messages))
    return [
        {"name": call.name, "arguments": dict(call.arguments), "result": results.get(call.id)}
        for attempt in attempts
        for call in attempt.tool_calls
    ]


def _find_tool_results(messages: Sequence[Message]) -> Mapping[str | None, str]:
    found: dict[str | None, str] = {}
    for message in reversed(messages):
        if message.role is Role.USER:
            break
        if message.role is Role.TOOL:
            found[message.tool_call_id] = message.content
    return found


def _build_tool(tool: ToolSchema) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


# A small cache is enough: the few tool lists rarely change, but take long to serialize.
@lru_cache(maxsize=16)
def _calculate_tools_fingerprint(tools: tuple[ToolSchema, ...]) -> str:
    return calculate_fingerprint(encode_json([_build_tool(each) for each in tools]))
