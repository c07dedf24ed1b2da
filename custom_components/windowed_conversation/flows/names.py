"""The names that the forms suggest. Each is unique among accounts or conversation agents."""

from collections.abc import Iterable, Mapping
from itertools import chain, count
import re
from typing import Any

from homeassistant.const import Platform
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
_VENDORS = {
    PROVIDER_OPENAI: "OpenAI",
    PROVIDER_AZURE: "Azure OpenAI",
    PROVIDER_GEMINI: "Gemini",
    PROVIDER_ANTHROPIC: "Claude",
    PROVIDER_NONE: "Local",
}


# The most characters of a model's name in an agent's: names of files can be long.
_LONGEST = 60


def agent_name(hass: HomeAssistant, account: Mapping[str, Any], model: str) -> str:
    """Return a name for a new agent: its vendor's, or its model's on a compatible server; empty without either."""
    vendor = _VENDORS.get(account[CONF_PROVIDER])
    name = f"{vendor} conversation" if vendor else _short(model)
    entries = hass.config_entries.async_entries(DOMAIN)
    taken = {subentry.title for entry in entries for subentry in entry.subentries.values()}
    taken |= {state.name for state in hass.states.async_all(Platform.CONVERSATION)}
    return name and _unused(name, taken)


def name_or_suggestion(
    hass: HomeAssistant, account: Mapping[str, Any], entered: str, suggested: str, model: str
) -> str:
    """Return the name that was entered. One that was left as suggested, or empty, follows from the chosen model."""
    name = entered.strip()
    return name if name not in ("", suggested) else agent_name(hass, account, model)


def account_name(hass: HomeAssistant, title: str) -> str:
    """Return the title of a new account, with a number if the title is taken."""
    return _unused(title, (entry.title for entry in hass.config_entries.async_entries(DOMAIN)))


def _unused(name: str, taken: Iterable[str]) -> str:
    folded = {each.casefold() for each in taken}
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(each for each in names if each.casefold() not in folded)


def _short(model: str) -> str:
    """Return a model's name without its registry or folder, its tag, and the ending of a file: `llama3.2`."""
    own = re.split(r"[/\\]", model)[-1].partition(":")[0].removesuffix(".gguf")
    return (own.strip() or model)[:_LONGEST]
