"""What the user has to know about a window: repair issues."""

from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir

from .const import DOMAIN
from .window import WindowRegistry, WindowStats


@callback
def async_report_window(hass: HomeAssistant, agent_id: str, agent_name: str, stats: WindowStats) -> None:
    """Raise a repair issue when the newest exchange alone is over the budget, and withdraw it when it no longer is."""
    if not stats.over_budget:
        async_withdraw_report(hass, agent_id)
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        _issue_id(agent_id),
        is_fixable=False,
        severity=ir.IssueSeverity.WARNING,
        translation_key="window_too_small",
        translation_placeholders={
            "agent": agent_name,
            "needed": str(stats.current_tokens),
            "window": str(stats.max_tokens),
        },
    )


@callback
def async_review_windows(hass: HomeAssistant, agent_id: str, agent_name: str, windows: WindowRegistry[str]) -> None:
    """Report again on the conversation that spoke last, after the budget may have changed."""
    newest = next(iter(windows.newest_first()), None)
    if newest is not None:
        async_report_window(hass, agent_id, agent_name, newest.stats())


@callback
def async_withdraw_report(hass: HomeAssistant, agent_id: str) -> None:
    """Withdraw the repair issue of an agent."""
    ir.async_delete_issue(hass, DOMAIN, _issue_id(agent_id))


def _issue_id(agent_id: str) -> str:
    return f"window_too_small_{agent_id}"
