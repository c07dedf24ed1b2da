"""Repair issues on windows, models, servers and the store."""

from datetime import date
from enum import StrEnum
from pathlib import Path

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir

from ..const import DOMAIN
from ..store import Reason, StoreState
from ..turn.budget import Shortfall
from ..window import WindowRegistry, WindowStats
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
    placeholders = None
    if shortfall is not None:
        exposed = (async_should_expose(hass, CONVERSATION_DOMAIN, each) for each in hass.states.async_entity_ids())
        placeholders = {**_shortfall(agent_name, shortfall), "entities": str(sum(exposed))}
    _raise_or_clear(hass, Issue.MODEL_TOO_SMALL, agent_id, placeholders)


@callback
def async_raise_or_clear_size(
    hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None, *, is_ollama: bool = False
) -> None:
    """Raise an issue while a full window needs more than the server reads."""
    placeholders = None
    if shortfall is not None:
        # context sizes are powers of two
        suggested = str(1 << (shortfall.needed - 1).bit_length())
        placeholders = {**_shortfall(agent_name, shortfall), "suggested": suggested}
    _raise_or_clear(hass, Issue.OLLAMA_READS_LITTLE, agent_id, placeholders if is_ollama else None)
    _raise_or_clear(hass, Issue.SERVER_READS_LITTLE, agent_id, None if is_ollama else placeholders)


def _shortfall(agent_name: str, shortfall: Shortfall) -> dict[str, str]:
    return {"agent": agent_name, "needed": f"{shortfall.needed:,}", "context": f"{shortfall.context:,}"}


@callback
def async_raise_or_clear_health(hass: HomeAssistant, agent_id: str, agent_name: str, health: Health) -> None:
    """Raise issues for the current problems of the windows, and clear all others.

    A window whose newest exchange alone is over the budget has its own issue.
    """
    full = lost = None
    if health.full is not None and not health.full.over_budget:
        full = {
            "agent": agent_name,
            "full": str(FULL),
            "tokens": f"{health.full.current_tokens:,}",
            "protected": f"{health.full.protected_tokens:,}",
            "window": f"{health.full.max_tokens:,}",
        }
    if health.collapse is not None:
        lost = {
            "agent": agent_name,
            "expected": f"{health.collapse.expected:,}",
            "cached": f"{health.collapse.cached:,}",
            "changed": ", ".join(health.collapse.changed) or "nothing",
        }
    _raise_or_clear(hass, Issue.WINDOW_STAYS_FULL, agent_id, full)
    _raise_or_clear(hass, Issue.CACHE_LOST, agent_id, lost)


@callback
def async_clear_issues(hass: HomeAssistant, owner: str) -> None:
    """Clear the issues of an agent or an account."""
    for issue in Issue:
        _raise_or_clear(hass, issue, owner, None)


@callback
def async_raise_or_clear_server(hass: HomeAssistant, entry_id: str, account: str | None) -> None:
    """Raise an issue for an account whose server has been away for long, or clear it for None."""
    _raise_or_clear(hass, Issue.SERVER_AWAY, entry_id, None if account is None else {"account": account})


@callback
def async_raise_or_clear_store(hass: HomeAssistant, path: Path, state: StoreState) -> None:
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
    """Raise an issue for memory that stays without an account until a day, or clear it for None."""
    placeholders = None if until is None else {"until": until.isoformat()}
    # it stays when Home Assistant starts again without an account, and so without this integration
    _raise_or_clear(hass, Issue.MEMORY_LEFT, _ALL_AGENTS, placeholders, stays=True)


def _raise_or_clear(
    hass: HomeAssistant, issue: Issue, owner: str, placeholders: dict[str, str] | None, *, stays: bool = False
) -> None:
    """Raise an issue with these placeholders, or clear it if there are none. One that `stays` has a repair flow."""
    if placeholders is None:
        ir.async_delete_issue(hass, DOMAIN, f"{issue}_{owner}")
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        f"{issue}_{owner}",
        is_fixable=stays,
        is_persistent=stays,
        severity=ir.IssueSeverity.WARNING,
        translation_key=issue,
        translation_placeholders=placeholders,
    )
