"""The costs of turns and summaries, looked up after the answer and counted for the agent that was asked.

Nothing is guessed: requests without a known price are counted separately.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal

from homeassistant.core import HomeAssistant, callback

from ..bridge.models import ModelUsage, async_cost
from ..turn.ports import BilledRequest
from ..turn.progress import Turn
from .agent import Agent
from .lookup import async_agent_ids, async_find_agent

type OnCost = Callable[[Decimal | None], None]


@callback
def async_price_turn(agent: Agent, turn: Turn, on_cost: OnCost) -> None:
    """Count the cost of a turn over all models that it asked. A turn without requests has cost nothing.

    `on_cost` gets the cost, None if it is unknown. It is not called if the agent's model has no prices.
    """
    asked = {turn.answered_by, *(failure.agent for failure in turn.failures)} - {None}
    is_complete = not turn.unbilled and asked <= async_agent_ids(agent.hass)
    _async_price(agent, turn.billed if is_complete else None, on_cost, of_turn=True)


@callback
def async_price_summary(agent: Agent, billed: Sequence[BilledRequest], on_cost: OnCost) -> None:
    """Count the cost of a summary, also of a failed one; unknown if no usage was reported. See `async_price_turn`."""
    _async_price(agent, billed or None, on_cost, of_turn=False)


def _async_price(agent: Agent, billed: Sequence[BilledRequest] | None, on_cost: OnCost, *, of_turn: bool) -> None:
    """Add a cost to the statistics: at once if it is zero or unknown, or else after the prices were looked up."""
    if agent.vendor is None:
        return
    usages = None if billed is None else _usages(agent.hass, billed)

    def count(cost: Decimal | None) -> None:
        agent.statistics.on_cost(cost, of_turn=of_turn)
        on_cost(cost)

    async def look_up(usages: Sequence[ModelUsage]) -> None:
        count(await async_cost(agent.hass, usages))

    if usages:
        agent.hass.async_create_task(look_up(usages), "look up a cost")
    else:
        count(None if usages is None else Decimal())


def _usages(hass: HomeAssistant, requests: Sequence[BilledRequest]) -> list[ModelUsage] | None:
    """Return the usage per request, or None if a model has no known price."""
    usages = []
    for billed in requests:
        agent = async_find_agent(hass, billed.model.agent)
        if agent is None or agent.vendor is None:
            return None
        usages.append(ModelUsage(agent.vendor, agent.config.family, billed.usage))
    return usages
