"""The health of servers, models, windows and memory: names and numbers, without text, keys and addresses."""

from datetime import datetime

from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse
from homeassistant.util import dt as dt_util
from homeassistant.util.json import JsonObjectType
import probatio

from ..agents.actions import access
from ..agents.agent import AccountConfigEntry, Agent
from ..agents.issues import async_list_issues
from ..agents.store import async_get_store
from ..turn.model import Model
from ..window import WindowStats
from .conversations import list_visible_accounts

_MEMORY_NUMBERS = ("facts", "turns", "summaries", "size", "unindexed")


async def _async_read_health(call: ServiceCall) -> ServiceResponse:
    """Return the health of the accounts and agents that the caller may read, and of the memory of all agents.

    The figures of windows are those of the caller's own windows and of those that nobody owns.
    """
    # refuses callers who may read no agent
    await access.async_resolve_person(call, POLICY_READ)
    user = await access.async_get_caller(call, POLICY_READ)
    agents = await access.async_resolve_agents(call, POLICY_READ)
    return {
        "accounts": [_format_account(entry) for entry in list_visible_accounts(call.hass, user)],
        "agents": [
            _format_agent(
                entity_id, agent, [each.stats for each in access.list_visible_windows({entity_id: agent}, call)]
            )
            for entity_id, agent in agents.items()
        ],
        "memory": _format_memory(call.hass),
    }


def _format_account(entry: AccountConfigEntry) -> JsonObjectType:
    server = entry.runtime_data.server if entry.state is ConfigEntryState.LOADED else None
    return {
        "title": entry.title,
        "state": entry.state.value,
        "server": None
        if server is None
        else {
            "reachable": server.is_reachable,
            "away_since": _format_time(server.cache.away_at),
            "answered_at": _format_time(server.cache.answered_at),
            "models": len(server.cache.models),
        },
    }


def _format_time(time: datetime | None) -> str | None:
    return None if time is None else dt_util.as_local(time).isoformat()


def _format_agent(entity_id: str, agent: Agent, windows: list[WindowStats]) -> JsonObjectType:
    model = agent.model
    calibration, totals = agent.counter.calibrator.calibration, agent.statistics.totals
    return {
        "entity_id": entity_id,
        "name": agent.config.name,
        "model": None if model is None else model.name,
        "context_tokens": None if model is None else model.planned_budget.context_tokens,
        "has_learned_context": model is not None and _has_learned_context(model),
        # the factors by which the counts of texts are multiplied, by kind
        "calibration": None
        if model is None
        else {
            "is_learned": calibration.is_learned,
            "factors": {kind: round(factor, 3) for kind, factor in calibration.as_dict().items()},
        },
        "cache": {"input_tokens": totals.input_tokens, "cached_tokens": totals.cached_input_tokens},
        "window": {
            "exchanges": sum(each.exchange_count for each in windows),
            "tokens": sum(each.current_tokens for each in windows),
            "evicted": {
                "exchanges": sum(each.evicted_exchanges for each in windows),
                "tokens": sum(each.evicted_tokens for each in windows),
            },
            "trims": sum(each.trims for each in windows),
        },
        "findings": [*async_list_issues(agent.hass, agent.id)],
    }


def _has_learned_context(model: Model) -> bool:
    """Return whether the context size of a model was learned from its requests."""
    planned = model.planned_budget.context_tokens
    is_entered = model.budget.context_tokens is not None
    return not is_entered and planned not in (None, model.profile.context_tokens)


def _format_memory(hass: HomeAssistant) -> JsonObjectType | None:
    """Return the state of the store, or None before it is opened. Its numbers are None while it is unavailable."""
    if (store := async_get_store(hass)) is None:
        return None
    state = store.writer.state
    return {
        "reason": state.reason,
        # 0 before its file exists
        **{name: getattr(state.statistics, name, 0) if state.reason is None else None for name in _MEMORY_NUMBERS},
        "pending_writes": store.writer.counts.queued,
    }


COMMANDS = (("health", _async_read_health, probatio.Schema({})),)
