"""Answers that a test says itself: `server.script(call("HassTurnOn", name="hall light"), words("Done."))`.

Each is one answer; `words("One moment. ") + call("HassTurnOn", name="hall light")` is one that speaks and calls.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .conversation import Answer, Call, Conversation


def words(text: str) -> Answer:
    """Return an answer in words."""
    return Answer(text=text)


def thought(text: str) -> Answer:
    """Return an answer that only thinks; a model that must not think skips it."""
    return Answer(reasoning=text)


def call(tool: str, /, **arguments: Any) -> Answer:
    """Return an answer that calls a tool, by its own name without a namespace (`intent__`)."""
    return Answer(calls=(Call(tool, arguments),))


class Script:
    """The answers to the next requests. The scripted model answers again when they are used up."""

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self.left = deque(answers)

    def answer(self, conversation: Conversation) -> Answer | None:
        """Take the next answer, with the tools' names as they are offered; None if none is left."""
        if not self.left:
            return None
        written = self.left.popleft()
        calls = (replace(each, name=conversation.tool(each.name) or each.name) for each in written.calls)
        return replace(written, calls=tuple(calls))
