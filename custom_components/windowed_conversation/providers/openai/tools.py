"""Tools in both OpenAI formats: the schemas that are sent, the arguments and ids that come back."""

from collections.abc import Iterable, Mapping
import json
from typing import Any
from uuid import uuid4

from ...window import Message
from ..characters import whole_json
from ..events import Request, ToolSchema

# Refused at the top of a tool's parameters.
_NOT_AT_THE_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})


def sent_parameters(tool: ToolSchema) -> dict[str, Any]:
    """Return the schema of a tool's parameters without what the formats refuse in it."""
    return {key: value for key, value in tool.parameters.items() if key not in _NOT_AT_THE_TOP}


def tool_choice(request: Request) -> dict[str, Any]:
    """Return the parameter by which tools that are sent may not be called; empty where they may."""
    return {} if request.may_call or not request.tools else {"tool_choice": "none"}


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
