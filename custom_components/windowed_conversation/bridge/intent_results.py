"""The states that an intent has led to, in the result of its tool."""

from contextlib import suppress
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers import intent, llm

from ..home.core.state_text import state_text

_UNCHANGED_SUFFIX = " (unchanged so far)"


def add_reached_states(hass: HomeAssistant, result: llm.ToolResult, called_at: float) -> llm.ToolResult:
    """Return a tool's result with the state of each entity its intent reached, marked if older than `called_at`."""
    data: Any = result.data
    response = getattr(data, "original", None)
    if isinstance(response, intent.IntentResponse) and response.response_type is intent.IntentResponseType.ACTION_DONE:
        for target in data["data"]["success"]:
            if (state := hass.states.get(target["id"] or "")) is None:
                continue
            # attributes that cannot be read do not make the call a failure
            with suppress(ArithmeticError, LookupError, TypeError, ValueError):
                text = state_text(state.domain, state.state, state.attributes, hass.config.units.temperature_unit)
                target["state"] = text + _UNCHANGED_SUFFIX * (state.last_updated_timestamp < called_at)
    return result
