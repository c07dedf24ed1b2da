"""The repair issues about windows, models, servers and the store."""

from datetime import date
from enum import StrEnum
from pathlib import Path

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir

from ..bridge.errors import format_count
from ..const import DOMAIN
from ..store import StoreState, UnavailableReason
from ..turn.limits import Shortfall
from ..window import WindowRegistry, WindowStats
from .window_notes import FULL_WINDOW_PERCENT, NotesByWindow

# The owner of issues about the store, which all agents share.
_STORE_ISSUE_OWNER = "all"


class Issue(StrEnum):
    """The repair issues, by translation key."""

    WINDOW_TOO_SMALL = "window_too_small"
    WINDOW_STAYS_FULL = "window_stays_full"
    MODEL_RETIRED = "model_retired"
    MODEL_TOO_SMALL = "model_too_small"
    SERVER_CONTEXT_TOO_SMALL = "server_reads_little"
    MEMORY_AWAY = "memory_away"
    MEMORY_DAMAGED = "memory_damaged"
    MEMORY_FAULT = "memory_fault"
    MEMORY_FULL = "memory_full"
    MEMORY_LEFTOVER = "memory_left"
    MEMORY_LOCKED = "memory_locked"
    MEMORY_NEWER = "memory_newer"
    MEMORY_NO_FTS5 = "memory_no_fts5"
    MEMORY_READ_ONLY = "memory_read_only"
    TEXTS_DAMAGED = "texts_damaged"
    SERVER_AWAY = "server_away"
    WRONG_CODES = "wrong_codes"


# The issues that have a repair flow.
FIXABLE_ISSUES = frozenset({Issue.MODEL_RETIRED, Issue.MODEL_TOO_SMALL, Issue.MEMORY_DAMAGED, Issue.MEMORY_LEFTOVER})
# In the data of an issue: the id of its agent or account.
ATTR_OWNER = "owner"

_ISSUE_BY_REASON: dict[UnavailableReason, Issue] = {
    "away": Issue.MEMORY_AWAY,
    "damaged": Issue.MEMORY_DAMAGED,
    "full": Issue.MEMORY_FULL,
    "locked": Issue.MEMORY_LOCKED,
    "newer": Issue.MEMORY_NEWER,
    "no_fts5": Issue.MEMORY_NO_FTS5,
    "read_only": Issue.MEMORY_READ_ONLY,
}


@callback
def async_update_window_issue(hass: HomeAssistant, agent_id: str, agent_name: str, stats: WindowStats) -> None:
    """Raise an issue if the newest exchange alone exceeds the token budget, or clear it."""
    placeholders = None
    if stats.over_budget:
        placeholders = {
            "agent": agent_name,
            "needed": format_count(stats.current_tokens, hass.config.language),
            "window": format_count(stats.max_tokens, hass.config.language),
        }
    async_update_issue(hass, Issue.WINDOW_TOO_SMALL, agent_id, placeholders)


@callback
def async_review_windows(hass: HomeAssistant, agent_id: str, agent_name: str, windows: WindowRegistry[str]) -> None:
    """Check the newest conversation again, because the token budget may have changed."""
    newest = next(iter(windows.stats().values()), None)
    if newest is not None:
        async_update_window_issue(hass, agent_id, agent_name, newest)


@callback
def async_update_shortfall_issue(
    hass: HomeAssistant, issue: Issue, agent_id: str, agent_name: str, shortfall: Shortfall | None
) -> None:
    """Raise an issue if requests, or a full window, need a larger context than there is, or clear it."""
    placeholders = None
    if shortfall is not None:
        placeholders = {
            "agent": agent_name,
            "needed": format_count(shortfall.needed_tokens, hass.config.language),
            "context": format_count(shortfall.context_tokens, hass.config.language),
            # a power of two, as is usual for context sizes
            "suggested": str(1 << (shortfall.needed_tokens - 1).bit_length()),
        }
        if issue is Issue.MODEL_TOO_SMALL:
            exposed = (async_should_expose(hass, CONVERSATION_DOMAIN, each) for each in hass.states.async_entity_ids())
            placeholders["entities"] = str(sum(exposed))
    async_update_issue(hass, issue, agent_id, placeholders)


@callback
def async_review_retired_issue(hass: HomeAssistant, agent_id: str, model: str | None) -> None:
    """Clear the issue of a model that the agent does not use any more. `model` is the one that it uses, if any."""
    issue = async_find_issue(hass, f"{Issue.MODEL_RETIRED}_{agent_id}")
    if issue is not None and (issue.translation_placeholders or {}).get("model") != model:
        async_update_issue(hass, Issue.MODEL_RETIRED, agent_id, None)


@callback
def async_update_health(hass: HomeAssistant, agent_id: str, agent_name: str, notes: NotesByWindow) -> None:
    """Raise the issue of a window that stays full, or clear it.

    A window whose newest exchange alone exceeds the token budget has an issue of its own.
    """
    placeholders, full = None, notes.find_full_window()
    if full is not None and not full.over_budget:
        placeholders = {
            "agent": agent_name,
            "full": str(FULL_WINDOW_PERCENT),
            "tokens": format_count(full.current_tokens, hass.config.language),
            "protected": format_count(full.protected_tokens, hass.config.language),
            "window": format_count(full.max_tokens, hass.config.language),
        }
    async_update_issue(hass, Issue.WINDOW_STAYS_FULL, agent_id, placeholders)


@callback
def async_clear_issues(hass: HomeAssistant, owner: str) -> None:
    """Clear the issues of an agent or an account."""
    for issue in Issue:
        async_update_issue(hass, issue, owner, None)


@callback
def async_list_issues(hass: HomeAssistant, owner: str) -> list[str]:
    """Return the translation keys of the issues of an agent or an account."""
    return [str(issue) for issue in Issue if async_find_issue(hass, f"{issue}_{owner}")]


@callback
def async_find_issue(hass: HomeAssistant, issue_id: str) -> ir.IssueEntry | None:
    """Return an issue that is shown. After a restart, the registry also has issues that were not raised again."""
    issue = ir.async_get(hass).async_get_issue(DOMAIN, issue_id)
    return issue if issue is not None and issue.active else None


@callback
def async_update_store_issues(hass: HomeAssistant, path: Path, state: StoreState) -> None:
    """Raise issues for the reason why the store is off and for damaged data that was set aside, or clear them."""
    reason: UnavailableReason | None = (
        "damaged" if state.reason is None and state.damaged_path is not None else state.reason
    )
    issue = None if reason is None else _ISSUE_BY_REASON.get(reason, Issue.MEMORY_FAULT)
    placeholders = {"path": str(state.damaged_path or path if reason == "damaged" else path)}
    for each in (*_ISSUE_BY_REASON.values(), Issue.MEMORY_FAULT):
        async_update_issue(hass, each, _STORE_ISSUE_OWNER, placeholders if each is issue else None)
    damaged = {"texts": str(state.rows_set_aside)} if state.rows_set_aside else None
    async_update_issue(hass, Issue.TEXTS_DAMAGED, _STORE_ISSUE_OWNER, damaged)


@callback
def async_update_leftovers(hass: HomeAssistant, until: date | None) -> None:
    """Raise an issue for memory that is kept without an account until a date, or clear it if `until` is None."""
    placeholders = None if until is None else {"until": until.isoformat()}
    async_update_issue(hass, Issue.MEMORY_LEFTOVER, _STORE_ISSUE_OWNER, placeholders)


@callback
def async_update_issue(hass: HomeAssistant, issue: Issue, owner: str, placeholders: dict[str, str] | None) -> None:
    """Raise an issue with these placeholders, or clear it if they are None."""
    if placeholders is None:
        ir.async_delete_issue(hass, DOMAIN, f"{issue}_{owner}")
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        f"{issue}_{owner}",
        data={ATTR_OWNER: owner},
        is_fixable=issue in FIXABLE_ISSUES,
        is_persistent=False,
        severity=ir.IssueSeverity.WARNING,
        translation_key=issue,
        translation_placeholders=placeholders,
    )
