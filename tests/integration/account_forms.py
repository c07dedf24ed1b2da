"""The forms of an account: a new one's, the one that changes it, and that of its options."""

from homeassistant.config_entries import SOURCE_USER
from homeassistant.core import HomeAssistant
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import DOMAIN

from .conftest import Submit


async def open_account(home: HomeAssistant, step: str = "server") -> Submit:
    """Open the form of a new account, of which `step` is the choice in the menu."""
    flows = home.config_entries.flow
    menu = await flows.async_init(DOMAIN, context={"source": SOURCE_USER})
    return Submit(home, flows, await flows.async_configure(menu["flow_id"], {"next_step_id": step}))


async def reconfigure(home: HomeAssistant, entry: MockConfigEntry) -> Submit:
    """Open the form that changes an account."""
    return Submit(home, home.config_entries.flow, await entry.start_reconfigure_flow(home))


async def open_options(home: HomeAssistant, entry: MockConfigEntry) -> Submit:
    """Open the form of an account's options."""
    flows = home.config_entries.options
    return Submit(home, flows, await flows.async_init(entry.entry_id))
