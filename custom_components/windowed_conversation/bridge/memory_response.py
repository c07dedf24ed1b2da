"""What is remembered as the responses of actions: plain JSON, times in ISO 8601."""

from homeassistant.util.json import JsonObjectType

from ..memory import Forgotten, Recalled
from .memory_action_schemas import memory_id
from .window_response import iso_time


def memory_response(found: Recalled, name: str | None) -> JsonObjectType:
    """Return a memory of the home, or of a person of this name."""
    response: JsonObjectType = {
        "id": memory_id(found.kind, found.id),
        "kind": found.kind,
        "text": found.text,
        "time": iso_time(found.at),
        "person": None if found.person is None else name or found.person,
        "private": found.private,
    }
    return response if found.conversation is None else {**response, "conversation_id": found.conversation}


def forgotten_response(forgotten: Forgotten) -> JsonObjectType:
    """Return how much was forgotten, or would be."""
    return {
        "facts": len(forgotten.facts),
        "turns": len(forgotten.turns),
        "episodes": len(forgotten.episodes),
    }
