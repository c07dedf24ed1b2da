"""The reply, through which a turn passes an answer to the user and runs its tool calls."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from ..providers import ReasoningDelta, TextDelta, ToolCallDone
from ..window import Message

type ReplyDelta = TextDelta | ReasoningDelta | ToolCallDone


class Reply(Protocol):
    """Receives an answer while it is still being written."""

    @property
    def failed_call_count(self) -> int:
        """The number of tool calls so far that have returned an error."""
        ...

    def add_deltas(self, deltas: AsyncIterator[ReplyDelta]) -> AsyncGenerator[Message]:
        """Forward the deltas of one assistant message, run its tool calls, and yield the message and the results.

        Each call starts when its delta arrives, so the calls of one message run in parallel. If a tool fails, its
        result contains the error.
        """
        ...
