"""Answers defined by a test: `ModelServer.script(call("HassTurnOn", name="hall light"), words("Done."))`.

Each argument is one answer; `words("One moment. ") + call("HassTurnOn", name="hall light")` both speaks and calls.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .conversation import Answer, Call, Conversation
from .web_search import build_search_answer


def words(text: str) -> Answer:
    """Return an answer that consists of text."""
    return Answer(text=text)


def thought(text: str) -> Answer:
    """Return an answer that consists of thoughts; a model that must not think skips it."""
    return Answer(reasoning=text)


def call(tool: str, /, **arguments: Any) -> Answer:
    """Return an answer that calls the tool with this name, which has no namespace ("intent__")."""
    return Answer(calls=(Call(tool, arguments),))


def searched(topic: str, text: str = "", *, paused: bool = False) -> Answer:
    """Return an answer that searches the web before its text; a paused one is followed by the rest in the script."""
    return build_search_answer(topic, text, paused=paused)


class AnswerScript:
    """The answers to the next requests. When all are used, the scripted model's rules answer again."""

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self.remaining_answers = deque(answers)

    def pop_answer(self, conversation: Conversation) -> Answer | None:
        """Return the next answer with the tool names as offered, and remove it; None if there are no more answers."""
        if not self.remaining_answers:
            return None
        written = self.remaining_answers.popleft()
        calls = (replace(each, name=conversation.find_tool(each.name) or each.name) for each in written.calls)
        return replace(written, calls=tuple(calls))
