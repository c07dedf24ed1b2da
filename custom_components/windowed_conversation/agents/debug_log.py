"""The debug log of turns: a line for each turn, each trim and each request. Ids and figures, never what was said."""

import logging

from ..turn.attempts import Attempt
from .agent import Agent
from .ended_turn import EndedTurn

_LOGGER = logging.getLogger(__name__)


def log_figures(agent: Agent, turn: EndedTurn) -> None:
    """Log a turn, its trim and its requests."""
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return
    outcome, usage = turn.outcome, turn.outcome.usage
    _LOGGER.debug(
        "Turn %s with %s: %s by %s (%s), %d requests, %d calls, tokens %d in %d cached %d out, first %s s, all %.3f s",
        turn.id,
        turn.entity_id,
        outcome.end,
        outcome.decision.route,
        outcome.decision.reason,
        outcome.requests,
        outcome.tool_calls,
        usage.input,
        usage.cached,
        usage.output,
        outcome.first_token,
        outcome.duration,
    )
    log_requests(turn.id, outcome.attempts)
    if turn.after.trims > turn.before.trims:
        _LOGGER.debug(
            "Trim in turn %s: %d exchanges, %d messages, %d tokens evicted, %d tokens of %d are left",
            turn.id,
            turn.after.evicted_exchanges - turn.before.evicted_exchanges,
            turn.after.evicted_messages - turn.before.evicted_messages,
            turn.after.evicted_tokens - turn.before.evicted_tokens,
            turn.after.current_tokens,
            turn.after.max_tokens,
        )


def log_requests(turn: str, attempts: tuple[Attempt, ...]) -> None:
    """Log each request of a turn or a summary."""
    for attempt in attempts:
        usage = attempt.billed.usage if attempt.billed else None
        _LOGGER.debug(
            "Request in turn %s to %s: %s for %s (%s), tokens %s in %s cached %s out, first after %s s, %.3f s",
            turn,
            attempt.request.model,
            attempt.end,
            attempt.purpose,
            attempt.error or attempt.finish,
            usage and usage.input,
            usage and usage.cached,
            usage and usage.output,
            attempt.first_token,
            attempt.ended - attempt.began,
        )
