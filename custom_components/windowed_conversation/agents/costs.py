"""The costs of turns and summaries, looked up after the answer and counted for the agent that was asked.

Nothing is guessed: requests without a known price are counted separately.
"""

from collections.abc import Sequence
from decimal import Decimal

from homeassistant.core import HomeAssistant, callback

from ..bridge.models import Use, async_cost
from ..turn.ports import Billed
from ..turn.progress import Outcome
from .agent import Agent
from .lookup import async_agent_ids, async_find_agent


@callback
def async_price_turn(agent: Agent, turn: Outcome) -> None:
    """Count the cost of a turn over all models that it asked. A turn without requests has cost nothing."""
    asked = {turn.answered_by, *(failure.agent for failure in turn.failures)} - {None}
    is_known = not turn.unbilled and asked <= async_agent_ids(agent.hass)
    _async_price(agent, _uses(agent.hass, turn.billed) if is_known else None, of_turn=True)


@callback
def async_price_summary(agent: Agent, billed: Sequence[Billed]) -> None:
    """Count the cost of a summary, also of a failed one; unknown if no usage was reported."""
    _async_price(agent, _uses(agent.hass, billed) if billed else None, of_turn=False)


def _uses(hass: HomeAssistant, requests: Sequence[Billed]) -> tuple[Use, ...] | None:
    """Return the usage per request, or None if a model has no known price."""
    uses = []
    for billed in requests:
        asked = async_find_agent(hass, billed.model.agent)
        if asked is None or asked.vendor is None:
            return None
        uses.append(Use(asked.vendor, asked.config.family, billed.usage))
    return tuple(uses)


def _async_price(agent: Agent, uses: tuple[Use, ...] | None, *, of_turn: bool) -> None:
    """Add a cost to the statistics: at once if it is zero or unknown, or else after the prices were looked up."""
    if agent.vendor is None:
        return
    if uses:
        agent.hass.async_create_task(_async_count(agent.hass, agent, uses, of_turn=of_turn), "look up a cost")
    else:
        agent.statistics.on_cost(None if uses is None else Decimal(), of_turn=of_turn)
        agent.tell_cost()


async def _async_count(hass: HomeAssistant, agent: Agent, uses: tuple[Use, ...], *, of_turn: bool) -> None:
    cost = await async_cost(hass, uses)
    agent.statistics.on_cost(cost, of_turn=of_turn)
    agent.tell_cost()
