"""Costs of turns and summaries, counted for the agent that was asked, and the debug log of their requests.

No price is guessed: requests without a known price are counted separately. The log contains ids and numbers but no
text.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
import logging

from homeassistant.core import HomeAssistant, callback

from ..bridge.account import ModelUsage, async_calculate_cost
from ..turn.attempts import Attempt
from ..turn.model import BilledRequest
from ..turn.state import Turn
from ..window import WindowStats
from .agent import Agent, async_agent_ids, async_find_agent
from .conversation_turn import ConversationTurn

type OnCost = Callable[[Decimal | None], None]

_LOGGER = logging.getLogger(__name__)


@callback
def async_price_turn(agent: Agent, turn: Turn, on_cost: OnCost) -> None:
    """Add up the cost of a turn for all models that it asked. A turn without requests costs nothing.

    `on_cost` is called with the cost, or with None if the cost is unknown. It is not called for an agent without a
    known vendor, whose models have no known prices.
    """
    agents = {turn.answered_by, *[failure.agent for failure in turn.failures]} - {None}
    has_unbilled = any(attempt.is_cost_unknown for attempt in turn.attempts)
    is_complete = not has_unbilled and agents <= async_agent_ids(agent.hass)
    _async_price(agent, turn.billed_requests if is_complete else None, on_cost, of_turn=True)


@callback
def async_price_summary(agent: Agent, billed: Sequence[BilledRequest], on_cost: OnCost) -> None:
    """Add up the cost of a summary, even a failed one. The cost is unknown if no usage was reported.

    `on_cost` is the same as for `async_price_turn`.
    """
    _async_price(agent, billed or None, on_cost, of_turn=False)


def _async_price(agent: Agent, billed: Sequence[BilledRequest] | None, on_cost: OnCost, *, of_turn: bool) -> None:
    """Add a cost to the statistics, at once if it is zero or unknown, otherwise after a lookup of the prices."""
    if agent.vendor is None:
        return
    usages = None if billed is None else _collect_model_usages(agent.hass, billed)

    def add_cost(cost: Decimal | None) -> None:
        agent.statistics.on_cost(cost, of_turn=of_turn)
        on_cost(cost)

    async def look_up_cost(usages: Sequence[ModelUsage]) -> None:
        add_cost(await async_calculate_cost(agent.hass, usages))

    if usages:
        agent.hass.async_create_task(look_up_cost(usages), "look up a cost")
    else:
        add_cost(None if usages is None else Decimal())


def _collect_model_usages(hass: HomeAssistant, requests: Sequence[BilledRequest]) -> list[ModelUsage] | None:
    """Return the usage of each request, or None if the price of a model is unknown."""
    usages = []
    for billed in requests:
        agent = async_find_agent(hass, billed.model.agent_id)
        if agent is None or agent.vendor is None:
            return None
        usages.append(ModelUsage(agent.vendor, agent.config.family, billed.usage))
    return usages


def log_turn(agent: Agent, turn: ConversationTurn) -> None:
    """Log a turn, its trim and its requests."""
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return
    outcome, usage, stats = turn.state, turn.state.usage, turn.stats_after
    # for example "01J..., 12 messages, 1,234/8,000 tokens (15 %)"
    window = (
        f"{turn.window.conversation_id}, {stats.message_count} messages, "
        f"{stats.current_tokens:,}/{stats.max_tokens:,} tokens ({stats.utilization:.0f} %)"
    )
    _LOGGER.debug(
        "Turn %s with %s: %s by %s (%s), %d requests, %d calls (%d failed), tokens %d in %d cached %d out, "
        "first %s s, all %.3f s. Window: %s",
        turn.id,
        turn.entity_id,
        outcome.result,
        outcome.decision.route,
        outcome.decision.reason,
        len(outcome.attempts),
        outcome.tool_calls,
        outcome.failed_tool_calls,
        usage.input,
        usage.cached,
        usage.output,
        outcome.first_token_seconds,
        outcome.duration_seconds,
        window,
    )
    if outcome.attempts:
        log_requests(turn.id, outcome.attempts)
    if stats.trims > turn.stats_before.trims:
        _LOGGER.debug("Trim in turn %s: %s. Window: %s", turn.id, _describe_trim(turn.stats_before, stats), window)


def _describe_trim(before: WindowStats, after: WindowStats) -> str:
    exchanges = after.evicted_exchanges - before.evicted_exchanges
    if not exchanges:
        return "tool results or recalled lines shortened"
    messages = after.evicted_messages - before.evicted_messages
    return f"{exchanges} exchanges, {messages} messages, {after.evicted_tokens - before.evicted_tokens} tokens evicted"


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
