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
from ..turn.state import Turn
from .agent import Agent, async_agent_ids, async_find_agent
from .store import async_get_store


@callback
def async_price_turn(agent: Agent, turn_id: str, turn: Turn) -> None:
    """Add up the cost of a turn for all models that it asked. A turn without requests costs nothing.

    The models of an agent without a known vendor have no known prices, so its turns are not priced.
    """
    agents = {turn.answered_by, *[failure.agent for failure in turn.failures]} - {None}
    has_unbilled = any(attempt.is_cost_unknown for attempt in turn.attempts)
    is_complete = not has_unbilled and agents <= async_agent_ids(agent.hass)
    _async_price(agent, turn_id, turn.billed_requests if is_complete else None, of_turn=True)


@callback
def async_price_summary(agent: Agent, turn_id: str, billed: Sequence[BilledRequest]) -> None:
    """Add up the cost of a summary, even a failed one. The cost is unknown if no usage was reported."""
    _async_price(agent, turn_id, billed or None, of_turn=False)


def _async_price(agent: Agent, turn_id: str, billed: Sequence[BilledRequest] | None, *, of_turn: bool) -> None:
    """Add a cost to the statistics and the record, at once if it is zero or unknown, or after a look-up of prices."""
    if agent.vendor is None:
        return
    usages = None if billed is None else _collect_model_usages(agent.hass, billed)
    if usages:
        work = _async_look_up_cost(agent, turn_id, usages, of_turn=of_turn)
        agent.hass.async_create_task(work, "look up a cost")
    else:
        _async_add_cost(agent, turn_id, None if usages is None else Decimal(), of_turn=of_turn)


async def _async_look_up_cost(agent: Agent, turn_id: str, usages: Sequence[ModelUsage], *, of_turn: bool) -> None:
    _async_add_cost(agent, turn_id, await async_calculate_cost(agent.hass, usages), of_turn=of_turn)


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
