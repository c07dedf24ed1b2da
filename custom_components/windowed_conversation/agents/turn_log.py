"""The debug log of turns, trims and requests. It contains ids and numbers but no text."""

from collections.abc import Sequence
import logging

from ..turn.attempts import Attempt
from .agent import Agent
from .conversation_turn import ConversationTurn

_LOGGER = logging.getLogger(__name__)


def log_turn(agent: Agent, turn: ConversationTurn) -> None:
    """Log a turn, its trim and its requests."""
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return
    record, stats = turn.record, turn.stats_after
    # for example "01J..., 12 messages, 1,234/8,000 tokens (15 %)"
    window = (
        f"{turn.window.conversation_id}, {stats.message_count} messages, "
        f"{stats.current_tokens:,}/{stats.max_tokens:,} tokens ({stats.utilization:.0f} %)"
    )
    _LOGGER.debug(
        "Turn %(turn_id)s with %(entity_id)s: %(outcome)s by %(route)s (%(reason)s), %(requests)d requests, "
        "%(calls)d calls (%(failed_tool_calls)d failed), tokens %(input)d in %(cached)d cached %(output)d out, "
        "first %(time_to_first_token)s s, all %(duration).3f s. Window: %(window)s",
        {**record, **record["usage"], "calls": turn.state.tool_calls, "window": window},
    )
    log_requests(turn.id, turn.state.attempts)
    if stats.trims > turn.stats_before.trims:
        # none if only tool results or recalled lines were shortened
        exchanges = stats.evicted_exchanges - turn.stats_before.evicted_exchanges
        _LOGGER.debug("Trim in turn %s: %d exchanges evicted. Window: %s", turn.id, exchanges, window)


def log_requests(turn: str, attempts: Sequence[Attempt]) -> None:
    """Log each request of a turn or a summary."""
    for attempt in attempts:
        usage = attempt.billed_request.usage if attempt.billed_request else None
        _LOGGER.debug(
            "Request in turn %s to %s: %s for %s (%s), tokens %s in %s cached %s out, first after %s s, %.3f s",
            turn,
            attempt.request.model,
            attempt.result,
            attempt.purpose,
            attempt.error_name or attempt.finish_reason,
            usage and usage.input,
            usage and usage.cached,
            usage and usage.output,
            attempt.first_token_seconds,
            attempt.ended_at - attempt.started_at,
        )
