"""The owners of voice satellites: one list for all accounts, which each of them keeps in its options."""

from collections.abc import Mapping
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant, callback

from ..const import ATTR_DEVICE, ATTR_PERSON, CONF_DEVICE_OWNERS, DOMAIN


@callback
def async_device_owners(hass: HomeAssistant) -> dict[str, str]:
    """Return the users who own devices, by device. The first account that names a device counts."""
    owners: dict[str, str] = {}
    for entry in hass.config_entries.async_entries(DOMAIN):
        for owned in entry.options.get(CONF_DEVICE_OWNERS, ()):
            owners.setdefault(owned[ATTR_DEVICE], owned[ATTR_PERSON])
    return owners


@callback
def async_share_device_owners(hass: HomeAssistant, account: ConfigEntry[Any]) -> None:
    """Have an account keep the list, so that the others can be removed."""
    if owners := async_device_owners(hass):
        hass.config_entries.async_update_entry(account, options=with_device_owners(account.options, owners))


def with_device_owners(options: Mapping[str, Any], owners: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of an account with this list."""
    listed = [{ATTR_DEVICE: device, ATTR_PERSON: person} for device, person in owners.items()]
    others = {name: value for name, value in options.items() if name != CONF_DEVICE_OWNERS}
    return {**others, CONF_DEVICE_OWNERS: listed} if listed else others
