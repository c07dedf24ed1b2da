"""The base of all decoders: text, reasoning, tool calls with their limits, usage, and the end of an answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import json
import re
from typing import Any
from uuid import uuid4

from ..window import ToolCall
from .encoder import derive_short_id, encode_name
from .errors import BadStream, ProviderError
from .events import (
    AnswerDone,
    Event,
    FinishReason,
    ReasoningDelta,
    Request,
    Source,
    Sources,
    TextDelta,
    ToolCallDone,
    Usage,
)
from .json_values import SurrogateJoiner, fix_surrogates, max_value_count, read_repaired_json

_MAX_CALLS = 64
# The limits of one call's arguments and of all arguments together, in characters.
_MAX_ARGUMENT_CHARS = 256 * 2**10
_MAX_TOTAL_ARGUMENT_CHARS = 2**20
# The maximum number of values in the arguments of a call, because they are parsed in the event loop.
_MAX_ARGUMENT_VALUES = 10_000

# Arguments are parsed when they are complete. Before that, they are parsed only while the characters parsed so far are
# at most this many times their length, plus a fixed allowance.
_MAX_PARSE_RATIO = 8
_FREE_PARSE_CHARS = 16 * 2**10

# The limits of the sources of an answer: their number, and the characters of a title and of a URL.
_MAX_SOURCES = 20
_MAX_TITLE_CHARS = 200
_MAX_URL_CHARS = 2000
# OpenAI adds this to the URLs that it cites, but not to the same URLs among those that it found.
_TRACKING_PATTERN = re.compile(r"[?&]utm_source=openai$")

# The limit of an answer's search results, in characters of JSON. One search has up to 43,000.
_MAX_SEARCH_CHARS = 2**20

# The known reasons for the end of an answer, in all formats and on compatible servers.
_FINISH_REASONS = (
    "stop length tool_calls content_filter function_call abort eos error insufficient_system_resource model_length "
    "completed end_turn max_tokens stop_sequence tool_use pause_turn compaction refusal model_context_window_exceeded "
    "STOP MAX_TOKENS CONTINUATION BLOCKLIST ESCALATION FUNCTION_CALL IMAGE_OTHER IMAGE_PROHIBITED_CONTENT "
    "IMAGE_RECITATION IMAGE_SAFETY LANGUAGE MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE MISSING_THOUGHT_SIGNATURE "
    "MODEL_ARMOR NO_IMAGE OTHER PROHIBITED_CONTENT RECITATION SAFETY SPII TOO_MANY_TOOL_CALLS "
    "UNEXPECTED_TOOL_CALL"
)


class ToolCalls:
    """The tool calls of one answer."""

    def __init__(self, request: Request, encode_tool_name: Callable[[str], str]) -> None:
        # The number of complete calls.
        self.count = 0
        # The number of characters of all arguments so far.
        self.argument_chars = 0
        self._used_ids = {call.id for message in request.messages for call in message.tool_calls}
        self._tool_names = {tool.name for tool in (*request.tools, *request.deferred_tools)}
        self._encode_tool_name = encode_tool_name
        self._begun_count = 0

    def begin_call(self) -> CallArguments:
        """Return the `CallArguments` of a new call. Raises `BadStream` if there are too many calls."""
        self._begun_count += 1
        if self._begun_count > _MAX_CALLS:
            raise BadStream(f"the answer has more than {_MAX_CALLS} tool calls")
        return CallArguments(self)

    def finish_call(self, call_id: str, name: str, arguments: Mapping[str, Any] | None) -> ToolCallDone:
        """Return the event of a complete call. Raises `BadStream` for an incomplete call.

        Uses the server's id, or a generated id if the server sent none or has used it before.
        """
        if arguments is None or not name:
            raise BadStream("a tool call is not whole")
        if not call_id or call_id in self._used_ids:
            call_id = derive_short_id(uuid4().hex)
        self._used_ids.add(call_id)
        self.count += 1
        if name not in self._tool_names:
            name = {self._encode_tool_name(own): own for own in self._tool_names}.get(name, name)
        return ToolCallDone(ToolCall(call_id, name, dict(arguments)))


@dataclass(slots=True)
class CallArguments:
    """The arguments of one call of `calls`, collected while their JSON arrives."""

    calls: ToolCalls
    _fragments: list[str] = field(default_factory=list)
    _char_count: int = 0
    _parsed_char_count: int = 0
    _parsed_value: dict[str, Any] | None = None

    def add_fragment(self, fragment: object) -> None:
        """Append a fragment of the JSON, or all arguments as an object. Raises `BadStream` if they are too long."""
        text = json.dumps(fragment) if isinstance(fragment, dict) else fragment or ""
        if not isinstance(text, str):
            raise TypeError("arguments are neither a text nor an object")
        self._fragments.append(text)
        self._char_count += len(text)
        self.calls.argument_chars += len(text)
        if self._char_count > _MAX_ARGUMENT_CHARS:
            raise BadStream("the arguments of a tool call are longer than 256 KB")
        if self.calls.argument_chars > _MAX_TOTAL_ARGUMENT_CHARS:
            raise BadStream("the arguments of the tool calls are longer than 1 MB")
        self._parsed_value = None

    def add_if_empty(self, arguments: object) -> None:
        """Use these arguments if none have arrived so far."""
        if not "".join(self._fragments).strip():
            self.add_fragment(arguments)

    def parse_if_complete(self) -> dict[str, Any] | None:
        """Return the arguments if they are complete already: nothing can follow a complete, non-empty JSON object."""
        if not self._fragments or not self._fragments[-1].endswith("}"):
            return None
        if self._parsed_char_count > _MAX_PARSE_RATIO * self._char_count + _FREE_PARSE_CHARS:
            return None
        self._parsed_char_count += self._char_count
        return self.parse() or None

    def parse(self) -> dict[str, Any] | None:
        """Return the arguments, or None if they are not a complete JSON object. Null and blank text mean no arguments.

        Raises `BadStream` if they have too many values.
        """
        if self._parsed_value is not None:
            return self._parsed_value
        text = "".join(self._fragments)
        if len(text) >= _MAX_ARGUMENT_VALUES and max_value_count(text.encode(errors="replace")) > _MAX_ARGUMENT_VALUES:
            raise BadStream(f"the arguments of a tool call have more than {_MAX_ARGUMENT_VALUES} values")
        try:
            value = read_repaired_json(text) if text.strip() else None
        except ValueError, RecursionError:
            return None
        if value is None:
            value = {}
        self._parsed_value = value if isinstance(value, dict) else None
        return self._parsed_value


@dataclass(slots=True)
class SearchResults:
    """The web searches of one answer: their number, the cited sources, and the other pages that were found.

    If the items to send back are too large, none is sent back.
    """

    count: int = 0
    _cited: dict[str, Source] = field(default_factory=dict)
    _found: dict[str, Source] = field(default_factory=dict)
    _chars: int = 0

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, the cited ones first."""
        return tuple({**self._cited, **self._found, **self._cited}.values())[:_MAX_SOURCES]

    @property
    def can_send_back(self) -> bool:
        """Whether there are items to send back that are small enough."""
        return 0 < self._chars <= _MAX_SEARCH_CHARS

    def add_source(self, url: object, title: object = None, *, is_cited: bool = True) -> None:
        """Add a page, unless it is known already or has no usable URL: sources are informational."""
        if not isinstance(url, str) or not url.startswith(("https://", "http://")) or len(url) > _MAX_URL_CHARS:
            return
        url, pages = _TRACKING_PATTERN.sub("", url), self._cited if is_cited else self._found
        if len(pages) < _MAX_SOURCES:
            name = " ".join(title.split())[:_MAX_TITLE_CHARS] if isinstance(title, str) else ""
            pages.setdefault(fix_surrogates(url), Source(fix_surrogates(name), fix_surrogates(url)))

    def prepare_item(self, item: object) -> Any:
        """Return a search item in the form in which it is sent back, or None if all items together are too large."""
        try:
            text = json.dumps(item)
        except RecursionError:
            text = " " * (_MAX_SEARCH_CHARS + 1)
        self._chars += len(text)
        return read_repaired_json(text) if self._chars <= _MAX_SEARCH_CHARS else None


def sanitize_finish_reason(word: str) -> str:
    """Return the server's finish reason, or `other` if it is unknown: its text may repeat the conversation."""
    return word if word in _FINISH_REASONS.split() else "other"


class Decoder(ABC):
    """Decodes one answer, event by event. `encode_tool_name` returns the name under which a tool was sent."""

    def __init__(self, request: Request, encode_tool_name: Callable[[str], str] = encode_name) -> None:
        # Whether the terminal marker has arrived.
        self.is_complete = False
        self._calls = ToolCalls(request, encode_tool_name)
        self._usage: Usage | None = None
        # The server's finish reason, see `sanitize_finish_reason`.
        self._native_reason = ""
        # The server's description of itself, see `AnswerDone.server_identity`.
        self._server = ""
        # Whether the answer is billed at the lower price of a flexible service tier.
        self._is_flexible = False
        self._text_joiner = SurrogateJoiner()
        self._reasoning_joiner = SurrogateJoiner()
        # The length of the text so far, in characters.
        self._text_chars = 0
        # The size of the residue in tokens, see `AnswerDone`.
        self._native_tokens: int | None = None
        self._searches = SearchResults()
        # Whether the text so far is empty or ends with white space.
        self._ends_blank = True
        # Whether a search has run since the last text.
        self._is_after_search = False

    @abstractmethod
    def on_event(self, event: Any) -> Iterable[Event]:
        """Return the events for one event of the server: JSON in which any value may have any type or be missing."""

    @abstractmethod
    def to_stream_events(self, answer: Any) -> Iterable[Any]:
        """Return the stream events for an answer that the server sent in one piece although a stream was requested."""

    def on_end(self) -> Iterator[Event]:
        """Yield the usage and the terminal event. Raises a `ProviderError` if the answer failed."""
        if self._usage:
            yield self._usage + Usage(searches=self._searches.count)
        if error := self._final_error():
            raise error
        if sources := self._searches.sources:
            yield Sources(sources)
        yield AnswerDone(
            FinishReason.TOOL_CALLS if self._calls.count else FinishReason.STOP,
            self._native_reason,
            # This sets `_native_tokens`.
            self._native_value(),
            self._native_tokens,
            self._server,
            # Without a call, no other request of the turn follows.
            self._turn_value() if self._calls.count and self._searches.can_send_back else None,
            is_flexible=self._is_flexible,
        )

    def _final_error(self) -> ProviderError | None:
        """Return the error to raise at the end of the answer, or None if it succeeded."""
        return None if self.is_complete else BadStream("the stream ended without its terminal marker")

    def _native_value(self) -> Any:
        """Return the residue to send back to the model together with the answer, see `AnswerDone`."""
        return None

    def _turn_value(self) -> Any:
        """Return the residue to send back within the turn, with the results of searches, see `AnswerDone`."""
        return None

    def _on_text(self, text: str) -> Sequence[Event]:
        complete = self._text_joiner.feed(text)
        if not complete:
            return ()
        complete = self._separate_from_search(complete)
        self._text_chars += len(complete)
        return (TextDelta(complete),)

    def _separate_from_search(self, text: str) -> str:
        """Return a non-empty text, with a leading space if a search separates it from the text before."""
        if self._is_after_search and not self._ends_blank and not text[0].isspace():
            text = f" {text}"
        self._is_after_search, self._ends_blank = False, text[-1].isspace()
        return text

    def _on_reasoning(self, text: str) -> Sequence[Event]:
        complete = self._reasoning_joiner.feed(text)
        return (ReasoningDelta(complete),) if complete else ()
