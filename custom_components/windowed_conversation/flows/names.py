"""The names that the forms suggest. Each is unique among accounts or conversation agents."""

from collections.abc import Iterable, Mapping
from itertools import chain, count
from typing import Any
from urllib.parse import urlsplit

from homeassistant.const import CONF_URL, Platform
from homeassistant.core import HomeAssistant

from ..const import (
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_NONE,
    PROVIDER_OPENAI,
)

# The names that Home Assistant's own integrations use.
_MODELS = {
    PROVIDER_OPENAI: "OpenAI",
    PROVIDER_AZURE: "Azure OpenAI",
    PROVIDER_GEMINI: "Gemini",
    PROVIDER_ANTHROPIC: "Claude",
    PROVIDER_NONE: "Local",
}


def agent_name(hass: HomeAssistant, account: Mapping[str, Any]) -> str:
    """Return a name for a new agent: the vendor of its models, or the host of the server."""
    models = _MODELS.get(account[CONF_PROVIDER]) or urlsplit(account[CONF_URL]).hostname
    entries = hass.config_entries.async_entries(DOMAIN)
    taken = {subentry.title for entry in entries for subentry in entry.subentries.values()}
    taken |= {state.name for state in hass.states.async_all(Platform.CONVERSATION)}
    return _unused(f"{models} conversation", taken)


def account_name(hass: HomeAssistant, title: str) -> str:
    """Return the title of a new account, with a number if the title is taken."""
    return _unused(title, (entry.title for entry in hass.config_entries.async_entries(DOMAIN)))


def _unused(name: str, taken: Iterable[str]) -> str:
    folded = {each.casefold() for each in taken}
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(each for each in names if each.casefold() not in folded)
