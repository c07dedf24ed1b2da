"""Costs of turns and summaries, counted for the agent that was asked.

No price is guessed: requests without a known price are counted separately.
"""

from collections.abc import Sequence
from decimal import Decimal

from homeassistant.core import HomeAssistant, callback

from ..bridge.account import ModelUsage, async_calculate_cost
from ..const import RecordLevel
from ..record import store_turn_cost
from ..store import WriteJob
from ..turn.model import BilledRequest
from .agent import Agent, async_find_agent
from .store import async_get_store


@callback
def async_price(agent: Agent, turn_id: str, billed: Sequence[BilledRequest] | None, *, of_turn: bool) -> None:
    """Add up the cost of a turn or a summary, even a failed one. None for requests means that it is unknown."""
    if agent.vendor is not None:
        work = _async_add_cost(agent, turn_id, billed, of_turn=of_turn)
        agent.hass.async_create_task(work, "look up a cost")


async def _async_add_cost(agent: Agent, turn_id: str, billed: Sequence[BilledRequest] | None, *, of_turn: bool) -> None:
    """Add a cost to the statistics, and to the record of the turn, which is already stored."""
    cost, store = None, async_get_store(agent.hass)
    if billed is not None and (usages := _collect_model_usages(agent.hass, billed)) is not None:
        cost = await async_calculate_cost(agent.hass, usages) if usages else Decimal()
    agent.statistics.on_cost(cost, of_turn=of_turn)
    for recent in agent.state.recent_turns:
        if recent.record["turn_id"] == turn_id:
            recent.cost = None if cost is None else str(cost)
    if cost is not None and store is not None and agent.config.record is not RecordLevel.OFF:
        store.async_queue_record(WriteJob(store_turn_cost, arguments=(turn_id, str(cost))))


def _collect_model_usages(hass: HomeAssistant, requests: Sequence[BilledRequest]) -> list[ModelUsage] | None:
    """Return the usage of each request, or None if the price of a model is unknown."""
    usages = []
    for billed in requests:
        agent = async_find_agent(hass, billed.model.agent_id)
        if agent is None or agent.vendor is None:
            return None
        usages.append(ModelUsage(agent.vendor, agent.config.family, billed.usage, billed.is_flexible))
    return usages
