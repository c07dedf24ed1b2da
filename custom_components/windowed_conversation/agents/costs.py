"""Costs of turns and summaries, counted for the agent that was asked.

No price is guessed: requests without a known price are counted separately.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal

from homeassistant.core import HomeAssistant, callback

from ..bridge.account import ModelUsage, async_calculate_cost
from ..turn.model import BilledRequest
from ..turn.state import Turn
from .agent import Agent, async_agent_ids, async_find_agent

type OnCost = Callable[[Decimal | None], None]


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
        usages.append(ModelUsage(agent.vendor, agent.config.family, billed.usage, billed.is_flexible))
    return usages
