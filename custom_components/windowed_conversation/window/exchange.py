"""Exchanges (a user message and everything up to the next one, the atom of eviction) and snapshots of a window."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
import json
from typing import NamedTuple

from .errors import DuplicateToolCall, InvalidMessage, InvalidTag, UnansweredToolCalls, UnknownToolCall
from .messages import AUTOMATIC_TAGS, Message, NativeData, Role, ToolCall, join_tags
from .tokens import TokenCounter, count_message_tokens

# The content of a missing tool result. It is so short that a stub never replaces it.
INTERRUPTED_CALL = "[Interrupted before the result came: this call may or may not have been carried out.]"
# The last line of an interrupted answer.
INTERRUPTED_ANSWER = "[The answer was interrupted here.]"

_NO_IDS = frozenset[str]()

# An upper bound for residue in any encoding.
_MAX_CHARS_PER_TOKEN = 16


class Exchange(NamedTuple):
    """A closed exchange: a user message and everything up to the next one."""

    messages: tuple[Message, ...]
    # The tags of the exchange and of its messages.
    tags: frozenset[str]
    # The sum over the messages.
    tokens: int
    # Identifies it in its window. Numbers start at 1 in the order of closing. An exchange outside a window has 0.
    number: int = 0
    # Whether it has tool results that stubs may still replace.
    has_full_results: bool = False
    # The ids of facts and turns that memory recalled for its answer.
    sources: frozenset[str] = _NO_IDS

    def with_number(self, number: int) -> Exchange:
        """Return the exchange with another number. Sets `has_full_results` if it has any tool result."""
        has_results = any(message.role == Role.TOOL for message in self.messages)
        return self._replace(number=number, has_full_results=has_results)

    def with_tags(self, added: frozenset[str], removed: frozenset[str]) -> Exchange:
        """Return the exchange with changed tags. Raises `InvalidTag` if an automatic tag would be removed."""
        if removed & AUTOMATIC_TAGS:
            raise InvalidTag(f"the tags {sorted(AUTOMATIC_TAGS)} say what a message is, and stay")
        messages = tuple(
            replace(message, tags=message.tags - removed) if message.tags & removed else message
            for message in self.messages
        )
        return self._replace(messages=messages, tags=self.tags - removed | added)


class OpenExchange:
    """An exchange that is still being written. Every tool call must have a result before the next assistant message.

    It must begin with a user message; `InvalidMessage` is raised for any other.
    """

    __slots__ = (
        "_pending_call_ids",
        "call_ids",
        "messages",
        "round_starts",
        "sources",
        "stubbed_rounds",
        "tags",
        "tokens",
    )

    def __init__(self, question: Message) -> None:
        if question.role is not Role.USER or question.tool_calls:
            raise InvalidMessage("an exchange begins with a user message, which calls no tools")
        self.messages = [question]
        self.tags = question.tags
        self.tokens = question.tokens or 0
        # The indexes at which the tool rounds begin, and the number of rounds whose results were replaced by stubs.
        self.round_starts: list[int] = []
        self.stubbed_rounds = 0
        self.call_ids = self._pending_call_ids = self.sources = _NO_IDS

    @property
    def newest_round_start(self) -> int:
        """The index at which the newest tool round begins, 0 if there is none."""
        return self.round_starts[-1] if self.round_starts else 0

    def append(self, message: Message) -> None:
        """Append a counted message. Raises `InvalidMessage` if it is not allowed at this point."""
        role, calls = message.role, message.tool_calls
        if role is Role.TOOL:
            if calls:
                raise InvalidMessage("a tool result calls no tools")
            if message.tool_call_id not in self._pending_call_ids:
                raise UnknownToolCall(f"no call without a result has the id {message.tool_call_id!r}")
            self._pending_call_ids -= {message.tool_call_id}
        elif role is not Role.ASSISTANT:
            raise InvalidMessage(
                f"a message of role {role} cannot stand here: an exchange is a user message, "
                "then the assistant's messages and its tool results"
            )
        elif self._pending_call_ids:
            raise self._build_unanswered_error()
        elif calls:
            self._add_calls(calls)
        self.messages.append(message)
        self.tags = join_tags(self.tags, message.tags)
        self.tokens += message.tokens or 0

    def to_exchange(self, number: int = 0) -> Exchange:
        """Return the exchange in its closed form. Raises `UnansweredToolCalls` if a tool call has no result."""
        if self._pending_call_ids:
            raise self._build_unanswered_error()
        # The same as `Exchange(...)` without its Python-level constructor, which would take longer than all the rest.
        fields = tuple(self.messages), self.tags, self.tokens, number, bool(self.call_ids), self.sources
        return tuple.__new__(Exchange, fields)

    def iter_closing_messages(self, text: str, calls: Iterable[ToolCall]) -> Iterator[Message]:
        """Yield the messages that complete the exchange: results for all tool calls, then the interrupted answer.

        `text` and `calls` belong to the answer that was being written. Calls without an id, or with the id of an
        earlier call, are skipped.
        """
        newest = self.messages[self.newest_round_start].tool_calls
        yield from (_build_interrupted_result(call) for call in newest if call.id in self._pending_call_ids)
        acceptable: dict[str, ToolCall] = {}
        for call in calls:
            if call.id and call.id not in self.call_ids:
                acceptable.setdefault(call.id, call)
        if acceptable:
            yield Message.assistant(tool_calls=tuple(acceptable.values()))
            yield from map(_build_interrupted_result, acceptable.values())
        yield Message.assistant("\n".join(filter(None, (text.rstrip(), INTERRUPTED_ANSWER))))

    def _build_unanswered_error(self) -> UnansweredToolCalls:
        return UnansweredToolCalls(f"no result yet for the calls {sorted(self._pending_call_ids)}")

    def _add_calls(self, calls: Iterable[ToolCall]) -> None:
        called = set[str]()
        for call in calls:
            if not call.id:
                raise InvalidMessage("a tool call without an id")
            if call.id in called or call.id in self.call_ids:
                raise DuplicateToolCall(f"the call id {call.id!r} came before in this exchange")
            called.add(call.id)
        self.round_starts.append(len(self.messages))
        self._pending_call_ids = frozenset(called)
        self.call_ids |= called


def _build_interrupted_result(call: ToolCall) -> Message:
    return Message.tool(call.id, call.name, INTERRUPTED_CALL)


class EvictionCounts(NamedTuple):
    """Counts of evicted exchanges, messages and tokens since the window began, and the number of trims."""

    exchanges: int = 0
    messages: int = 0
    tokens: int = 0
    trims: int = 0

    def after_trim(self, exchanges: int, messages: int, tokens: int) -> EvictionCounts:
        """Return the counts after one more trim."""
        return EvictionCounts(
            self.exchanges + exchanges, self.messages + messages, self.tokens + tokens, self.trims + 1
        )


class Snapshot(NamedTuple):
    """A window between two turns. It is immutable, so that another thread can read it.

    `pending_exchanges` are evicted exchanges that wait for a summary. They are not restored with a window.
    """

    conversation_id: str
    system: Message | None = None
    exchanges: tuple[Exchange, ...] = ()
    evicted: EvictionCounts = EvictionCounts()
    pending_exchanges: tuple[Exchange, ...] = ()


def recount_exchange(exchange: Exchange, counter: TokenCounter) -> Exchange:
    """Return the exchange with the tokens of its messages counted again."""
    messages = tuple(recount_message(message, counter) for message in exchange.messages)
    return exchange._replace(messages=messages, tokens=sum(message.tokens or 0 for message in messages))


def recount_message(message: Message, counter: TokenCounter) -> Message:
    """Return the message with its tokens counted again. The tokens of its residue are limited by its size."""
    counted = replace(message, native=message.native and _limit_native_tokens(message.native))
    return replace(counted, tokens=count_message_tokens(counted, counter))


def _limit_native_tokens(native: NativeData) -> NativeData:
    characters = len(json.dumps(native.value))
    return replace(native, tokens=max(min(native.tokens, characters), characters // _MAX_CHARS_PER_TOKEN))
