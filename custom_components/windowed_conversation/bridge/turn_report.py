"""What is told about a turn that ended, in the conversation trace and on the event bus: ids and figures, no text."""

from typing import Any

from homeassistant.components import conversation
from homeassistant.core import HomeAssistant, callback

from ..const import DOMAIN
from ..turn.turn import Outcome
from ..window import WindowStats

EVENT_TURN = f"{DOMAIN}_turn"
EVENT_TRIMMED = f"{DOMAIN}_trimmed"


@callback
def async_trace_turn(outcome: Outcome, stats: WindowStats) -> None:
    """Tell the conversation trace of a turn."""
    budget = {
        "history_tokens": stats.max_tokens,
        "current_tokens": stats.current_tokens,
        "prefix_tokens": stats.prefix_tokens,
        "over_budget": stats.over_budget,
    }
    conversation.async_conversation_trace_append(
        conversation.ConversationTraceEventType.AGENT_DETAIL, {**_turn(outcome), "budget": budget}
    )


@callback
def async_fire_turn(
    hass: HomeAssistant, who: dict[str, str], outcome: Outcome, stats: WindowStats, before: WindowStats
) -> None:
    """Fire the event of a turn, and of a trim when there was one; `who` has the ids of agent and conversation."""
    hass.bus.async_fire(EVENT_TURN, {**who, **_turn(outcome)})
    if stats.trims > before.trims:
        evicted = {
            "exchanges": stats.evicted_exchanges - before.evicted_exchanges,
            "messages": stats.evicted_messages - before.evicted_messages,
            "tokens": stats.evicted_tokens - before.evicted_tokens,
        }
        hass.bus.async_fire(EVENT_TRIMMED, {**who, "evicted": evicted})


def _turn(outcome: Outcome) -> dict[str, Any]:
    usage = outcome.usage
    return {
        "route": outcome.decision.route,
        "reason": outcome.decision.reason,
        "error": type(outcome.error).__name__ if outcome.error else None,
        "requests": outcome.requests,
        "tool_calls": outcome.tool_calls,
        "usage": {"input": usage.input, "cached": usage.cached, "output": usage.output},
        "time_to_first_token": outcome.first_word,
        "duration": outcome.duration,
    }
