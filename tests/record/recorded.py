"""Helpers that build records of turns."""

from functools import partial
import json
from typing import Any

from custom_components.windowed_conversation.record import (
    EMPTY_TURN,
    AttemptRecord,
    SentRequest,
    TurnRecord,
    calculate_fingerprint,
    store_turn,
)
from custom_components.windowed_conversation.store import WriteJob
from tests.memory.content import NOW

SYSTEM, TOOLS = "You speak for the house.", [{"name": "HassTurnOn"}]
NO_USAGE = dict.fromkeys(("input", "cached", "output", "cache_written", "reasoning", "cleared", "searches"), 0)
USAGE = dict(zip(NO_USAGE, (100, 80, 20, 5, 3, 1, 0), strict=True))
CALL = {"name": "HassTurnOn", "arguments": {"name": "hall"}, "result": '{"success": true}'}


def sent(*said) -> SentRequest:
    return {"system": SYSTEM, "tools": TOOLS, "messages": [{"role": "user", "content": each} for each in said]}


def request(*said, **fields) -> AttemptRecord:
    """Return the record of an answered request. It includes the sent messages if any are given."""
    known: Any = {
        "purpose": "answer",
        "agent": "a1",
        "provider": "openai",
        "model": "gpt-5",
        "outcome": "answered",
        "error": None,
        "finish": "stop",
        "began": 0.0,
        "time_to_first_byte": None,
        "time_to_first_token": None,
        "duration": 1.5,
        "parameters": {"effort": "low"},
        "prompt": calculate_fingerprint(SYSTEM),
        "tool_list": calculate_fingerprint(json.dumps(TOOLS)),
        "tools": ["HassTurnOn"],
        "usage": USAGE,
    }
    return known | ({"sent": sent(*said)} if said else {}) | fields


def record(number, **fields) -> TurnRecord:
    """Return the record of a turn without its text, with the sums of its requests."""
    attempts = fields.get("attempts", [request()])
    usages = [each["usage"] or NO_USAGE for each in attempts]
    known: Any = {
        **EMPTY_TURN,
        "turn_id": f"turn-{number:04}",
        "time": NOW + number,
        "agent": "a1",
        "route": "model",
        "outcome": "answered",
        "reason": "model_only",
        "conversation_id": "c1",
        "entity_id": "conversation.house",
        "answered_by": "a1",
        "failures": [{"agent": "a2", "error": "unavailable"}],
        "time_to_first_token": 0.5,
        "duration": 2.0,
        "tools": ["HassTurnOn"],
        "failed_tool_calls": 1,
        "known_by": "login",
        "memory_late": True,
        "requests": len(attempts),
        "usage": {name: sum(each[name] for each in usages) for name in NO_USAGE},
        "attempts": attempts,
    }
    return known | fields


def whole(number, said, answer="Done.", **fields) -> TurnRecord:
    """Return the record of a turn with its text: the user's input, the answer and a tool call."""
    text = {"has_text": True, "said": said, "answer": answer, "tool_calls": [CALL], "attempts": [request(said)]}
    return record(number, **text | fields)


def strip_texts(turn: TurnRecord) -> TurnRecord:
    """Return a record without its text, as in a list of turns."""
    attempts = [{name: value for name, value in each.items() if name != "sent"} for each in turn["attempts"]]
    rest: Any = {name: value for name, value in turn.items() if name not in {"said", "answer", "tool_calls"}}
    return rest | {"attempts": attempts}


def writes(*turns: TurnRecord) -> list[WriteJob]:
    """Return the writes of turns to the record."""
    return [write(lambda turn=turn: turn) for turn in turns]


def write(build) -> WriteJob:
    """Return the write of the turn that a function builds."""
    return WriteJob(partial(store_turn, build=build))
