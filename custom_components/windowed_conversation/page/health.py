"""The health of servers, models, windows and memory: names and numbers, without text, keys and addresses."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any

from homeassistant.auth.models import User
from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, callback
from homeassistant.util import dt as dt_util
from homeassistant.util.json import JsonObjectType
import probatio

from ..agents.actions import access
from ..agents.actions.access import VisibleWindow
from ..agents.agent import AccountConfigEntry, Agent
from ..agents.issues import async_list_issues
from ..agents.server import AccountServer
from ..agents.store import async_get_store
from ..const import CONF_PROVIDER, DOMAIN
from ..providers import ListedModel
from ..turn.model import Model
from ..window import WindowStats

# The fields of `MemoryStatistics` by the names in the response.
_FIELD_BY_NUMBER = {
    "facts": "facts",
    "turns": "turns",
    "summaries": "summaries",
    "bytes": "size",
    "unindexed": "unindexed",
}


class ContextSource(StrEnum):
    """The origin of the context size of a model: the user, its requests, its server's list, or the table of models."""

    ENTERED = "entered"
    LEARNED = "learned"
    LISTED = "listed"
    TABLE = "table"


async def async_read_health(call: ServiceCall) -> ServiceResponse:
    """Return the health of the accounts and agents that the caller may read, and of the memory of all agents.

    The figures of windows are those of the caller's own windows and of those that nobody owns.
    """
    # refuses callers who may read no agent
    await access.async_resolve_person(call, POLICY_READ)
    user = await access.async_get_caller(call, POLICY_READ)
    agents = await access.async_resolve_agents(call, POLICY_READ)
    return {
        "accounts": [_format_account(call.hass, entry) for entry in _list_visible_accounts(call.hass, user)],
        "agents": [
            _format_agent(entity_id, agent, access.list_visible_windows({entity_id: agent}, call))
            for entity_id, agent in agents.items()
        ],
        "memory": _format_memory(call.hass),
    }


@callback
def _list_visible_accounts(hass: HomeAssistant, user: User | None) -> list[AccountConfigEntry]:
    """Return the accounts with an agent that the user may read; administrators and automations get all accounts."""
    entries: list[AccountConfigEntry] = hass.config_entries.async_entries(DOMAIN)
    if user is None or user.is_admin:
        return entries
    return [
        entry
        for entry in entries
        if any(access.find_permitted_entity(hass, user, agent_id, POLICY_READ) for agent_id in entry.subentries)
    ]


def _format_account(hass: HomeAssistant, entry: AccountConfigEntry) -> JsonObjectType:
    server = entry.runtime_data.server if entry.state is ConfigEntryState.LOADED else None
    return {
        "title": entry.title,
        "provider": entry.data[CONF_PROVIDER],
        "state": entry.state.value,
        "server": None if server is None else _format_server(server),
    }


def _format_server(server: AccountServer) -> JsonObjectType:
    return {
        "reachable": server.is_reachable,
        "away_since": _format_time(server.away_at),
        "answered_at": _format_time(server.answered_at),
        "models": len(server.models),
    }


def _format_time(time: datetime | None) -> str | None:
    return None if time is None else dt_util.as_local(time).isoformat()


def _format_agent(entity_id: str, agent: Agent, windows: Iterable[VisibleWindow]) -> JsonObjectType:
    model, server = agent.model, agent.entry.runtime_data.server
    return {
        "entity_id": entity_id,
        "name": agent.config.name,
        "model": None if model is None else model.name,
        "context_tokens": None if model is None else model.planned_budget.context_tokens,
        "context_source": None if model is None or server is None else find_context_source(model, server.models),
        "calibration": None if model is None else _format_calibration(agent),
        "cache": _format_cache(agent),
        "window": _sum_windows([each.stats for each in windows]),
        "findings": [*async_list_issues(agent.hass, agent.id)],
    }


def find_context_source(model: Model, listed: Iterable[ListedModel]) -> ContextSource | None:
    """Return the origin of a model's context size, or None if the size is unknown."""
    planned = model.planned_budget.context_tokens
    if model.budget.context_tokens is not None:
        return ContextSource.ENTERED
    if planned is None:
        return None
    if planned != model.profile.context_tokens:
        return ContextSource.LEARNED
    names = {each.id for each in listed if each.context_tokens is not None}
    return ContextSource.LISTED if model.name.removeprefix("models/") in names else ContextSource.TABLE


def _format_calibration(agent: Agent) -> JsonObjectType:
    """Return the factors by which the counts of texts are multiplied, by kind, and whether the counts are exact."""
    calibration = agent.counter.calibrator.calibration
    return {
        "is_exact": agent.config.exact_counting,
        "is_learned": calibration.is_learned,
        "factors": {kind: round(factor, 3) for kind, factor in calibration.as_dict().items()},
    }


def _format_cache(agent: Agent) -> JsonObjectType:
    """Return the billed input tokens and the cached ones of them."""
    totals = agent.statistics.totals
    return {"input_tokens": totals.input_tokens, "cached_tokens": totals.cached_input_tokens}


def _sum_windows(stats: list[WindowStats]) -> JsonObjectType:
    """Return the sums of the statistics of some windows."""
    return {
        "conversations": len(stats),
        "exchanges": sum(each.exchange_count for each in stats),
        "messages": sum(each.message_count for each in stats),
        "tokens": sum(each.current_tokens for each in stats),
        "over_budget": sum(each.over_budget for each in stats),
        "evicted": {
            "exchanges": sum(each.evicted_exchanges for each in stats),
            "messages": sum(each.evicted_messages for each in stats),
            "tokens": sum(each.evicted_tokens for each in stats),
        },
        "trims": sum(each.trims for each in stats),
    }


def _format_memory(hass: HomeAssistant) -> JsonObjectType:
    """Return the state of the store. Its numbers are None while it is unavailable, and 0 before its file exists."""
    store = async_get_store(hass)
    if store is None:
        return {"available": False, "reason": None, **dict.fromkeys(_FIELD_BY_NUMBER), "pending_writes": 0}
    state = store.writer.state
    numbers: dict[str, Any] = dict.fromkeys(_FIELD_BY_NUMBER, 0 if state.reason is None else None)
    if state.reason is None and state.statistics is not None:
        numbers = {name: getattr(state.statistics, field) for name, field in _FIELD_BY_NUMBER.items()}
    return {
        "available": state.reason is None,
        "reason": state.reason,
        **numbers,
        "pending_writes": store.writer.counts.queued,
    }


COMMANDS = (("health", async_read_health, probatio.Schema({})),)
