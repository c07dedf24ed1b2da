"""Turns of the record as the responses of actions: plain JSON, times in ISO 8601, names that people know."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
import json
from typing import Any

from homeassistant.const import ATTR_FRIENDLY_NAME
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import device_registry as dr
from homeassistant.util.json import JsonObjectType

from ..memory import CallRecord, RequestRecord, Sent, Tokens, TurnRecord, TurnWords
from .errors import ERROR_KEYS
from .persons import async_person
from .turn_report import entity_of_agent
from .window_response import iso_time

# In characters: of one argument or result of a tool, and of a request. Longer ones are in the export.
_LONGEST_TEXT = 10_000
_LONGEST_REQUEST = 1_000_000
_MOST_CALLS = 100
_CUT = "…"
_UNEXPECTED = "unexpected"


async def async_names(hass: HomeAssistant, turns: Iterable[TurnRecord]) -> dict[str, str]:
    """Return the names of those who spoke in these turns, by the ids of their users."""
    people = [await async_person(hass, user) for user in {turn.person for turn in turns}]
    return {person.id: person.name for person in people if person is not None and person.name}


@callback
def turn_response(hass: HomeAssistant, turn: TurnRecord, names: Mapping[str, str]) -> JsonObjectType:
    """Return the figures of a turn: ids, names, codes, numbers; nothing that was said. `names` has those of people."""
    return {
        "turn_id": turn.id,
        "time": iso_time(turn.at),
        "entity_id": entity_of_agent(hass, turn.agent),
        "conversation_id": turn.conversation,
        "person": names.get(turn.person or "", turn.person),
        "device": _device_name(hass, turn.device),
        "route": turn.route,
        "reason": turn.reason,
        "outcome": turn.end,
        "error": _error(turn.error),
        "answered_by": turn.answered_by and entity_of_agent(hass, turn.answered_by),
        "failures": [
            {"agent": entity_of_agent(hass, each.agent), "error": _error(each.error)} for each in turn.failures
        ],
        "tools": list(turn.tools),
        "failed_tool_calls": turn.failed_tool_calls,
        "requests": len(turn.requests),
        "usage": _sum(turn.requests),
        "cost": None if turn.cost is None else float(turn.cost),
        "time_to_first_token": turn.first_token,
        "duration": turn.duration,
        "follows": turn.cause,
        "has_words": turn.level == "whole",
    }


@callback
def attempts_response(hass: HomeAssistant, turn: TurnRecord) -> list[JsonObjectType]:
    """Return the figures of each request of a turn, in their order."""
    return [_attempt(hass, request) for request in turn.requests]


def words_response(words: TurnWords) -> JsonObjectType:
    """Return the words of a turn: the input, the answer, and the calls of its tools with their results."""
    return {
        "said": words.said,
        "answer": words.answer,
        "tool_calls": [_call(each) for each in words.calls[:_MOST_CALLS]],
    }


def sent_response(sent: Sent) -> JsonObjectType:
    """Return a request as it was sent: system prompt, tools, and as many of the newest messages as have room."""
    room = _LONGEST_REQUEST - len(sent.system) - len(sent.tools)
    messages: list[Any] = []
    for text in reversed(sent.messages):
        room -= len(text)
        if room < 0:
            break
        messages.insert(0, _value(text))
    return {
        "system": sent.system,
        "tools": _value(sent.tools),
        "messages": messages,
        "omitted_messages": len(sent.messages) - len(messages),
    }


def _attempt(hass: HomeAssistant, request: RequestRecord) -> JsonObjectType:
    return {
        "purpose": request.purpose,
        "entity_id": entity_of_agent(hass, request.agent),
        "provider": request.provider,
        "model": request.model,
        "outcome": request.end,
        "error": _error(request.error),
        "finish": request.finish,
        "began": request.began,
        "time_to_first_token": request.first_token,
        "duration": request.duration,
        "parameters": _value(request.parameters),
        "prompt": request.prompt,
        "tool_list": request.tools,
        "tools": list(request.called),
        "usage": None if request.usage is None else asdict(request.usage),
    }


def _call(call: CallRecord) -> JsonObjectType:
    arguments = _value(call.arguments) if len(call.arguments) <= _LONGEST_TEXT else _cut(call.arguments)
    return {"name": call.name, "arguments": arguments, "result": call.result and _cut(call.result)}


def _sum(requests: Iterable[RequestRecord]) -> dict[str, Any]:
    """Return the tokens that were reported for the requests together."""
    used = [asdict(request.usage) for request in requests if request.usage is not None]
    return {name: sum(each[name] for each in used) for name in asdict(Tokens())}


def _error(name: str | None) -> str | None:
    """Return an error by its name for automations."""
    return name and ERROR_KEYS.get(name, _UNEXPECTED)


def _device_name(hass: HomeAssistant, device: str | None) -> str | None:
    """Return the name of a device or of a satellite's entity, its id if it is gone."""
    if device is None:
        return None
    if (state := hass.states.get(device)) is not None:
        return str(state.attributes.get(ATTR_FRIENDLY_NAME, device))
    found = dr.async_get(hass).async_get(device)
    return (found and (found.name_by_user or found.name)) or device


def _value(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it was cut."""
    try:
        return json.loads(text)
    except ValueError, RecursionError:
        return text


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + _CUT
