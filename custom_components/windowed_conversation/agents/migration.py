"""Renames the settings of configuration entries that earlier versions have stored."""

from collections.abc import Mapping
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant, callback

from ..const import CONF_EXCLUDED_TAGS, CONF_FALLBACK_AGENTS, CONF_IDLE_TIMEOUT, CONF_MAX_ANSWER_TOKENS

# The minor version of entries with these names.
MINOR_VERSION = 2

_RENAMED = {
    "first_word_timeout": CONF_IDLE_TIMEOUT,
    "left_out": CONF_EXCLUDED_TAGS,
    "others": CONF_FALLBACK_AGENTS,
    "reply_tokens": CONF_MAX_ANSWER_TOKENS,
}


@callback
def async_migrate(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Rename an account's and its agents' settings. Return whether this version can use the entry."""
    if entry.version > 1:
        return False
    if entry.minor_version < MINOR_VERSION:
        for subentry in entry.subentries.values():
            hass.config_entries.async_update_subentry(entry, subentry, data=_renamed(subentry.data))
        hass.config_entries.async_update_entry(entry, options=_renamed(entry.options), minor_version=MINOR_VERSION)
    return True


def _renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under their names of now, also those inside a group."""
    return {
        _RENAMED.get(name, name): _renamed(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
    }
