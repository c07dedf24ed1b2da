"""Helpers that open the forms of an account: creating it, changing it, and changing its options."""

from homeassistant.config_entries import SOURCE_USER
from homeassistant.core import HomeAssistant
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import DOMAIN

from .conftest import Submit


async def open_account(home: HomeAssistant, step: str = "server") -> Submit:
    """Start a config flow for a new account, choose `step` in its menu, and return the open form."""
    flows = home.config_entries.flow
    menu = await flows.async_init(DOMAIN, context={"source": SOURCE_USER})
    return Submit(home, flows, await flows.async_configure(menu["flow_id"], {"next_step_id": step}))


async def reconfigure(home: HomeAssistant, entry: MockConfigEntry) -> Submit:
    """Open the form that changes an account, and return it."""
    return Submit(home, home.config_entries.flow, await entry.start_reconfigure_flow(home))


async def open_options(home: HomeAssistant, entry: MockConfigEntry) -> Submit:
    """Open the form of an account's options, and return it."""
    flows = home.config_entries.options
    return Submit(home, flows, await flows.async_init(entry.entry_id))
