"""The values and errors of memory. Times are seconds since the epoch."""

from dataclasses import dataclass, field
import math
from types import EllipsisType
from typing import Literal, NamedTuple

type MemoryKind = Literal["fact", "summary", "turn"]

KINDS: tuple[MemoryKind, ...] = ("fact", "summary", "turn")


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A finished turn: its text, person, place and time. A turn with `person=None` belongs to the home."""

    conversation: str
    at: float
    said: str
    answer: str
    agent: str | None = None
    person: str | None = None
    device: str | None = None
    tools: tuple[str, ...] = ()
    # The language of a turn that is read once its conversation has ended, or None if it is not read.
    unread_language: str | None = None


@dataclass(frozen=True, slots=True)
class PastSummary:
    """A summary of a conversation's turns from `since` to `at`. If one of the turns is forgotten, so is the summary."""

    conversation: str
    since: float
    at: float
    text: str
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Summary(PastSummary):
    """A new summary of turns, also of some that memory does not store. All belong to one person, or to the home."""

    # The user's input in each turn.
    user_texts: tuple[str, ...] = ()
    # The text of the summary that this one replaces.
    earlier_text: str = ""


@dataclass(frozen=True, slots=True)
class FactStatement:
    """A fact to store, either stated by a user or exported."""

    text: str
    person: str | None
    private: bool
    source: str
    quote: str
    at: float
    # When it was last stated.
    confirmed: float
    # How often it was stated.
    tellings: int = 1
    # Other words by which it is found, or None if nobody has written any yet. They are never shown.
    search_words: str | None = None
    # The turn in which its owner mentioned it, or None once they confirmed it. Only a suggestion has one.
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Fact(FactStatement):
    """A current fact."""

    id: int = field(kw_only=True)


class Replacement(NamedTuple):
    """A current fact and the fact of the same owner that it replaced."""

    id: int
    text: str
    person: str | None
    replaced_id: int
    replaced_text: str


@dataclass(frozen=True, slots=True)
class RecallHit:
    """A search result."""

    kind: MemoryKind
    id: int
    text: str
    time: float
    person: str | None
    score: float
    conversation: str | None = None
    # True for a private fact, and for every turn and summary of a person.
    private: bool = False
    # The part of a summary that matches the query.
    excerpt: str = ""
    # The names of the tools used in a turn.
    tool_names: tuple[str, ...] = ()
    # The number of a turn in its conversation.
    place: int = 0
    # The search words of a fact, which are never shown.
    search_words: str = ""
    # Whether a fact was only mentioned, and its owner has not confirmed it.
    is_suggestion: bool = False


@dataclass(frozen=True, slots=True)
class LostRows:
    """The ids of memories that were, or in a dry run would be, forgotten."""

    facts: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    summaries: tuple[int, ...] = ()
    # The deleted rows of the record of turns.
    records: tuple[int, ...] = ()
    # The rows of the record of turns that lose their text but keep their statistics.
    textless_records: tuple[int, ...] = ()
    # The number of rows in `textless_records` that contained the words of the query.
    matching_record_count: int = 0
    # The number of affected exchanges in conversations.
    exchange_count: int = 0
    # Whether all bytes are erased.
    is_erased: bool = False

    @property
    def has_memories(self) -> bool:
        """Whether memory contained anything to forget."""
        return bool(self.facts or self.turns or self.summaries)

    @property
    def has_matches(self) -> bool:
        """Whether the words of the query were found in memory, conversations or the record of turns."""
        return bool(self.has_memories or self.exchange_count or self.matching_record_count)


class ForgetConditions(NamedTuple):
    """The conditions of a request to forget, all of which must be met.

    With ids or a query, the selection covers all rows that the person may see.
    """

    ids: tuple[tuple[MemoryKind, int], ...] | None = None
    # Any owner matches `...`.
    person: str | EllipsisType | None = ...
    since: float | None = None
    # Exclusive, unlike `since`.
    before: float | None = None
    query: str | None = None
    kinds: tuple[MemoryKind, ...] = KINDS
    # Matches turns and summaries, but no facts.
    agent: str | None = None
    # If False, the selection covers only rows that may enter a shared window.
    private: bool = True

    @property
    def is_explicit(self) -> bool:
        """Whether the request selects items by id or query, not only by owner or age."""
        return self.ids is not None or self.query is not None

    @property
    def is_requested(self) -> bool:
        """Whether a person requested this, as opposed to expiry."""
        return self.is_explicit or self.person is not ... or self.agent is not None or self.since is not None

    @property
    def time_span(self) -> tuple[float, float]:
        """The start (inclusive) and the end (exclusive) of the selected time span."""
        return (
            -math.inf if self.since is None else self.since,
            math.inf if self.before is None else self.before,
        )


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """The numbers of loaded lines that were added, were already stored, or were refused because they were forgotten."""

    added_count: int = 0
    duplicate_count: int = 0
    refused_count: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """The numbers of current facts, turns, summaries, bytes on disk, and rows that are not indexed yet.

    `unerased` is True if the file may contain bytes of deleted rows.
    """

    facts: int
    turns: int
    summaries: int
    size: int
    unindexed: int
    unerased: bool = False


class Tombstone(NamedTuple):
    """The trace of a forgotten fact, turn or summary: its kind, id and time, but no text."""

    kind: MemoryKind
    id: int
    time: float


class MemoryFull(ValueError):
    """The limit of facts is reached. Nothing was added, because no current fact is deleted for a new one."""


class BadLine(ValueError):
    """A line that cannot be loaded. Nothing was loaded. `line_number` is the line number, starting at 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is not one that memory exports")
        self.line_number = line
