"""The tool calls of one answer: their ids, names and arguments, and the limits on them."""

from collections.abc import Callable, Mapping
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

# Arguments are parsed at their end. Before that, only as often as it costs no more than this many times their length.
_READINGS = 8
_FREE_READINGS = 16 * 2**10


class Calls:
    """The calls of one answer. `names` maps the names that were sent to the tools' own names.

    `count` is the number of complete calls.
    """

    def __init__(self, request: Request, names: Mapping[str, str]) -> None:
        self.count = 0
        self._ids = {call.id for message in request.messages for call in message.tool_calls}
        self._names = names
        self._begun = 0
        self._length = 0

    def begin(self) -> Arguments:
        """Return the arguments of a new call. Raises `BadStream` if there are too many calls."""
        self._begun += 1
        if self._begun > _MOST_CALLS:
            raise BadStream(f"the answer has more than {_MOST_CALLS} tool calls")
        return Arguments(self._grow)

    def announce(self, call_id: str, name: str, arguments: Mapping[str, Any] | None) -> ToolCallDone:
        """Return the event of a complete call. Raises `BadStream` for an incomplete call.

        Uses the server's id, or one of ours if there is none or the server has used it before.
        """
        if arguments is None or not name:
            raise BadStream("a tool call is not whole")
        if not call_id or call_id in self._ids:
            call_id = short_id(uuid4().hex)
        self._ids.add(call_id)
        self.count += 1
        return ToolCallDone(ToolCall(call_id, self._names.get(name, name), dict(arguments)))

    def _grow(self, characters: int) -> None:
        self._length += characters
        if self._length > _LONGEST_TOGETHER:
            raise BadStream("the arguments of the tool calls are longer than 1 MB")


class Arguments:
    """The arguments of one call while their JSON arrives. `grow` counts the characters of all calls."""

    def __init__(self, grow: Callable[[int], None]) -> None:
        self._grow = grow
        self._fragments: list[str] = []
        self._length = 0
        self._parsed = 0
        self._value: dict[str, Any] | None = None

    def add(self, fragment: object) -> None:
        """Append a piece of the JSON, or all of it as an object. Raises `BadStream` if it is too long."""
        text = json.dumps(fragment) if isinstance(fragment, dict) else fragment or ""
        if not isinstance(text, str):
            raise TypeError("arguments are neither a text nor an object")
        self._fragments.append(text)
        self._length += len(text)
        if self._length > _LONGEST_ARGUMENTS:
            raise BadStream("the arguments of a tool call are longer than 256 KB")
        self._grow(len(text))
        self._value = None

    def add_if_empty(self, arguments: object) -> None:
        """Use these arguments if none have arrived."""
        if not "".join(self._fragments).strip():
            self.add(arguments)

    def value_so_far(self) -> dict[str, Any] | None:
        """Return the arguments if they may be complete already: a non-empty JSON object cannot grow."""
        if not self._fragments or not self._fragments[-1].endswith("}"):
            return None
        if self._parsed > _READINGS * self._length + _FREE_READINGS:
            return None
        self._parsed += self._length
        return self.value() or None

    def value(self) -> dict[str, Any] | None:
        """Return the arguments, or None if they are not a complete JSON object. Null and blank count as no arguments.

        Raises `BadStream` if they have too many values.
        """
        if self._value is not None:
            return self._value
        text = "".join(self._fragments)
        if max_value_count(text.encode(errors="replace")) > _MOST_VALUES:
            raise BadStream(f"the arguments of a tool call have more than {_MOST_VALUES} values")
        try:
            value = read_repaired_json(text) if text.strip() else None
        except ValueError, RecursionError:
            return None
        if value is None:
            value = {}
        self._value = value if isinstance(value, dict) else None
        return self._value
