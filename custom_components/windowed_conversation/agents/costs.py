"""What turns and summaries have cost: looked up after the answer, and counted to the agent that was talked to.

Nothing is guessed: what has no known price is counted apart.
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
    """Count what a turn has cost, over all models that were asked in it; one that asked none has cost nothing."""
    asked = {turn.answered_by, *(failure.agent for failure in turn.failures)} - {None}
    is_known = not turn.unbilled and asked <= async_agent_ids(agent.hass)
    _async_price(agent, _uses(agent.hass, turn.billed) if is_known else None, of_turn=True)


@callback
def async_price_summary(agent: Agent, billed: Sequence[Billed]) -> None:
    """Count what a summary has cost, also one that failed; unknown if nothing was billed."""
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
    """Count at once what needs no price, or when it was looked up."""
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
