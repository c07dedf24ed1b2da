"""The values and errors of memory and of the record of turns. Times are seconds since the epoch."""

from dataclasses import dataclass
from datetime import date
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
class Summary:
    """A new summary of turns, to be stored as a `PastSummary`. All turns belong to one person, or to the home."""

    conversation: str
    # The summary covers the time from here to `until`, including turns that memory does not store.
    since: float
    until: float
    # The user's input in each turn.
    user_texts: tuple[str, ...]
    text: str
    # The text of the summary that this one replaces.
    earlier_text: str = ""
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A current fact."""

    id: int
    text: str
    at: float
    person: str | None
    private: bool
    source: str
    quote: str
    # When it was last stated.
    confirmed: float
    # How often it was stated.
    tellings: int
    # Other words by which it is found, or None if nobody has written any yet. They are never shown.
    search_words: str | None = None


class FactTelling(NamedTuple):
    """The origin of a fact, as far as a person may know it."""

    # Whether another person stated it, too.
    is_shared: bool
    # The newest one in which the person or an unknown speaker stated it, or None.
    conversation: str | None


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


type DetailLevel = Literal["statistics", "full"]
type EndStatus = Literal["answered", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The reported usage of a request."""

    # Includes `cached` and `cache_written`.
    input: int = 0
    cached: int = 0
    # Includes `reasoning`.
    output: int = 0
    cache_written: int = 0
    reasoning: int = 0
    # The number of tokens that the provider removed from the request.
    cleared: int = 0
    # The number of the provider's web searches.
    searches: int = 0


@dataclass(frozen=True, slots=True)
class RequestContent:
    """The content of a request: the system prompt, the tool list as JSON, and the other messages, each as JSON."""

    system: str
    tools: str
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request to a model, successful or not."""

    # The id of the agent whose model was used.
    agent: str
    provider: str
    model: str
    end: EndStatus
    # "answer", "summary" or "compaction".
    purpose: str = "answer"
    # In seconds since the start of the turn.
    began: float = 0.0
    # In seconds.
    duration: float = 0.0
    # In seconds since the start of the request.
    first_byte: float | None = None
    # In seconds since the start of the request.
    first_token: float | None = None
    # A JSON object.
    parameters: str = "{}"
    # The fingerprint of the system prompt, or None if there was none.
    prompt: str | None = None
    # The fingerprint of the tool list, or None if there was none.
    tools: str | None = None
    # The names of the called tools.
    called: tuple[str, ...] = ()
    # The class of the error.
    error: str | None = None
    # The provider's own finish reason.
    finish: str | None = None
    # None if none was reported.
    usage: TokenUsage | None = None
    # Stored only at level "full", and read only with a single turn.
    sent: RequestContent | None = None


@dataclass(frozen=True, slots=True)
class ToolRunRecord:
    """A tool that was run: its name, and its start and duration in seconds, from the start of the turn."""

    name: str
    began: float
    duration: float


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """An agent that failed before another one answered: its id, and the class of the error."""

    agent: str
    error: str


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A tool call: its arguments as JSON, and the result as it was sent, or None if it was not sent."""

    name: str
    arguments: str
    result: str | None = None


@dataclass(frozen=True, slots=True)
class TurnText:
    """The text of a turn: the user's input, the answer, and the tool calls."""

    said: str
    answer: str
    calls: tuple[CallRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A finished turn, or a summary, whose route is "summary"."""

    # Sorts by time.
    id: str
    # The start, in seconds since the epoch.
    at: float
    agent: str
    route: str
    end: EndStatus
    reason: str | None = None
    conversation: str | None = None
    person: str | None = None
    device: str | None = None
    entity_id: str | None = None
    # The class of the error.
    error: str | None = None
    # The text of the error for the log.
    message: str | None = None
    # The id of the agent that answered.
    answered_by: str | None = None
    failures: tuple[FailureRecord, ...] = ()
    # When Home Assistant's sentences had been tried, in seconds since the start.
    recognition: float | None = None
    # In seconds since the start.
    first_token: float | None = None
    # In seconds.
    duration: float = 0.0
    tools: tuple[str, ...] = ()
    tool_runs: tuple[ToolRunRecord, ...] = ()
    # The number of tool calls that returned an error.
    failed_tool_calls: int = 0
    # A decimal number of US dollars, or None if it is unknown.
    cost: str | None = None
    # The id of the turn that precedes a summary.
    cause: str | None = None
    level: DetailLevel = "statistics"
    requests: tuple[RequestRecord, ...] = ()
    # Stored only at level "full", and read only with a single turn.
    words: TurnText | None = None


@dataclass(frozen=True, slots=True)
class TurnCost:
    """The cost of a turn in US dollars, which became known after the record of the turn was written."""

    turn_id: str
    cost: str


@dataclass(slots=True)
class DailyUsage:
    """The sums over the recorded turns of one agent and one person on one day."""

    day: date
    agent: str
    person: str | None
    turns: int = 0
    # The requests and their tokens include summaries and other work of the agent, which are not counted as `turns`.
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    # The sum of all known costs in US dollars.
    cost: float = 0.0
    # The number of turns that sent requests of unknown cost.
    without_price: int = 0


class TurnListQuery(NamedTuple):
    """The conditions for a list of turns, all of which must be met. The newest turns come first."""

    since: float = -math.inf
    until: float = math.inf
    agent: str | None = None
    # The owners whose turns are listed, and None for unknown speakers. Without it, all turns are listed.
    people: frozenset[str | None] | None = None
    route: str | None = None
    # How a turn ended.
    end: EndStatus | None = None
    # The name of a tool, with or without its namespace.
    tool: str | None = None
    conversation: str | None = None
    # The id of the last turn on the previous page.
    after: str | None = None
    limit: int = 50
    # The ids of the agents whose turns are listed. Without it, the turns of all agents are listed.
    agents: frozenset[str] | None = None
