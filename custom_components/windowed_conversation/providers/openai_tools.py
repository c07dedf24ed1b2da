"""Tools in both OpenAI formats: the names and schemas that are sent, the arguments and ids that come back."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
import json
import re
from typing import Any
from uuid import uuid4

from ..window import Message
from .characters import whole_json
from .events import ToolSchema

# A name of anything else is refused: https://platform.openai.com/docs/api-reference/chat/create
_NAME_LENGTH = 64
_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{_NAME_LENGTH}}}")
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")

# Refused at the top of a tool's parameters.
_NOT_AT_THE_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})


def within(length: int, text: str) -> str:
    """Return the text, cut to so many characters where it is longer; what differs stays different."""
    if len(text) <= length:
        return text
    mark = f"_{_digest(text)}"
    return text[: length - len(mark)] + mark


def sent_name(name: str) -> str:
    """Return the name under which a tool is sent: its own where the formats take it."""
    if _NAME.fullmatch(name):
        return name
    return within(_NAME_LENGTH, f"{_NOT_IN_A_NAME.sub('_', name)}_{_digest(name)}")


def own_names(tools: Iterable[ToolSchema]) -> dict[str, str]:
    """Return the tools' own names by those that are sent."""
    return {sent_name(tool.name): tool.name for tool in tools}


def sent_parameters(tool: ToolSchema) -> dict[str, Any]:
    """Return the schema of a tool's parameters without what the formats refuse in it."""
    return {key: value for key, value in tool.parameters.items() if key not in _NOT_AT_THE_TOP}


def written_arguments(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as both formats write them, as JSON in a text."""
    return json.dumps(dict(arguments), ensure_ascii=False)


def read_arguments(written: str) -> dict[str, Any] | None:
    """Return a call's arguments, None while they are no whole JSON object."""
    try:
        value = whole_json(written or "{}")
    except json.JSONDecodeError, RecursionError:
        return None
    return value if isinstance(value, dict) else None


class CallIds:
    """The ids of the calls of one conversation, no two of them alike."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._taken = {call.id for message in messages for call in message.tool_calls}

    def take(self, call_id: str) -> str:
        """Return the server's id, or one of ours where it has none or used it before."""
        if not call_id or call_id in self._taken:
            call_id = f"call_{uuid4().hex}"
        self._taken.add(call_id)
        return call_id


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]
