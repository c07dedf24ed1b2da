"""What the user has to know about an agent's windows: repair issues."""

from enum import StrEnum
from pathlib import Path

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir

from .const import DOMAIN
from .turn.budget import Shortfall
from .window import WindowRegistry, WindowStats


class Report(StrEnum):
    """What can be reported of an agent, by its translation key."""

    WINDOW_TOO_SMALL = "window_too_small"
    MODEL_TOO_SMALL = "model_too_small"
    CONVERSATIONS_DAMAGED = "conversations_damaged"


@callback
def async_report_window(hass: HomeAssistant, agent_id: str, agent_name: str, stats: WindowStats) -> None:
    """Raise a repair issue when the newest exchange alone is over the budget, and withdraw it when it no longer is."""
    if not stats.over_budget:
        _withdraw(hass, Report.WINDOW_TOO_SMALL, agent_id)
        return
    told = {"agent": agent_name, "needed": str(stats.current_tokens), "window": str(stats.max_tokens)}
    _raise(hass, Report.WINDOW_TOO_SMALL, agent_id, told)


@callback
def async_review_windows(hass: HomeAssistant, agent_id: str, agent_name: str, windows: WindowRegistry[str]) -> None:
    """Report again on the conversation that spoke last, after the budget may have changed."""
    newest = next(iter(windows.newest_first()), None)
    if newest is not None:
        async_report_window(hass, agent_id, agent_name, newest.stats())


@callback
def async_report_model(hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None) -> None:
    """Raise a repair issue when a request was too large for its model, and withdraw it when one fits again."""
    if shortfall is None:
        _withdraw(hass, Report.MODEL_TOO_SMALL, agent_id)
        return
    exposed = sum(async_should_expose(hass, CONVERSATION_DOMAIN, entity) for entity in hass.states.async_entity_ids())
    told = {
        "agent": agent_name,
        "entities": str(exposed),
        "needed": f"{shortfall.needed:,}",
        "context": f"{shortfall.context:,}",
    }
    _raise(hass, Report.MODEL_TOO_SMALL, agent_id, told)


@callback
def async_withdraw_report(hass: HomeAssistant, agent_id: str) -> None:
    """Withdraw the repair issues of an agent."""
    for report in Report:
        _withdraw(hass, report, agent_id)


@callback
def async_report_damage(hass: HomeAssistant, agent_id: str, agent_name: str, set_aside: Path | None) -> None:
    """Raise a repair issue while there is a file of conversations that could not be read."""
    if set_aside is None:
        _withdraw(hass, Report.CONVERSATIONS_DAMAGED, agent_id)
        return
    told = {"agent": agent_name, "path": str(set_aside)}
    _raise(hass, Report.CONVERSATIONS_DAMAGED, agent_id, told, ir.IssueSeverity.ERROR)


def _raise(
    hass: HomeAssistant,
    report: Report,
    agent_id: str,
    told: dict[str, str],
    severity: ir.IssueSeverity = ir.IssueSeverity.WARNING,
) -> None:
    ir.async_create_issue(
        hass,
        DOMAIN,
        f"{report}_{agent_id}",
        is_fixable=False,
        severity=severity,
        translation_key=report,
        translation_placeholders=told,
    )


def _withdraw(hass: HomeAssistant, report: Report, agent_id: str) -> None:
    ir.async_delete_issue(hass, DOMAIN, f"{report}_{agent_id}")
