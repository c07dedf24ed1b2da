"""The tool calls of one answer: their ids, names and arguments, and the limits on them."""

from collections.abc import Mapping
import json
from typing import Any
from uuid import uuid4

from ..window import ToolCall
from .errors import BadStream
from .events import Request, ToolCallDone
from .json_values import max_value_count, read_repaired_json
from .names import short_id

_MOST_CALLS = 64
# In characters.
_LONGEST_ARGUMENTS = 256 * 2**10
_LONGEST_TOGETHER = 2**20
# Values in the arguments of a call, which are read in the event loop.
_MOST_VALUES = 10_000

# What is written of arguments is read at its end, and before that only as often as costs no more than this many times
# what there is of it.
_READINGS = 8
_READ_FOR_NOTHING = 16 * 2**10


class Calls:
    """The calls of one answer. `names` maps the names that were sent to the tools' own names."""

    def __init__(self, request: Request, names: Mapping[str, str]) -> None:
        self._taken = {call.id for message in request.messages for call in message.tool_calls}
        self._names = names
        self._begun = 0
        self._length = 0
        self._announced = 0

    def __bool__(self) -> bool:
        """Return whether the model has called a tool."""
        return bool(self._announced)

    def begin(self) -> Arguments:
        """Return the arguments of a new call. Raises `BadStream` if there are too many calls."""
        self._begun += 1
        if self._begun > _MOST_CALLS:
            raise BadStream(f"the answer has more than {_MOST_CALLS} tool calls")
        return Arguments(self)

    def grow(self, characters: int) -> None:
        """Count characters of arguments. Raises `BadStream` if all calls together have too many."""
        self._length += characters
        if self._length > _LONGEST_TOGETHER:
            raise BadStream("the arguments of the tool calls are longer than 1 MB")

    def announce(self, call_id: str, name: str, arguments: Mapping[str, Any] | None) -> ToolCallDone:
        """Return the event of a whole call. Raises `BadStream` for an incomplete call.

        Uses the server's id, or one of ours if there is none or the server has used it before.
        """
        if arguments is None or not name:
            raise BadStream("a tool call is not whole")
        if not call_id or call_id in self._taken:
            call_id = short_id(uuid4().hex)
        self._taken.add(call_id)
        self._announced += 1
        return ToolCallDone(ToolCall(call_id, self._names.get(name, name), dict(arguments)))


class Arguments:
    """The arguments of one call while their JSON arrives."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._written: list[str] = []
        self._length = 0
        self._read = 0
        self._value: dict[str, Any] | None = None

    def add(self, fragment: object) -> None:
        """Append a piece of the JSON, or all of it as an object. Raises `BadStream` if it is too long."""
        text = json.dumps(fragment) if isinstance(fragment, dict) else fragment or ""
        if not isinstance(text, str):
            raise TypeError("arguments are neither a text nor an object")
        self._written.append(text)
        self._length += len(text)
        if self._length > _LONGEST_ARGUMENTS:
            raise BadStream("the arguments of a tool call are longer than 256 KB")
        self._calls.grow(len(text))
        self._value = None

    def or_else(self, arguments: object) -> None:
        """Use these arguments if none have arrived."""
        if not "".join(self._written).strip():
            self.add(arguments)

    def so_far(self) -> dict[str, Any] | None:
        """Return the arguments if they may be complete already: a non-empty JSON object cannot grow."""
        if not self._written or not self._written[-1].endswith("}"):
            return None
        if self._read > _READINGS * self._length + _READ_FOR_NOTHING:
            return None
        self._read += self._length
        return self.whole() or None

    def whole(self) -> dict[str, Any] | None:
        """Return the arguments, or None if they are not a whole JSON object. Null and blank count as no arguments."""
        if self._value is None:
            self._value = _object("".join(self._written))
        return self._value


def _object(written: str) -> dict[str, Any] | None:
    if max_value_count(written.encode(errors="replace")) > _MOST_VALUES:
        raise BadStream(f"the arguments of a tool call have more than {_MOST_VALUES} values")
    try:
        value = read_repaired_json(written) if written.strip() else None
    except ValueError, RecursionError:
        return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None
