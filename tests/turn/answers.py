"""A model's answers as bytes: text, and calls of the tools of the test home."""

import json
from typing import Any

from tests.providers.byte_server import CALLS, DONE, STOP, fragment, text

TURN_ON, LOOK = "intent__HassTurnOn", "homeassistant__GetLiveContext"


def calls(*arguments: Any, name: str = TURN_ON) -> bytes:
    """Return an answer that calls one tool, once for each of the given arguments."""
    whole = [fragment(json.dumps(each), name, index=at, id=f"call_{at}") for at, each in enumerate(arguments)]
    return b"".join((*whole, CALLS, DONE))


def said(words: str) -> bytes:
    """Return an answer that consists of this text."""
    return text(words) + STOP + DONE
