"""The use and the costs of models by day or month, agent, person, model and kind of work, and the last seven days."""

from collections.abc import Mapping
from datetime import timedelta

from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse
from homeassistant.util import dt as dt_util
from homeassistant.util.json import JsonObjectType
import probatio

from ..agents.actions import access
from ..agents.actions.memory import open_usable_store
from ..agents.actions.turns import async_find_person_names, async_get_permissions
from ..bridge.turn_report import find_agent_entity_id
from ..const import DOMAIN
from ..record import DailyUsage, RecordedTurns, TurnListQuery

_ATTR_DAYS = "days"
_MAX_DAYS, _DEFAULT_DAYS = 92, 30
_MAX_ROWS = 5_000
_CURRENCY = "USD"


async def async_read_costs(call: ServiceCall) -> ServiceResponse:
    """Return the sums of the turns that the caller may list, by day, agent and person, newest day first."""
    rights, zone = await async_get_permissions(call), dt_util.get_default_time_zone()
    first_day = dt_util.start_of_local_day() - timedelta(days=call.data[_ATTR_DAYS] - 1)
    query = TurnListQuery(since=first_day.timestamp(), people=rights.visible_people, agents=rights.visible_agent_ids)
    async with open_usable_store(call.hass) as memory:
        usages = await memory.async_read(
            lambda opened: RecordedTurns(opened.database).sum_usage(query, zone), list[DailyUsage]()
        )
    shown = usages[:_MAX_ROWS]
    people = await async_find_person_names(call.hass, [usage.person for usage in shown])
    agents = _find_agent_names(call.hass)
    return {"rows": [_format_row(call.hass, usage, people, agents) for usage in shown], "currency": _CURRENCY}


def _find_agent_names(hass: HomeAssistant) -> dict[str, str]:
    """Return the names of the agents and AI tasks of all accounts by id."""
    entries = hass.config_entries.async_entries(DOMAIN)
    return {agent_id: subentry.title for entry in entries for agent_id, subentry in entry.subentries.items()}


def _format_row(
    hass: HomeAssistant, usage: DailyUsage, people: Mapping[str, str], agents: Mapping[str, str]
) -> JsonObjectType:
    """Return the response for a row. `people` and `agents` are names by id; an agent that was removed has none."""
    has_cost = bool(usage.cost or not usage.without_price)
    return {
        "day": usage.day.isoformat(),
        "entity_id": find_agent_entity_id(hass, usage.agent),
        "agent": agents.get(usage.agent, usage.agent),
        "person": people.get(usage.person or "", usage.person),
        "turns": usage.turns,
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost if has_cost else None,
        "without_price": usage.without_price,
    }


_DAYS_VALIDATOR = probatio.All(access.validate_natural_number, probatio.Range(min=1, max=_MAX_DAYS))
_SCHEMA = probatio.Schema({probatio.Optional(_ATTR_DAYS, default=_DEFAULT_DAYS): _DAYS_VALIDATOR})

COMMANDS = (("costs", async_read_costs, _SCHEMA),)
