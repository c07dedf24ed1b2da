"""What results of tools tell of the home, so that no turn tells it again and none leaves out what has changed since."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import llm
from homeassistant.helpers.json import json_dumps

from ..turn.noted import noted
from ..window import Told
from .home_states import async_home_states
from .touched import entities_acted_on

_NOTHING: Mapping[str, str] = {}


@dataclass(slots=True)
class TellingResult(llm.ToolResult):
    """A result that tells of the home: `text`, a part of its data, costs `tokens`. `states` is what windows note."""

    text: str = ""
    tokens: int = 0
    states: Mapping[str, str] = field(default_factory=dict)


@callback
def async_noted(hass: HomeAssistant, result: llm.ToolResult, known: Mapping[str, str]) -> llm.ToolResult:
    """Return a result with what a window notes of the home; `known` is what it has said so far."""
    states = _noted(hass, result, known)
    if isinstance(result, TellingResult):
        return TellingResult(result.data, result.error, result.text, result.tokens, states)
    return TellingResult(result.data, result.error, states=states) if states else result


def told_in(hass: HomeAssistant, result: llm.ToolResult, content: str) -> Told | None:
    """Return what a result tells of the home, of which `content` is the text. Of another agent's it is in doubt."""
    if not isinstance(result, TellingResult):
        states = _noted(hass, result, _NOTHING)
        return Told(0, 0, 0, states) if states else None
    text = json_dumps(result.text)[1:-1]
    start = content.find(text)
    if not text or start < 0:
        return Told(0, 0, 0, result.states) if result.states else None
    return Told(start, start + len(text), result.tokens, result.states)


def _noted(hass: HomeAssistant, result: llm.ToolResult, known: Mapping[str, str]) -> Mapping[str, str]:
    home, acted_on = async_home_states(hass), entities_acted_on(result)
    listed = result.states.keys() if isinstance(result, TellingResult) else ()
    if home is None or not (known or acted_on or listed):
        return _NOTHING
    return noted(home.exposed(), known, acted_on, listed)
