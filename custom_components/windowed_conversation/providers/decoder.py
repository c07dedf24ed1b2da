"""The base of all decoders: text, reasoning, tool calls with their limits, usage, and the end of an answer."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import json
from typing import Any
from uuid import uuid4

from ..window import ToolCall
from .encoder import sent_name, short_id
from .errors import BadStream, ProviderError
from .events import Event, Finished, FinishReason, ReasoningDelta, Request, TextDelta, ToolCallDone, Usage
from .json_values import SurrogateJoiner, max_value_count, read_repaired_json

_MOST_CALLS = 64
# The limits of one call's arguments and of all arguments together, in characters.
_LONGEST_ARGUMENTS = 256 * 2**10
_LONGEST_TOGETHER = 2**20
# The maximum number of values in the arguments of a call, because they are parsed in the event loop.
_MOST_VALUES = 10_000

# Arguments are parsed when they are complete. Before that, they are parsed only while the characters parsed so far are
# at most this many times their length, plus a fixed allowance.
_READINGS = 8
_FREE_READINGS = 16 * 2**10

# The known reasons for the end of an answer, in all formats and on compatible servers.
_REASONS = (
    "stop length tool_calls content_filter function_call abort eos error insufficient_system_resource model_length "
    "completed end_turn max_tokens stop_sequence tool_use pause_turn compaction refusal model_context_window_exceeded "
    "STOP MAX_TOKENS CONTINUATION BLOCKLIST ESCALATION FUNCTION_CALL IMAGE_OTHER IMAGE_PROHIBITED_CONTENT "
    "IMAGE_RECITATION IMAGE_SAFETY LANGUAGE MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE MISSING_THOUGHT_SIGNATURE "
    "MODEL_ARMOR NO_IMAGE OTHER PROHIBITED_CONTENT RECITATION SAFETY SPII TOO_MANY_TOOL_CALLS "
    "UNEXPECTED_TOOL_CALL"
)


class Calls:
    """The tool calls of one answer.

    `names` maps the sent tool names to the tools' own names; without it, the names come from `sent_name`. `count` is
    the number of complete calls, `length` the number of characters of all arguments so far.
    """

    def __init__(self, request: Request, names: Mapping[str, str] | None) -> None:
        self.count = 0
        self.length = 0
        self._ids = {call.id for message in request.messages for call in message.tool_calls}
        self._tools = {tool.name for tool in request.tools}
        self._names = names
        self._begun = 0

    def begin(self) -> Arguments:
        """Return an `Arguments` object for a new call. Raises `BadStream` if there are too many calls."""
        self._begun += 1
        if self._begun > _MOST_CALLS:
            raise BadStream(f"the answer has more than {_MOST_CALLS} tool calls")
        return Arguments(self)

    def announce(self, call_id: str, name: str, arguments: Mapping[str, Any] | None) -> ToolCallDone:
        """Return the event of a complete call. Raises `BadStream` for an incomplete call.

        Uses the server's id, or a generated id if the server sent none or has used it before.
        """
        if arguments is None or not name:
            raise BadStream("a tool call is not whole")
        if not call_id or call_id in self._ids:
            call_id = short_id(uuid4().hex)
        self._ids.add(call_id)
        self.count += 1
        if name not in self._tools:
            names = {sent_name(own): own for own in self._tools} if self._names is None else self._names
            name = names.get(name, name)
        return ToolCallDone(ToolCall(call_id, name, dict(arguments)))


@dataclass(slots=True)
class Arguments:
    """The arguments of one call of `calls`, collected while their JSON arrives."""

    calls: Calls
    _fragments: list[str] = field(default_factory=list)
    _length: int = 0
    _parsed: int = 0
    _value: dict[str, Any] | None = None

    def add(self, fragment: object) -> None:
        """Append a fragment of the JSON, or all arguments as an object. Raises `BadStream` if they are too long."""
        text = json.dumps(fragment) if isinstance(fragment, dict) else fragment or ""
        if not isinstance(text, str):
            raise TypeError("arguments are neither a text nor an object")
        self._fragments.append(text)
        self._length += len(text)
        self.calls.length += len(text)
        if self._length > _LONGEST_ARGUMENTS:
            raise BadStream("the arguments of a tool call are longer than 256 KB")
        if self.calls.length > _LONGEST_TOGETHER:
            raise BadStream("the arguments of the tool calls are longer than 1 MB")
        self._value = None

    def add_if_empty(self, arguments: object) -> None:
        """Use these arguments if none have arrived so far."""
        if not "".join(self._fragments).strip():
            self.add(arguments)

    def value_so_far(self) -> dict[str, Any] | None:
        """Return the arguments if they are complete already: nothing can follow a complete, non-empty JSON object."""
        if not self._fragments or not self._fragments[-1].endswith("}"):
            return None
        if self._parsed > _READINGS * self._length + _FREE_READINGS:
            return None
        self._parsed += self._length
        return self.value() or None

    def value(self) -> dict[str, Any] | None:
        """Return the arguments, or None if they are not a complete JSON object. Null and blank text mean no arguments.

        Raises `BadStream` if they have too many values.
        """
        if self._value is not None:
            return self._value
        text = "".join(self._fragments)
        if len(text) >= _MOST_VALUES and max_value_count(text.encode(errors="replace")) > _MOST_VALUES:
            raise BadStream(f"the arguments of a tool call have more than {_MOST_VALUES} values")
        try:
            value = read_repaired_json(text) if text.strip() else None
        except ValueError, RecursionError:
            return None
        if value is None:
            value = {}
        self._value = value if isinstance(value, dict) else None
        return self._value


def finish_reason(word: str) -> str:
    """Return the server's finish reason, or `other` if it is unknown: its text may repeat the conversation."""
    return word if word in _REASONS.split() else "other"


class Decoder(ABC):
    """Decodes one answer, event by event. For `names`, see `Calls`.

    `is_complete` is true once the terminal marker has arrived.
    """

    def __init__(self, request: Request, names: Mapping[str, str] | None = None) -> None:
        self.is_complete = False
        self._calls = Calls(request, names)
        self._usage: Usage | None = None
        # The server's finish reason, see `finish_reason`.
        self._ended = ""
        # The server's description of itself, see `Finished.server`.
        self._server = ""
        self._text = SurrogateJoiner()
        self._reasoning = SurrogateJoiner()
        # The length of the text so far, in characters.
        self._length = 0
        # The size of the residue in tokens, see `Finished`.
        self._residue_tokens: int | None = None

    @abstractmethod
    def on_event(self, event: Any) -> Iterable[Event]:
        """Return the events for one event of the server: JSON in which any value may have any type or be missing."""

    @abstractmethod
    def as_stream(self, answer: Any) -> Iterable[Any]:
        """Return the stream events for an answer that the server sent in one piece although a stream was requested."""

    def on_end(self) -> Iterator[Event]:
        """Yield the usage and the terminal event. Raises a `ProviderError` if the answer failed."""
        if self._usage:
            yield self._usage
        if error := self._error():
            raise error
        reason = FinishReason.TOOL_CALLS if self._calls.count else FinishReason.STOP
        residue = self._residue()
        yield Finished(reason, self._ended, residue, self._residue_tokens, self._server)

    def _error(self) -> ProviderError | None:
        """Return the error to raise at the end of the answer, or None if it succeeded."""
        return None if self.is_complete else BadStream("the stream ended without its terminal marker")

    def _residue(self) -> Any:
        """Return the residue to send back to the model together with the answer, see `Finished`."""
        return None

    def _on_text(self, text: str) -> Sequence[Event]:
        complete = self._text.feed(text)
        self._length += len(complete)
        return (TextDelta(complete),) if complete else ()

    def _on_reasoning(self, text: str) -> Sequence[Event]:
        complete = self._reasoning.feed(text)
        return (ReasoningDelta(complete),) if complete else ()
