"""The repair flow for memory that remains after the last account was removed: delete it now, or keep it."""

from collections.abc import Callable, Coroutine
from typing import Any

from homeassistant.components.repairs import RepairsFlow, RepairsFlowResult
from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir

from .agents.setup import async_delete_leftover_file, async_keep_leftover_file
from .const import DOMAIN


class RemainingMemoryFlow(RepairsFlow):
    """Asks whether to delete the memory file. Home Assistant shows `confirm` while the integration is not loaded."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Offer to delete or to keep the memory file."""
        issue = ir.async_get(self.hass).async_get_issue(DOMAIN, self.issue_id)
        placeholders = issue.translation_placeholders if issue else None
        return self.async_show_menu(menu_options=["delete", "keep"], description_placeholders=placeholders)

    async def async_step_delete(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Delete the memory file."""
        return await self._async_finish(async_delete_leftover_file)

    async def async_step_keep(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Keep the memory file permanently."""
        return await self._async_finish(async_keep_leftover_file)

    async def _async_finish(self, do: Callable[[HomeAssistant], Coroutine[Any, Any, bool]]) -> RepairsFlowResult:
        return self.async_create_entry(data={}) if await do(self.hass) else self.async_abort(reason="not_possible")


async def async_create_fix_flow(
    hass: HomeAssistant, issue_id: str, data: dict[str, str | int | float | None] | None
) -> RepairsFlow:
    """Return the repair flow of the only fixable issue."""
    return RemainingMemoryFlow()
