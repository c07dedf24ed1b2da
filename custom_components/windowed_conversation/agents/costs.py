"""The costs of turns and summaries, looked up after the answer and counted for the agent that was asked.

Nothing is guessed: requests without a known price are counted separately.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal

from homeassistant.core import HomeAssistant, callback

from ..bridge.models import ModelUsage, async_cost
from ..turn.ports import Billed
from ..turn.progress import Outcome
from .agent import Agent
from .lookup import async_agent_ids, async_find_agent

type OnCost = Callable[[Decimal | None], None]


@callback
def async_price_turn(agent: Agent, turn: Outcome, on_cost: OnCost) -> None:
    """Count the cost of a turn over all models that it asked. A turn without requests has cost nothing.

    `on_cost` gets what is counted, None if it is unknown. It is not called if the agent's model has no prices.
    """
    asked = {turn.answered_by, *(failure.agent for failure in turn.failures)} - {None}
    is_known = not turn.unbilled and asked <= async_agent_ids(agent.hass)
    _async_price(agent, _uses(agent.hass, turn.billed) if is_known else None, on_cost, of_turn=True)


@callback
def async_price_summary(agent: Agent, billed: Sequence[Billed], on_cost: OnCost) -> None:
    """Count the cost of a summary, also of a failed one; unknown if no usage was reported. See `async_price_turn`."""
    _async_price(agent, _uses(agent.hass, billed) if billed else None, on_cost, of_turn=False)


def _uses(hass: HomeAssistant, requests: Sequence[Billed]) -> tuple[ModelUsage, ...] | None:
    """Return the usage per request, or None if a model has no known price."""
    uses = []
    for billed in requests:
        asked = async_find_agent(hass, billed.model.agent)
        if asked is None or asked.vendor is None:
            return None
        uses.append(ModelUsage(asked.vendor, asked.config.family, billed.usage))
    return tuple(uses)


def _async_price(agent: Agent, uses: tuple[ModelUsage, ...] | None, on_cost: OnCost, *, of_turn: bool) -> None:
    """Add a cost to the statistics: at once if it is zero or unknown, or else after the prices were looked up."""
    if agent.vendor is None:
        return
    if uses:
        agent.hass.async_create_task(_async_count(agent.hass, agent, uses, on_cost, of_turn=of_turn), "look up a cost")
    else:
        _count(agent, None if uses is None else Decimal(), on_cost, of_turn=of_turn)


async def _async_count(
    hass: HomeAssistant, agent: Agent, uses: tuple[ModelUsage, ...], on_cost: OnCost, *, of_turn: bool
) -> None:
    _count(agent, await async_cost(hass, uses), on_cost, of_turn=of_turn)


def _count(agent: Agent, cost: Decimal | None, on_cost: OnCost, *, of_turn: bool) -> None:
    agent.statistics.on_cost(cost, of_turn=of_turn)
    on_cost(cost)
