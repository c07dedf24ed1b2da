"""What turns and summaries have cost: looked up after the answer, and counted to the agent that was talked to.

What a token costs is looked up in `bridge.models`, and what was used is the turn's to say. Nothing is guessed.
"""

from collections.abc import Iterable
from decimal import Decimal

from homeassistant.core import HomeAssistant, callback

from .agent import Agent, async_agent_ids
from .bridge.models import Use, async_cost
from .others import async_find_agent
from .providers.events import Usage
from .turn.model_turn import Progress
from .turn.turn import Outcome


@callback
def async_count_turn(hass: HomeAssistant, agent: Agent, turn: Outcome | Progress) -> None:
    """Count what a turn has cost, over all models that were asked in it; one that asked none has cost nothing."""
    if agent.vendor is None:
        return
    asked = {turn.answered_by, *(failure.agent for failure in turn.failures)} - {None}
    is_known = not turn.unbilled and asked <= async_agent_ids(hass)
    uses = _uses(hass, ((billed.model.agent, billed.usage) for billed in turn.billed)) if is_known else None
    _count(hass, agent, uses, of_turn=True)


@callback
def async_count_summary(hass: HomeAssistant, agent: Agent, usage: Usage) -> None:
    """Count what a summary has cost, also one that failed."""
    if agent.vendor is None:
        return
    uses = (Use(agent.vendor, agent.config.family, usage),) if usage != Usage() else None
    _count(hass, agent, uses, of_turn=False)


def _uses(hass: HomeAssistant, usages: Iterable[tuple[str, Usage]]) -> tuple[Use, ...] | None:
    """Return what was used of which models, None where one of them is nobody's whose prices are known."""
    uses = []
    for agent_id, usage in usages:
        asked = async_find_agent(hass, agent_id)
        if asked is None or asked.vendor is None:
            return None
        uses.append(Use(asked.vendor, asked.config.family, usage))
    return tuple(uses)


def _count(hass: HomeAssistant, agent: Agent, uses: tuple[Use, ...] | None, *, of_turn: bool) -> None:
    """Count at once what needs no price, or when it was looked up."""
    if uses:
        hass.async_create_task(_async_count(hass, agent, uses, of_turn=of_turn), "look up a cost")
    else:
        agent.statistics.on_cost(None if uses is None else Decimal(), of_turn=of_turn)
        agent.tell_cost()


async def _async_count(hass: HomeAssistant, agent: Agent, uses: tuple[Use, ...], *, of_turn: bool) -> None:
    cost = await async_cost(hass, uses)
    agent.statistics.on_cost(cost, of_turn=of_turn)
    agent.tell_cost()
