"""Reports turns and summaries to the conversation trace and the event bus: ids and numbers, but no text."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from homeassistant.components import conversation
from homeassistant.const import Platform
from homeassistant.core import Context, HomeAssistant, callback
from homeassistant.helpers import entity_registry as er, intent

from ..const import DOMAIN
from ..providers import Usage
from ..record import TurnRecord
from ..turn.attempts import Attempt, ToolRun
from ..turn.state import Turn
from ..window import WindowStats

# The fields that the trace and the event of a turn have in common with its record.
_SHARED_FIELDS = ("route", "known_by", "requests", "failed_tool_calls", "usage", "time_to_first_token", "duration")
# The usage of a turn without requests.
NO_USAGE = asdict(Usage())

# Of one turn. A model may call any number of tools at once.
_MAX_STEPS = 100

# Of one tool. A model may name any number of entities.
_MAX_REACHED_ENTITIES = 20

EVENT_TURN = f"{DOMAIN}_turn"
EVENT_TRIMMED = f"{DOMAIN}_trimmed"
EVENT_SUMMARIZED = f"{DOMAIN}_summarized"
EVENT_FORGOTTEN = f"{DOMAIN}_forgotten"
EVENT_REPLACED = f"{DOMAIN}_replaced"
EVENT_ANSWER = f"{DOMAIN}_answer"
EVENT_REMINDER = f"{DOMAIN}_reminder"


@callback
def find_agent_entity_id(hass: HomeAssistant, agent_id: str) -> str:
    """Return the entity id of one of our agents or AI tasks. The id of any other agent is its entity id already."""
    domains, registry = (conversation.DOMAIN, Platform.AI_TASK), er.async_get(hass)
    found = [registry.async_get_entity_id(domain, DOMAIN, agent_id) for domain in domains]
    return next(filter(None, found), agent_id)


@callback
def name_asked_agents(hass: HomeAssistant, record: TurnRecord) -> dict[str, Any]:
    """Return the fields of a record with the agent that answered and those that failed before, as entity ids.

    The agent that answered is None for a local answer.
    """
    answered_by, failures = record["answered_by"], record["failures"]
    return {
        "answered_by": answered_by and find_agent_entity_id(hass, answered_by),
        "failures": [{**each, "agent": find_agent_entity_id(hass, each["agent"])} for each in failures],
    }


def list_reached_entities(response: object) -> tuple[str, ...]:
    """Return the ids of at most 20 entities that an intent has reached; empty for anything but its response."""
    targets = response.success_results if isinstance(response, intent.IntentResponse) else ()
    entities = [each.id for each in targets if each.id and each.type is intent.IntentResponseTargetType.ENTITY]
    return tuple(entities[:_MAX_REACHED_ENTITIES])


@callback
def async_trace_turn(turn: Turn, record: TurnRecord, answer: Mapping[str, Any], stats: WindowStats) -> None:
    """Add a turn to the conversation trace. `answer` are the attributes of its answer.

    `stats` are the statistics of the window at the time of the answer; a local answer is not in the window yet.
    """
    budget = {
        "max_tokens": stats.max_tokens,
        "tokens": stats.current_tokens,
        "prefix_tokens": stats.prefix_tokens,
        "over_budget": stats.over_budget,
    }
    conversation.async_conversation_trace_append(
        conversation.ConversationTraceEventType.AGENT_DETAIL,
        {
            **_build_fields(turn, record),
            **answer,
            "budget": budget,
            "cache": _cache_fields(turn) if turn.attempts else None,
        },
    )


def build_window_figures(stats: WindowStats) -> dict[str, Any]:
    """Return the statistics of a window by the names that responses, traces and diagnostics give them."""
    return {
        "messages": stats.message_count,
        "exchanges": stats.exchange_count,
        "tokens": stats.current_tokens,
        "max_tokens": stats.max_tokens,
        "utilization": round(stats.utilization, 1),
        "over_budget": stats.over_budget,
        "prefix_tokens": stats.prefix_tokens,
        "protected_tokens": stats.protected_tokens,
        "tags": dict(stats.tag_distribution),
        "evicted": {
            "exchanges": stats.evicted_exchanges,
            "messages": stats.evicted_messages,
            "tokens": stats.evicted_tokens,
        },
        "trims": stats.trims,
    }


@callback
def async_fire_turn_event(
    hass: HomeAssistant,
    turn: Turn,
    record: TurnRecord,
    answer: Mapping[str, Any],
    before_and_after: tuple[WindowStats, WindowStats],
    *,
    context: Context,
) -> None:
    """Fire the event of a turn, and the event of a trim if the turn caused one.

    `answer` are the attributes of the answer, and `context` identifies the user. The events have no cost, which is not
    known yet; the sensors show it.
    """
    ids = {"entity_id": record["entity_id"], "conversation_id": record["conversation_id"]}
    data = {**ids, **_build_fields(turn, record), "waterfall": record["waterfall"], **answer}
    hass.bus.async_fire(EVENT_TURN, data, context=context)
    _fire_trim_event(hass, ids, before_and_after)


@callback
def async_fire_summary_event(
    hass: HomeAssistant,
    ids: dict[str, str],
    counts: dict[str, int],
    usage: Usage,
    before_and_after: tuple[WindowStats, WindowStats],
) -> dict[str, Any]:
    """Fire the event of a summary, and the event of a trim if it evicted exchanges. Return the event data."""
    data = {**ids, **counts, "usage": asdict(usage)}
    hass.bus.async_fire(EVENT_SUMMARIZED, data)
    _fire_trim_event(hass, ids, before_and_after)
    return data


@callback
def async_fire_agent_event(hass: HomeAssistant, event: str, agent_id: str, **data: Any) -> None:
    """Fire an event of an agent with this data. The agent is named by its entity id."""
    hass.bus.async_fire(event, {"entity_id": find_agent_entity_id(hass, agent_id), **data})


def _fire_trim_event(
    hass: HomeAssistant, ids: Mapping[str, str | None], before_and_after: tuple[WindowStats, WindowStats]
) -> None:
    """Fire the event of a trim if exchanges were evicted."""
    before, after = before_and_after
    if (exchanges := after.evicted_exchanges - before.evicted_exchanges) > 0:
        messages, tokens = (
            after.evicted_messages - before.evicted_messages,
            after.evicted_tokens - before.evicted_tokens,
        )
        evicted = {"exchanges": exchanges, "messages": messages, "tokens": tokens}
        hass.bus.async_fire(EVENT_TRIMMED, {**ids, "evicted": evicted})


def _build_fields(turn: Turn, record: Mapping[str, object]) -> dict[str, Any]:
    return {
        **{name: record[name] for name in _SHARED_FIELDS},
        "tool_calls": turn.tool_calls,
        "sources": [asdict(source) for source in turn.sources],
    }


def build_waterfall(
    started_at: float, attempts: Iterable[Attempt], tool_runs: Iterable[ToolRun] = (), recognition: float | None = None
) -> list[dict[str, Any]]:
    """Return the steps of a turn in the order of their starts. Times are in seconds since the turn began.

    `started_at` is that moment on the monotonic clock, and `recognition` the end of the step before the requests.
    """
    steps: list[dict[str, Any]] = [
        {"step": "tool", "name": each.name, "start": each.started_at - started_at, "end": each.ended_at - started_at}
        for each in tool_runs
    ]
    for attempt in attempts:
        start = max(0.0, attempt.started_at - started_at)
        first_byte, first_token = attempt.first_byte_seconds, attempt.first_token_seconds
        steps.append(
            {
                "step": "request",
                "start": start,
                "first_byte": None if first_byte is None else start + first_byte,
                "first_token": None if first_token is None else start + first_token,
                "end": start + attempt.ended_at - attempt.started_at,
            }
        )
    if recognition is not None:
        steps.append({"step": "recognition", "start": 0.0, "end": recognition})
    return sorted(steps, key=itemgetter("start"))[:_MAX_STEPS]


def _cache_fields(turn: Turn) -> dict[str, Any] | None:
    """Return the last request's prompt cache settings, as the provider names them, and its billed tokens."""
    if not turn.billed_requests:
        return None
    last = turn.billed_requests[-1]
    billed = {"input": last.usage.input, "cached": last.usage.cached, "cache_written": last.usage.cache_written}
    return {"asked": dict(last.model.provider.cache_settings(last.request)), "billed": billed}
