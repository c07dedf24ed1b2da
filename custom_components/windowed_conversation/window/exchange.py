"""Exchanges: a user message and everything up to the next one, the atom of eviction.

What makes one valid is decided here; which of them are still sent is the window's business.
"""

from dataclasses import replace
from typing import NamedTuple

from .errors import DuplicateToolCall, InvalidMessage, InvalidTag, UnansweredToolCalls, UnknownToolCall
from .messages import Message, Role, ToolCall
from .tags import AUTOMATIC, NO_TAGS


class Exchange(NamedTuple):
    """A closed exchange; `tags` are its own and those of its messages, `tokens` is the sum over its messages.

    `number` is its identity in its window, counted from 1 in the order in which exchanges were closed, 0 at rest.
    `whole_results` is True while it has tool results that a stub may yet replace.
    """

    messages: tuple[Message, ...]
    tags: frozenset[str]
    tokens: int
    number: int = 0
    whole_results: bool = False

    def numbered(self, number: int) -> Exchange:
        """Return the exchange with another number, its tool results as open to stubs as any."""
        has_results = any(message.role == Role.TOOL for message in self.messages)
        return self._replace(number=number, whole_results=has_results)

    def retagged(self, added: frozenset[str], removed: frozenset[str]) -> Exchange:
        """Return the exchange with other tags, on its messages too; raises `InvalidTag` for automatic ones removed."""
        if removed & AUTOMATIC:
            raise InvalidTag(f"the tags {sorted(AUTOMATIC)} say what a message is, and stay")
        messages = tuple(
            replace(message, tags=message.tags - removed) if message.tags & removed else message
            for message in self.messages
        )
        return self._replace(messages=messages, tags=self.tags - removed | added)


class OpenExchange:
    """The exchange that is still being written: each call gets its result before the assistant speaks again.

    `check` comes before anything is changed; `append` trusts that it has been asked.
    """

    __slots__ = ("_call_ids", "_unanswered", "has_results", "messages", "tags", "tokens")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.tags = NO_TAGS
        self.tokens = 0
        self.has_results = False
        self._call_ids: frozenset[str] = frozenset()
        self._unanswered: frozenset[str] = frozenset()

    def check(self, message: Message) -> None:
        """Raise `InvalidMessage` when the message cannot come next."""
        if message.role == Role.TOOL:
            self._check_result(message)
            return
        if message.role != (Role.ASSISTANT if self.messages else Role.USER):
            raise InvalidMessage(
                f"a message of role {message.role} cannot stand here: an exchange is a user message, "
                "then the assistant's messages and its tool results"
            )
        self.check_answered()
        if message.tool_calls:
            self._check_calls(message)

    def check_answered(self) -> None:
        """Raise `UnansweredToolCalls` while a call has no result."""
        if self._unanswered:
            raise UnansweredToolCalls(f"no result yet for the calls {sorted(self._unanswered)}")

    def append(self, message: Message) -> None:
        """Take in a message that is counted."""
        self.messages.append(message)
        self.tokens += message.tokens or 0
        if message.tool_calls:
            self._unanswered = frozenset(call.id for call in message.tool_calls)
            self._call_ids |= self._unanswered
        elif message.role == Role.TOOL:
            self._unanswered -= {message.tool_call_id}
            self.has_results = True

    def closed(self, number: int = 0) -> Exchange:
        """Return the whole exchange; raises `UnansweredToolCalls`."""
        self.check_answered()
        return Exchange(tuple(self.messages), self.tags, self.tokens, number, self.has_results)

    def _check_result(self, message: Message) -> None:
        if message.tool_calls:
            raise InvalidMessage("a tool result calls no tools")
        if message.tool_call_id not in self._unanswered:
            raise UnknownToolCall(f"no call without a result has the id {message.tool_call_id!r}")

    def _check_calls(self, message: Message) -> None:
        if message.role != Role.ASSISTANT:
            raise InvalidMessage(f"a message of role {message.role} calls no tools")
        known = set(self._call_ids)
        for call in message.tool_calls:
            self._check_call(call, known)
            known.add(call.id)

    @staticmethod
    def _check_call(call: ToolCall, known: set[str]) -> None:
        if not call.id:
            raise InvalidMessage("a tool call without an id")
        if call.id in known:
            raise DuplicateToolCall(f"the call id {call.id!r} came before in this exchange")
