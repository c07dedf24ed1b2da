"""What the user has to know about an agent's windows: repair issues."""

from pathlib import Path

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir

from .const import DOMAIN
from .turn.budget import Shortfall
from .window import WindowRegistry, WindowStats


@callback
def async_report_window(hass: HomeAssistant, agent_id: str, agent_name: str, stats: WindowStats) -> None:
    """Raise a repair issue when the newest exchange alone is over the budget, and withdraw it when it no longer is."""
    issue_id = f"window_too_small_{agent_id}"
    if not stats.over_budget:
        ir.async_delete_issue(hass, DOMAIN, issue_id)
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        issue_id,
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
def async_report_model(hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None) -> None:
    """Raise a repair issue when a request was too large for its model, and withdraw it when one fits again."""
    issue_id = f"model_too_small_{agent_id}"
    if shortfall is None:
        ir.async_delete_issue(hass, DOMAIN, issue_id)
        return
    exposed = sum(async_should_expose(hass, CONVERSATION_DOMAIN, entity) for entity in hass.states.async_entity_ids())
    ir.async_create_issue(
        hass,
        DOMAIN,
        issue_id,
        is_fixable=False,
        severity=ir.IssueSeverity.WARNING,
        translation_key="model_too_small",
        translation_placeholders={
            "agent": agent_name,
            "entities": str(exposed),
            "needed": f"{shortfall.needed:,}",
            "context": f"{shortfall.context:,}",
        },
    )


@callback
def async_withdraw_report(hass: HomeAssistant, agent_id: str) -> None:
    """Withdraw the repair issues of an agent."""
    for kind in ("window_too_small", "model_too_small", "conversations_damaged"):
        ir.async_delete_issue(hass, DOMAIN, f"{kind}_{agent_id}")


@callback
def async_report_damage(hass: HomeAssistant, agent_id: str, agent_name: str, set_aside: Path | None) -> None:
    """Raise a repair issue while there is a file of conversations that could not be read."""
    issue_id = f"conversations_damaged_{agent_id}"
    if set_aside is None:
        ir.async_delete_issue(hass, DOMAIN, issue_id)
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        issue_id,
        is_fixable=False,
        severity=ir.IssueSeverity.ERROR,
        translation_key="conversations_damaged",
        translation_placeholders={"agent": agent_name, "path": str(set_aside)},
    )
