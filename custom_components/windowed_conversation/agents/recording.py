"""The record of a turn or a summary, most of which the writer thread builds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from functools import lru_cache, partial
import json
import sys
import time

from homeassistant.core import callback

from ..bridge.chat_log import WEB_SEARCH_TOOL
from ..const import RecordLevel
from ..memory import (
    CallRecord,
    FailureRecord,
    RequestContent,
    RequestRecord,
    TokenUsage,
    ToolRunRecord,
    TurnCost,
    TurnRecord,
    TurnText,
    calculate_fingerprint,
)
from ..providers import Request, ToolSchema, Usage
from ..turn.attempts import Attempt, AttemptResult, get_attempt_result
from ..window import Message, Role
from .agent import Agent
from .conversation_turn import ConversationTurn
from .costs import async_price_summary
from .reload_state import RecentTurn, SentContext
from .store import async_get_store
from .turn_log import log_requests

# A model may call any number of tools at once.
_MAX_TOOL_RUNS = 100

_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


@callback
def async_record_turn(agent: Agent, turn: ConversationTurn) -> None:
    """Keep a turn in working memory, and pass its record to the writer thread."""
    state, speaker = turn.state, turn.speaker
    error = state.error or state.interruption
    record = TurnRecord(
        id=turn.id,
        at=turn.started_at,
        agent=agent.id,
        route=state.decision.route,
        end=state.result.value,
        reason=state.decision.reason,
        conversation=turn.window.conversation_id,
        person=speaker.person,
        device=speaker.device,
        entity_id=turn.entity_id,
        error=type(error).__name__ if error else None,
        message=str(state.error) if state.error else None,
        answered_by=state.answered_by,
        failures=tuple([FailureRecord(each.agent, type(each.error).__name__) for each in state.failures]),
        recognition=state.recognition_seconds,
        first_token=state.first_token_seconds,
        duration=state.duration_seconds,
        tool_runs=tuple(
            [
                ToolRunRecord(each.name, each.started_at - state.started_at, each.ended_at - each.started_at)
                for each in state.tool_runs[:_MAX_TOOL_RUNS]
            ]
        ),
        failed_tool_calls=state.failed_tool_calls,
        # a turn without requests costs nothing
        cost="0" if state.last_agent_id is None else None,
    )
    speech = state.sent_text or (turn.intents.answer_text if turn.intents else "")
    searches: tuple[CallRecord, ...] = ()
    if state.sources:
        # like a tool's result, sources are part of the text, which is forgotten earlier than the statistics
        found = _encode_json({"sources": [asdict(source) for source in state.sources]})
        searches = (CallRecord(WEB_SEARCH_TOOL, "{}", found),)
    words, attempts = TurnText(speaker.text, speech, searches), tuple(state.attempts)
    outline = partial(complete_record, record, attempts, state.started_at, None)
    complete = partial(complete_record, record, attempts, state.started_at, words)
    if state.files or state.pictures:
        # the text of the requests is kept instead of the requests, which hold the pictures
        outline, complete, attempts = partial(replace, outline()), partial(replace, complete()), ()
    live_tokens = state.context.tokens if state.context is not None else 0
    context = turn.live_context.sent if turn.live_context is not None else SentContext()
    agent.state.recent_turns.append(RecentTurn(record, speaker, outline, complete, context, attempts, live_tokens))
    async_store_record(agent, record, state.attempts, state.started_at, words)


@callback
def async_record_cost(agent: Agent, turn: str, cost: Decimal | None) -> None:
    """Add the cost of a turn or a summary to its record, which is already stored by then."""
    store = async_get_store(agent.hass)
    for recent in agent.state.recent_turns:
        if recent.record.id == turn:
            recent.cost = None if cost is None else str(cost)
    if cost is not None and store is not None and agent.config.record is not RecordLevel.OFF:
        store.async_queue_record(TurnCost(turn, str(cost)))


@callback
def async_record_background(
    agent: Agent,
    record: TurnRecord,
    attempts: Sequence[Attempt],
    started: float,
    *,
    words: TurnText | None = None,
) -> Usage:
    """Count, price and record requests outside of turns, even if an exception is ending them. Return their usage.

    `started` is the start of the requests in seconds on the monotonic clock.
    """
    error = sys.exception()
    record = replace(
        record,
        end=get_attempt_result(error).value,
        error=type(error).__name__ if error else None,
        answered_by=None if error else agent.id,
        duration=time.monotonic() - started,
    )
    billed = [each.billed_request for each in attempts if each.billed_request is not None]
    usage = sum((each.usage for each in billed), Usage())
    if agent.entry.runtime_data.server is not None and AttemptResult.ANSWERED in [each.result for each in attempts]:
        agent.entry.runtime_data.server.on_answered(agent.id)
    agent.statistics.on_summary(len(attempts), usage)
    log_requests(record.id, attempts)
    async_store_record(agent, record, attempts, started, words)
    async_price_summary(agent, billed, partial(async_record_cost, agent, record.id))
    agent.notify_listeners()
    return usage


@callback
def async_store_record(
    agent: Agent, record: TurnRecord, attempts: Sequence[Attempt], started: float, words: TurnText | None
) -> None:
    """Pass a record to the writer thread, with the content that the agent's record level allows, if `words` is given.

    `started` is the start of the turn or the summary, in seconds on the monotonic clock.
    """
    store, level = async_get_store(agent.hass), agent.config.record
    if store is None or level is RecordLevel.OFF:
        return
    stored_words = words if level is RecordLevel.FULL and not store.predates_forgetting(record.at) else None
    store.async_queue_record(partial(complete_record, record, tuple(attempts), started, stored_words))


def complete_record(
    record: TurnRecord, attempts: Sequence[Attempt], started: float, words: TurnText | None
) -> TurnRecord:
    """Return a record completed with its requests and, if `words` is given, the text with all tool calls.

    `started` is the start of the turn, in seconds on the monotonic clock.
    """
    requests = tuple([_build_request_record(each, started, has_text=words is not None) for each in attempts])
    tools = tuple(dict.fromkeys([name for each in requests for name in each.called]))
    record = replace(record, requests=requests, tools=tools)
    if words is None:
        return record
    return replace(record, level="full", words=replace(words, calls=(*_build_call_records(attempts), *words.calls)))


def _build_request_record(attempt: Attempt, started: float, *, has_text: bool) -> RequestRecord:
    request, system, messages = attempt.request, "", attempt.request.messages
    if messages and messages[0].role is Role.SYSTEM:
        system, messages = messages[0].content, messages[1:]
    tools, names = _encode_tools(request.tools), {tool.name for tool in request.tools}
    return RequestRecord(
        agent=attempt.model.agent_id,
        provider=attempt.model.provider.name,
        model=request.model,
        end=attempt.result.value,
        purpose=attempt.purpose,
        began=max(0.0, attempt.started_at - started),
        duration=attempt.ended_at - attempt.started_at,
        first_byte=attempt.first_byte_seconds,
        first_token=attempt.first_token_seconds,
        parameters=_encode_parameters(request),
        prompt=calculate_fingerprint(system) if system else None,
        tools=_cached_fingerprint(tools) if request.tools else None,
        # the name of a tool that was not offered is text invented by the model, so it is not recorded
        called=tuple([call.name if call.name in names else "unknown" for call in attempt.tool_calls]),
        error=attempt.error_name,
        finish=attempt.finish_reason,
        usage=TokenUsage(**asdict(attempt.billed_request.usage)) if attempt.billed_request else None,
        sent=RequestContent(system, tools, tuple(map(_encode_message, messages))) if has_text else None,
    )


def _encode_message(message: Message) -> str:
    """Return a message as JSON, without the provider's residue and without the data of attachments."""
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
    return _encode_json({name: value for name, value in fields.items() if value not in (None, [])})


def _encode_parameters(request: Request) -> str:
    settings = request.settings
    parameters = {
        "effort": settings.effort,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "compaction": settings.compaction or None,
        "max_answer_tokens": request.answer_limit,
        "may_call": None if request.may_call else False,
    }
    return _encode_json({name: value for name, value in parameters.items() if value is not None})


def _build_call_records(attempts: Sequence[Attempt]) -> tuple[CallRecord, ...]:
    """Return the tool calls of a turn, with their results as sent in the requests that followed."""
    results: dict[str | None, str] = {}
    for attempt in attempts:
        results.update(_find_tool_results(attempt.request.messages))
    return tuple(
        CallRecord(call.name, _encode_json(dict(call.arguments)), results.get(call.id))
        for attempt in attempts
        for call in attempt.tool_calls
    )


def _find_tool_results(messages: Sequence[Message]) -> Mapping[str | None, str]:
    """Return the tool results in the newest exchange, by tool call id."""
    found: dict[str | None, str] = {}
    for message in reversed(messages):
        if message.role is Role.USER:
            break
        if message.role is Role.TOOL:
            found[message.tool_call_id] = message.content
    return found


# A small cache is enough: the few tool lists rarely change, but take long to serialize.
@lru_cache(maxsize=16)
def _encode_tools(tools: tuple[ToolSchema, ...]) -> str:
    return _encode_json(
        [{"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)} for tool in tools]
    )


_cached_fingerprint = lru_cache(maxsize=16)(calculate_fingerprint)
