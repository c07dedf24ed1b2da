"""Helpers that build records of turns."""

from dataclasses import replace
import json
from typing import Any

from custom_components.windowed_conversation.memory import (
    CallRecord,
    FailureRecord,
    RequestContent,
    RequestRecord,
    TokenUsage,
    TurnRecord,
    TurnText,
    calculate_fingerprint,
)

from .content import NOW

SYSTEM, TOOLS = "You speak for the house.", '[{"name": "HassTurnOn"}]'


def sent(*said):
    return RequestContent(SYSTEM, TOOLS, tuple(json.dumps({"role": "user", "content": each}) for each in said))


def request(*said, **fields):
    """Return the record of an answered request. It includes the sent messages if any are given."""
    known: dict[str, Any] = {
        "agent": "a1",
        "provider": "openai",
        "model": "gpt-5",
        "end": "answered",
        "duration": 1.5,
        "parameters": '{"effort": "low"}',
        "prompt": calculate_fingerprint(SYSTEM),
        "tools": calculate_fingerprint(TOOLS),
        "called": ("HassTurnOn",),
        "finish": "stop",
        "usage": TokenUsage(100, 80, 20, 5, 3, 1),
        "sent": sent(*said) if said else None,
    }
    return RequestRecord(**known | fields)


def record(number, **fields):
    """Return the record of a turn without its text."""
    known: dict[str, Any] = {
        "id": f"turn-{number:04}",
        "at": NOW + number,
        "agent": "a1",
        "route": "model",
        "end": "answered",
        "reason": "model_only",
        "conversation": "c1",
        "entity_id": "conversation.house",
        "answered_by": "a1",
        "failures": (FailureRecord("a2", "Unavailable"),),
        "first_token": 0.5,
        "duration": 2.0,
        "tools": ("HassTurnOn",),
        "failed_tool_calls": 1,
        "requests": (request(),),
    }
    return TurnRecord(**known | fields)


def whole(number, said, answer="Done.", **fields):
    """Return the record of a turn with its text: the user's input, the answer and a tool call."""
    calls = (CallRecord("HassTurnOn", '{"name": "hall"}', '{"success": true}'),)
    words = TurnText(said, answer, calls)
    return record(number, level="full", words=words, requests=(request(said),), **fields)


def strip_texts(turn):
    """Return a record without its text, as in a list of turns."""
    requests = tuple(replace(each, sent=None) for each in turn.requests)
    return replace(turn, words=None, requests=requests)
