"""Helpers that add, change and remove agents in addition to the first one, as a user would."""

from types import MappingProxyType
from typing import Any

from homeassistant.config_entries import ConfigEntry, ConfigSubentry, ConfigSubentryData
from homeassistant.const import CONF_API_KEY, CONF_MODEL
from homeassistant.core import HomeAssistant
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import DOMAIN, SUBENTRY_CONVERSATION

from .conftest import listed


async def add_account(home: HomeAssistant, title: str, account: dict[str, Any], **agent: Any) -> None:
    """Set up another account with one agent; `title` is the name of the agent."""
    subentry = ConfigSubentryData(
        data={CONF_MODEL: "scripted", **agent}, subentry_type=SUBENTRY_CONVERSATION, title=title, unique_id=None
    )
    data = {CONF_API_KEY: "key", **account}
    entry = MockConfigEntry(domain=DOMAIN, title="Other", data=data, subentries_data=[subentry])
    entry.add_to_hass(home)
    await home.config_entries.async_setup(entry.entry_id)


async def add_agent(home: HomeAssistant, entry: MockConfigEntry, title: str = "Grace", **data: Any) -> str:
    """Add an agent to an account, and return its id."""
    agent = MappingProxyType({CONF_MODEL: "scripted", **data})
    subentry = ConfigSubentry(data=agent, subentry_type=SUBENTRY_CONVERSATION, title=title, unique_id=None)
    home.config_entries.async_add_subentry(entry, subentry)
    await listed(home)
    return subentry.subentry_id


async def change_agent(home: HomeAssistant, entry: ConfigEntry, **data: Any) -> None:
    """Change the data of the only agent of an account."""
    (subentry,) = entry.subentries.values()
    home.config_entries.async_update_subentry(entry, subentry, data={**subentry.data, **data})
    await home.async_block_till_done()


async def remove_agent(home: HomeAssistant, entry: MockConfigEntry, agent_id: str) -> None:
    """Remove an agent from its account."""
    home.config_entries.async_remove_subentry(entry, agent_id)
    await listed(home)
