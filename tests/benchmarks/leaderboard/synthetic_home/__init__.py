"""A small stand-in for the integration of the public datasets, which is in no package registry.

It has the entities of an inventory in their format, for the domains that the tests use.
"""

from pathlib import Path

from homeassistant.config_entries import ConfigEntry
from homeassistant.const import Platform
from homeassistant.core import HomeAssistant

from synthetic_home import inventory

PLATFORMS = (Platform.BINARY_SENSOR, Platform.LIGHT, Platform.LOCK, Platform.SENSOR)


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Load the inventory, which the project patches into the reading of the file."""
    entry.runtime_data = inventory.load_inventory(Path("ignored"))
    await hass.config_entries.async_forward_entry_setups(entry, PLATFORMS)
    return True


async def async_unload_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Unload the entities."""
    return await hass.config_entries.async_unload_platforms(entry, PLATFORMS)
