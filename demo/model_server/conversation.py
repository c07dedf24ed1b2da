"""The content of a request and of its answer, in types that do not depend on a wire format.

The skills read a `Conversation` and return an `Answer`. Each format encodes them in its own way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import cycle
import re
from typing import Any

from .media import Attachment

_CONTEXT_PATTERN = re.compile(
    r"\A\[CONTEXT:(?P<facts>.*?)(?:; memory, quoted: (?P<memory>.*?))?\]\s*?\n\s*?\n(?P<said>.*)\Z", re.DOTALL
)


class AnswerFinish(StrEnum):
    """The reason why an answer ended, apart from the calls in it."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    WINDOW_EXCEEDED = "window_exceeded"
    MALFORMED_CALL = "malformed_call"
    PROMPT_BLOCKED = "prompt_blocked"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the request. `role` is system, user, assistant or tool."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    attachments: tuple[Attachment, ...] = ()

    @property
    def plain_text(self) -> str:
        """The text without the context line before it, with collapsed white space."""
        found = _CONTEXT_PATTERN.match(self.text)
        return " ".join((found["said"] if found else self.text).split())

    @property
    def context(self) -> dict[str, str]:
        """The values of the context line by lower-case key: `[CONTEXT: time: Monday 2026-11-23 08:00; area: Attic]`."""
        found = _CONTEXT_PATTERN.match(self.text)
        pairs = (fact.partition(":") for fact in found["facts"].split(";")) if found else ()
        return {key.strip().lower(): value.strip() for key, _, value in pairs}

    @property
    def memory_quotes(self) -> str:
        """The quotes from memory in the context line, or an empty text."""
        found = _CONTEXT_PATTERN.match(self.text)
        return (found["memory"] or "") if found else ""


@dataclass(frozen=True, slots=True)
class Tool:
    """An offered tool: `properties` are the schemas of its arguments by name, `required` the names that it needs."""

    name: str
    description: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool call and the text of its result."""

    call: Call
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything that the model knows: the messages of the request and the offered tools.

    `can_search` means that it may search the web, `is_resumed` that the request sends back a paused answer.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    can_search: bool = False
    is_resumed: bool = False

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the offered tools."""
        return tuple(tool.name for tool in self.tools)

    @property
    def newest_user_turn(self) -> Turn:
        """The newest user message, or an empty one if there is none."""
        return next((turn for turn in self.turns[len(self.earlier_turns) :] if turn.role == "user"), Turn("user", ""))

    @property
    def earlier_turns(self) -> tuple[Turn, ...]:
        """The messages before the newest user message. Pictures that follow tool results belong to these results."""
        said = [
            at
            for at, turn in enumerate(self.turns)
            if turn.role == "user" and not (turn.attachments and at and self.turns[at - 1].role == "tool")
        ]
        return self.turns[: said[-1]] if said else ()

    @property
    def seen_pictures(self) -> tuple[Attachment, ...]:
        """The pictures that follow tool results since the newest user message."""
        since = self.turns[len(self.earlier_turns) + 1 :]
        return tuple(picture for turn in since if turn.role == "user" for picture in turn.attachments)

    @property
    def last_assistant_text(self) -> str:
        """The text of the last assistant message before the newest user message."""
        spoken = (turn.text for turn in reversed(self.earlier_turns) if turn.role == "assistant" and turn.text)
        return next(spoken, "")

    @property
    def tool_rounds(self) -> list[list[ToolResult]]:
        """The tool results since the newest user message: one list per answer that called tools."""
        since = self.turns[len(self.earlier_turns) + 1 :]
        results = {turn.call_id: turn.text for turn in since if turn.role == "tool"}
        return [[ToolResult(call, results.get(call.id, "")) for call in turn.calls] for turn in since if turn.calls]

    def find_tool(self, suffix: str) -> str | None:
        """Return the full name of the offered tool with this name after an optional namespace ("intent__"), or None."""
        return next((name for name in self.tool_names if name.split("__")[-1] == suffix), None)


@dataclass(frozen=True, slots=True)
class Page:
    """A web page that a search has found."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class WebSearch:
    """A web search before an answer's text; `introduction` is what the model says before it.

    A `paused` answer ends after the search, and goes on when it is sent back. Only Anthropic does this.
    """

    introduction: str
    queries: tuple[str, ...]
    pages: tuple[Page, ...]
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The content of the model's answer."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = field(default=())
    finish: AnswerFinish = AnswerFinish.STOP
    refusal: str = ""
    search: WebSearch | None = None

    @property
    def cited_sentences(self) -> list[tuple[str, Page]]:
        """The sentences of the text, each with the page that it cites; empty without a search."""
        if self.search is None:
            return []
        sentences = re.findall(r"\S[^.!?]*[.!?]*\s*", self.text)
        return list(zip(sentences, cycle(self.search.pages), strict=False))

    def __add__(self, other: Answer) -> Answer:
        """Return one answer with the thoughts, text and calls of both."""
        thought, said = self.reasoning + other.reasoning, self.text + other.text
        return replace(self, reasoning=thought, text=said, calls=self.calls + other.calls)
