"""Diagnostics of an account and its agents: settings and numbers, without keys, spoken text, ids, tags or prompts."""

from dataclasses import asdict
from itertools import islice
from typing import Any

from homeassistant.components.diagnostics import async_redact_data
from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import CONF_NAME, CONF_URL
from homeassistant.core import HomeAssistant
from yarl import URL

from .agents.account import async_load_account_state, async_run_deferred_work
from .agents.agent import AccountConfigEntry, Agent
from .agents.store import async_get_store
from .bridge.account import get_vendor
from .bridge.turn_report import build_window_figures
from .const import CONF_API_VERSION, CONF_FORMAT, CONF_OPENING_CODE, CONF_PROVIDER
from .turn.model import Model

# Fields of `AgentConfig` with text that users enter: a name, a prompt, and a code.
_REDACTED_FIELDS = {CONF_NAME, "instructions", CONF_OPENING_CODE}

_MAX_SHOWN_CONVERSATIONS = 20


async def async_get_config_entry_diagnostics(hass: HomeAssistant, entry: AccountConfigEntry) -> dict[str, Any]:
    """Return the diagnostics of an account. An account that is not set up has no agents."""
    account = entry.runtime_data if entry.state is ConfigEntryState.LOADED else None
    state = await async_load_account_state(hass, entry.entry_id)
    async_run_deferred_work(hass)
    return {
        "account": {
            "provider": entry.data[CONF_PROVIDER],
            "vendor": get_vendor(entry.data),
            "format": entry.data.get(CONF_FORMAT),
            "api_version": entry.data.get(CONF_API_VERSION),
            "url": _remove_secrets(entry.data.get(CONF_URL)),
            "options": dict(entry.options),
            "state": entry.state.value,
            "models_listed": len(state.server.models),
            "is_away": state.server.away_at is not None,
        },
        "agents": [_describe_agent(each) for each in account.agents.values()] if account else [],
        "tasks": [_describe_agent(each) for each in account.tasks.values()] if account else [],
        "memory": _describe_memory(hass),
        "learned": state.calibrations.as_dict(),
    }


def _describe_memory(hass: HomeAssistant) -> dict[str, Any] | None:
    store = async_get_store(hass)
    if store is None:
        return None
    state, counts = store.writer.state, asdict(store.writer.counts)
    return {
        "reason": state.reason,
        "is_damaged_file_kept": state.damaged_path is not None,
        "rows_set_aside": state.rows_set_aside,
        "statistics": state.statistics and asdict(state.statistics),
        "counts": {"written": counts.pop("rows_written"), **counts},
        "late_searches": store.late_searches,
    }


def _remove_secrets(url: str | None) -> str | None:
    """Return a URL without user, password and query, which may contain a key. Return None for an invalid URL."""
    try:
        address = URL(url or "")
        return str(address.origin().with_path(address.path))
    except ValueError:
        return None


def _describe_agent(agent: Agent) -> dict[str, Any]:
    statistics, model = agent.statistics, agent.model
    return {
        "configuration": async_redact_data(asdict(agent.config), _REDACTED_FIELDS),
        "model": model and _describe_model(model),
        "windows": {
            "conversations": len(agent.windows),
            # without the tags, because users may have written them
            "newest": [
                {name: value for name, value in build_window_figures(stats).items() if name != "tags"}
                for stats in islice(agent.windows.stats().values(), _MAX_SHOWN_CONVERSATIONS)
            ],
        },
        "issues": agent.state.notes_by_window.list_issues(),
        "totals": asdict(statistics.totals),
        "costs": {
            "turn": _format_dollars(statistics.costs.last_turn),
            "total": _format_dollars(statistics.costs.total),
            "without_price": statistics.costs.without_price,
        },
        "last_turn": {
            "route": statistics.last_route,
            **statistics.last_answer,
            "time_to_first_token": statistics.time_to_first_token,
            "duration": statistics.turn_duration,
        },
    }


def _format_dollars(cost: object) -> str | None:
    return None if cost is None else str(cost)


def _describe_model(model: Model) -> dict[str, Any]:
    budget = model.planned_budget
    return {
        "format": model.provider.name.partition(" ")[0],
        "profile": asdict(model.profile),
        "context_tokens": budget.context_tokens,
        "max_answer_tokens": budget.max_answer_tokens,
        "pause_seconds_left": model.pause.remaining_seconds,
    }
