"""Repair issues on windows, models, servers and the store."""

from datetime import date
from enum import StrEnum
from pathlib import Path

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir

from ..const import DOMAIN
from ..store import Reason, State
from ..turn.budget import Shortfall
from ..window import WindowRegistry, WindowStats
from .cache_health import CacheUse, Part
from .window_health import FULL, Health


class Issue(StrEnum):
    """The issues, by translation key."""

    WINDOW_TOO_SMALL = "window_too_small"
    WINDOW_STAYS_FULL = "window_stays_full"
    MODEL_TOO_SMALL = "model_too_small"
    SERVER_READS_LITTLE = "server_reads_little"
    OLLAMA_READS_LITTLE = "ollama_reads_little"
    MEMORY_AWAY = "memory_away"
    MEMORY_DAMAGED = "memory_damaged"
    MEMORY_FAULT = "memory_fault"
    MEMORY_FULL = "memory_full"
    MEMORY_LEFT = "memory_left"
    MEMORY_LOCKED = "memory_locked"
    MEMORY_NEWER = "memory_newer"
    MEMORY_NO_FTS5 = "memory_no_fts5"
    MEMORY_READ_ONLY = "memory_read_only"
    TEXTS_DAMAGED = "texts_damaged"
    SERVER_AWAY = "server_away"
    CACHE_LOST_TO_INSTRUCTIONS = "cache_lost_to_instructions"
    CACHE_LOST_TO_TOOLS = "cache_lost_to_tools"
    CACHE_LOST_TO_ENTITIES = "cache_lost_to_entities"
    CACHE_LOST = "cache_lost"


_MEMORY_ISSUES: dict[Reason, Issue] = {
    "away": Issue.MEMORY_AWAY,
    "damaged": Issue.MEMORY_DAMAGED,
    "full": Issue.MEMORY_FULL,
    "locked": Issue.MEMORY_LOCKED,
    "newer": Issue.MEMORY_NEWER,
    "no_fts5": Issue.MEMORY_NO_FTS5,
    "read_only": Issue.MEMORY_READ_ONLY,
}
# All agents share one store.
_ALL_AGENTS = "all"


@callback
def async_raise_or_clear_window(hass: HomeAssistant, agent_id: str, agent_name: str, stats: WindowStats) -> None:
    """Raise an issue while the newest exchange alone is over the budget."""
    placeholders = {"agent": agent_name, "needed": str(stats.current_tokens), "window": str(stats.max_tokens)}
    _raise_or_clear(hass, Issue.WINDOW_TOO_SMALL, agent_id, placeholders if stats.over_budget else None)


@callback
def async_review_windows(hass: HomeAssistant, agent_id: str, agent_name: str, windows: WindowRegistry[str]) -> None:
    """Check the newest conversation again after the budget may have changed."""
    newest = next(iter(windows.stats().values()), None)
    if newest is not None:
        async_raise_or_clear_window(hass, agent_id, agent_name, newest)


@callback
def async_raise_or_clear_model(
    hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None
) -> None:
    """Raise an issue while requests are too large for the model."""
    if shortfall is None:
        _clear(hass, Issue.MODEL_TOO_SMALL, agent_id)
        return
    exposed = sum(async_should_expose(hass, CONVERSATION_DOMAIN, entity) for entity in hass.states.async_entity_ids())
    placeholders = {
        "agent": agent_name,
        "entities": str(exposed),
        "needed": f"{shortfall.needed:,}",
        "context": f"{shortfall.context:,}",
    }
    _raise_or_clear(hass, Issue.MODEL_TOO_SMALL, agent_id, placeholders)


@callback
def async_raise_or_clear_size(
    hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None, *, is_ollama: bool = False
) -> None:
    """Raise an issue while the server reads less than what a full window needs."""
    placeholders = None
    if shortfall is not None:
        placeholders = {
            "agent": agent_name,
            "context": f"{shortfall.context:,}",
            "needed": f"{shortfall.needed:,}",
            # rounded up to what such settings are: a power of two
            "suggested": str(1 << (shortfall.needed - 1).bit_length()),
        }
    _raise_or_clear(hass, Issue.OLLAMA_READS_LITTLE, agent_id, placeholders if is_ollama else None)
    _raise_or_clear(hass, Issue.SERVER_READS_LITTLE, agent_id, None if is_ollama else placeholders)


@callback
def async_raise_or_clear_health(hass: HomeAssistant, agent_id: str, agent_name: str, health: Health) -> None:
    """Raise issues for the current problems of the windows, and clear all others.

    A window whose newest exchange alone is over the budget has its own issue.
    """
    full = None if health.full is None or health.full.over_budget else _fullness(agent_name, health.full)
    _raise_or_clear(hass, Issue.WINDOW_STAYS_FULL, agent_id, full)
    changed = health.collapse.changed if health.collapse else ()
    lost = _loss(agent_name, health.collapse) if health.collapse else None
    # one issue for each part that changed, so that each has its own text in every language
    _raise_or_clear(hass, Issue.CACHE_LOST_TO_INSTRUCTIONS, agent_id, lost if Part.INSTRUCTIONS in changed else None)
    _raise_or_clear(hass, Issue.CACHE_LOST_TO_TOOLS, agent_id, lost if Part.TOOLS in changed else None)
    _raise_or_clear(hass, Issue.CACHE_LOST_TO_ENTITIES, agent_id, lost if Part.ENTITIES in changed else None)
    _raise_or_clear(hass, Issue.CACHE_LOST, agent_id, None if changed else lost)


def _fullness(agent_name: str, stats: WindowStats) -> dict[str, str]:
    return {
        "agent": agent_name,
        "full": str(FULL),
        "tokens": f"{stats.current_tokens:,}",
        "protected": f"{stats.protected_tokens:,}",
        "window": f"{stats.max_tokens:,}",
    }


def _loss(agent_name: str, collapse: CacheUse) -> dict[str, str]:
    return {"agent": agent_name, "expected": f"{collapse.expected:,}", "cached": f"{collapse.cached:,}"}


@callback
def async_clear_issues(hass: HomeAssistant, agent_id: str) -> None:
    """Clear the issues of an agent."""
    for issue in Issue:
        _clear(hass, issue, agent_id)


@callback
def async_raise_or_clear_server(hass: HomeAssistant, entry_id: str, account: str | None) -> None:
    """Raise an issue for an account whose server has been away for long, or clear it for None."""
    _raise_or_clear(hass, Issue.SERVER_AWAY, entry_id, None if account is None else {"account": account})


@callback
def async_raise_or_clear_store(hass: HomeAssistant, path: Path, state: State) -> None:
    """Raise issues for why the store is off and for what was damaged and set aside, and clear all others."""
    reason: Reason | None = "damaged" if state.reason is None and state.set_aside is not None else state.reason
    issue = None if reason is None else _MEMORY_ISSUES.get(reason, Issue.MEMORY_FAULT)
    placeholders = {"path": str(state.set_aside or path if reason == "damaged" else path)}
    for each in (*_MEMORY_ISSUES.values(), Issue.MEMORY_FAULT):
        _raise_or_clear(hass, each, _ALL_AGENTS, placeholders if each is issue else None)
    damaged = {"texts": str(state.rows_set_aside)} if state.rows_set_aside else None
    _raise_or_clear(hass, Issue.TEXTS_DAMAGED, _ALL_AGENTS, damaged)


@callback
def async_raise_or_clear_left(hass: HomeAssistant, until: date | None) -> None:
    """Raise an issue for what is kept until a day although there is no account, or clear it for None."""
    placeholders = None if until is None else {"until": until.isoformat()}
    # it stays when Home Assistant starts again without an account, and so without this integration
    _raise_or_clear(hass, Issue.MEMORY_LEFT, _ALL_AGENTS, placeholders, stays=True)


def _raise_or_clear(
    hass: HomeAssistant, issue: Issue, agent_id: str, placeholders: dict[str, str] | None, *, stays: bool = False
) -> None:
    """Raise an issue with these placeholders, or clear it if there are none. One that `stays` has a repair flow."""
    if placeholders is None:
        _clear(hass, issue, agent_id)
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        f"{issue}_{agent_id}",
        is_fixable=stays,
        is_persistent=stays,
        severity=ir.IssueSeverity.WARNING,
        translation_key=issue,
        translation_placeholders=placeholders,
    )


def _clear(hass: HomeAssistant, issue: Issue, agent_id: str) -> None:
    ir.async_delete_issue(hass, DOMAIN, f"{issue}_{agent_id}")
