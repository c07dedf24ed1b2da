"""The use and the costs of models by day or month, agent, person, model and kind of work, and the last seven days."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Any

from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse
from homeassistant.util import dt as dt_util
from homeassistant.util.json import JsonObjectType
import probatio

from ..agents.actions import access
from ..agents.actions.memory import open_usable_store
from ..agents.actions.turns import async_find_person_names, async_get_permissions
from ..agents.agent import async_find_agent
from ..bridge.account import async_find_cache_discount
from ..const import DOMAIN
from ..memory.core import Memory
from ..record import DailyUsage, RecordedTurns, TurnListQuery, TurnRecord
from ..turn.routing import Route, RouteReason

_ATTR_DAYS = "days"
_MAX_DAYS, _DEFAULT_DAYS, _WEEK_DAYS = 366, 30, 7
# More days than these are summed by month.
_MAX_SINGLE_DAYS = 92
_MAX_ROWS = 5_000
_MAX_PAGES, _PAGE_SIZE = 20, 1_000
_CURRENCY = "USD"


async def async_read_costs(call: ServiceCall) -> ServiceResponse:
    """Return the sums of the turns that the caller may list, newest day or month first, with the cache's savings."""
    query = await _async_build_query(call, call.data[_ATTR_DAYS])
    zone, by_month = dt_util.get_default_time_zone(), call.data[_ATTR_DAYS] > _MAX_SINGLE_DAYS
    async with open_usable_store(call.hass) as memory:
        usages = await memory.async_read(
            lambda opened: RecordedTurns(opened.database).sum_usage(query, zone, by_month=by_month), list[DailyUsage]()
        )
    shown = usages[:_MAX_ROWS]
    people = await async_find_person_names(call.hass, [usage.person for usage in shown])
    entries = call.hass.config_entries.async_entries(DOMAIN)
    # of all accounts; an agent that was removed has no name
    agents = {agent_id: subentry.title for entry in entries for agent_id, subentry in entry.subentries.items()}
    discounts = await _async_find_discounts(call.hass, shown)
    return {
        "rows": [
            {
                "day": usage.day.isoformat(),
                "agent": agents.get(usage.agent, usage.agent),
                "person": people.get(usage.person or "", usage.person),
                "model": usage.model,
                "route": usage.route,
                "turns": usage.turns,
                "requests": usage.requests,
                "input_tokens": usage.input_tokens,
                "cached_tokens": usage.cached_tokens,
                "output_tokens": usage.output_tokens,
                "cost": usage.cost if usage.cost or not usage.without_price else None,
                "without_price": usage.without_price,
                "saved": usage.cached_tokens * discounts.get((usage.agent, usage.model), 0.0),
            }
            for usage in shown
        ],
        "currency": _CURRENCY,
    }


async def _async_build_query(call: ServiceCall, days: int) -> TurnListQuery:
    """Return the query for a page of the turns of the last days that the caller may list."""
    rights, first_day = await async_get_permissions(call), dt_util.start_of_local_day() - timedelta(days=days - 1)
    people, agents = rights.visible_people, rights.visible_agent_ids
    return TurnListQuery(since=first_day.timestamp(), people=people, agents=agents, limit=_PAGE_SIZE)


async def _async_find_discounts(
    hass: HomeAssistant, usages: Sequence[DailyUsage]
) -> dict[tuple[str, str | None], float]:
    """Return the discounts for a cached token that are known, by agent and model."""
    found: dict[tuple[str, str | None], float] = {}
    for agent_id, model in {(usage.agent, usage.model) for usage in usages if usage.cached_tokens}:
        agent = async_find_agent(hass, agent_id)
        if agent is None or agent.vendor is None or model is None:
            continue
        family = agent.config.family if model == agent.config.model else model
        discount = await async_find_cache_discount(hass, agent.vendor, family)
        if discount is not None:
            found[agent_id, model] = float(discount)
    return found


async def async_read_week(call: ServiceCall) -> ServiceResponse:
    """Return the figures of the last seven days, of the turns that the caller may list, without text."""
    query = await _async_build_query(call, _WEEK_DAYS)
    async with open_usable_store(call.hass) as memory:
        turns = await memory.async_read(partial(_read_turns, query), list[TurnRecord]())
    questions = [turn for turn in turns if turn["route"] in set(Route) and turn["reason"] != RouteReason.ECHO]
    slowest = max(questions, key=lambda turn: turn["duration"], default=None)
    cost = sum(float(turn["cost"] or 0) for turn in turns)
    is_unknown = not cost and any(turn["cost"] is None and turn["requests"] for turn in turns)
    return {
        "questions": len(questions),
        "local": sum(turn["route"] == Route.LOCAL for turn in questions),
        "failed": sum(turn["outcome"] == "error" for turn in questions),
        "cost": None if is_unknown else cost,
        "currency": _CURRENCY,
        "slowest": None if slowest is None else _format_slowest(slowest),
    }


def _read_turns(query: TurnListQuery, memory: Memory) -> list[TurnRecord]:
    recorded, turns = RecordedTurns(memory.database), list[TurnRecord]()
    for _ in range(_MAX_PAGES):
        page = recorded.list_newest(query)
        turns += page
        if len(page) < _PAGE_SIZE:
            break
        query = query._replace(after=page[-1]["turn_id"])
    return turns


def _format_slowest(turn: TurnRecord) -> JsonObjectType:
    """Return the id and the duration of a turn, and its longest work, unless it has even more unexplained time."""
    steps_by_work: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for each in turn["waterfall"]:
        steps_by_work.setdefault((each["step"], each.get("name")), []).append(each)
    seconds_by_work = {work: _measure_steps(steps) for work, steps in steps_by_work.items()}
    work = max(seconds_by_work, key=lambda each: seconds_by_work[each], default=None)
    if work is None or seconds_by_work[work] < turn["duration"] - _measure_steps(turn["waterfall"]):
        work = None
    step, name = work or (None, None)
    return {
        "turn_id": turn["turn_id"],
        "duration": turn["duration"],
        "error": turn["error"] if turn["outcome"] == "error" else None,
        "step": step,
        "name": name,
        "times": len(steps_by_work[work]) if work else 0,
        "step_duration": seconds_by_work[work] if work else None,
    }


def _measure_steps(steps: Iterable[dict[str, Any]]) -> float:
    """Return the seconds during which at least one of the steps ran."""
    seconds = until = 0.0
    for each in sorted(steps, key=itemgetter("start")):
        seconds += max(0.0, each["end"] - max(each["start"], until))
        until = max(until, each["end"])
    return seconds


_DAYS_VALIDATOR = probatio.All(access.validate_natural_number, probatio.Range(min=1, max=_MAX_DAYS))
_SCHEMA = probatio.Schema({probatio.Optional(_ATTR_DAYS, default=_DEFAULT_DAYS): _DAYS_VALIDATOR})

COMMANDS = (("costs", async_read_costs, _SCHEMA), ("week", async_read_week, probatio.Schema({})))
