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
    """A finished turn: its text, person, place and time. A turn with `person=None` belongs to the home.

    `unread_language` is the language of a turn from which facts or a summary may be learned later, else None.
    """

    conversation: str
    at: float
    said: str
    answer: str
    agent: str | None = None
    person: str | None = None
    device: str | None = None
    tools: tuple[str, ...] = ()
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
class Summary:
    """A new summary of turns, to be stored as a `PastSummary`.

    `user_texts` contains the user's input in each turn, and `earlier_text` is the text of the summary that this one
    replaces. The summary covers the time from `since` to `until`, including turns that memory does not store. All turns
    belong to one person, or to the home.
    """

    conversation: str
    since: float
    until: float
    user_texts: tuple[str, ...]
    text: str
    earlier_text: str = ""
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A current fact. `confirmed` is when it was last stated, `tellings` how often it was stated.

    `search_words` are other words by which it is found, or None if nobody has written any yet. They are never shown.
    """

    id: int
    text: str
    at: float
    person: str | None
    private: bool
    source: str
    quote: str
    confirmed: float
    tellings: int
    search_words: str | None = None


# The `Fact.source` of a fact that was learned from a conversation instead of told.
LEARNED_SOURCE = "learned"


class FactTelling(NamedTuple):
    """The origin of a fact, as far as a person may know it.

    `is_shared` is True if another person stated it, too. `conversation` is the newest one in which the person or an
    unknown speaker stated it, or None.
    """

    is_shared: bool
    conversation: str | None


@dataclass(frozen=True, slots=True)
class RecallHit:
    """A search result. `private` is True for a private fact, and for every turn and summary of a person.

    `excerpt` is the part of a summary that matches the query. `tool_names` contains the names of the tools used in a
    turn, and `place` is its number in the conversation. `search_words` are those of a fact, and never shown.
    """

    kind: MemoryKind
    id: int
    text: str
    time: float
    person: str | None
    score: float
    conversation: str | None = None
    private: bool = False
    excerpt: str = ""
    tool_names: tuple[str, ...] = ()
    place: int = 0
    search_words: str = ""


@dataclass(frozen=True, slots=True)
class LostRows:
    """The ids of memories that were, or in a dry run would be, forgotten. `is_erased`: whether all bytes are erased.

    `records` are the deleted rows of the record of turns, `textless_records` the rows that lose their text but keep
    their statistics, and `matching_record_count` is how many rows in `textless_records` contained the words of the
    query. `exchange_count` is the number of affected exchanges in conversations.
    """

    facts: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    summaries: tuple[int, ...] = ()
    records: tuple[int, ...] = ()
    textless_records: tuple[int, ...] = ()
    matching_record_count: int = 0
    exchange_count: int = 0
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
    """The conditions of a request to forget, all of which must be met. If `person` is `...`, any owner matches.

    An `agent` matches turns and summaries, but no facts. With `ids` or a `query`, the selection covers all rows that
    the person may see; if `private` is False, only rows that may enter a shared window.
    """

    ids: tuple[tuple[MemoryKind, int], ...] | None = None
    person: str | EllipsisType | None = ...
    since: float | None = None
    before: float | None = None
    query: str | None = None
    kinds: tuple[MemoryKind, ...] = KINDS
    agent: str | None = None
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
    """The reported usage of a request. `input` includes `cached` and `cache_written`; `output` includes `reasoning`.

    `cleared` is the number of tokens that the provider removed from the request, `searches` that of its web searches.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cleared: int = 0
    searches: int = 0


@dataclass(frozen=True, slots=True)
class RequestContent:
    """The content of a request: the system prompt, the tool list as JSON, and the other messages, each as JSON."""

    system: str
    tools: str
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request to a model, successful or not.

    `began` is in seconds since the start of the turn; `duration`, `first_byte` and `first_token` are in seconds since
    the start of the request. `agent` is the id of the agent whose model was used, `purpose` is "answer", "summary" or
    "compaction", `parameters` is a JSON object, and `finish` is the provider's own finish reason. `prompt` and
    `tools` are fingerprints of the system prompt and the tool list, or None if there was none; `called` contains
    the names of the called tools. `error` is the class of the error, and `usage` is None if none was reported. `sent`
    is stored only at level `full`, and read only with a single turn.
    """

    agent: str
    provider: str
    model: str
    end: EndStatus
    purpose: str = "answer"
    began: float = 0.0
    duration: float = 0.0
    first_byte: float | None = None
    first_token: float | None = None
    parameters: str = "{}"
    prompt: str | None = None
    tools: str | None = None
    called: tuple[str, ...] = ()
    error: str | None = None
    finish: str | None = None
    usage: TokenUsage | None = None
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
    """A finished turn, or a summary: its route is `summary` and its `cause` the id of the preceding turn.

    `id` sorts by time. `at` is the start in seconds since the epoch; `first_token` and `duration` are in seconds since
    the start, as is `recognition`, when Home Assistant's sentences had been tried. `error` is the class of the error
    and `message` its text for the log. `answered_by` is the id of the agent that answered. `failed_tool_calls` is the
    number of tool calls that returned an error. `cost` is a decimal number of US dollars, or None if it is unknown.
    `words` are stored only at level `full`, and read only with a single turn.
    """

    id: str
    at: float
    agent: str
    route: str
    end: EndStatus
    reason: str | None = None
    conversation: str | None = None
    person: str | None = None
    device: str | None = None
    entity_id: str | None = None
    error: str | None = None
    message: str | None = None
    answered_by: str | None = None
    failures: tuple[FailureRecord, ...] = ()
    recognition: float | None = None
    first_token: float | None = None
    duration: float = 0.0
    tools: tuple[str, ...] = ()
    tool_runs: tuple[ToolRunRecord, ...] = ()
    failed_tool_calls: int = 0
    cost: str | None = None
    cause: str | None = None
    level: DetailLevel = "statistics"
    requests: tuple[RequestRecord, ...] = ()
    words: TurnText | None = None


@dataclass(frozen=True, slots=True)
class TurnCost:
    """The cost of a turn in US dollars, which became known after the record of the turn was written."""

    turn_id: str
    cost: str


@dataclass(slots=True)
class DailyUsage:
    """The sums over the recorded turns of one agent and one person on one day.

    `requests` and the tokens include summaries and other work of the agent, which are not counted as `turns`. `cost` is
    the sum of all known costs in US dollars, and `without_price` the number of turns that sent requests of unknown
    cost.
    """

    day: date
    agent: str
    person: str | None
    turns: int = 0
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    without_price: int = 0


class TurnListQuery(NamedTuple):
    """The conditions for a list of turns, all of which must be met. The newest turns come first, up to `limit`.

    `people` contains the owners whose turns are listed, and None for unknown speakers; without it, all turns are
    listed. `agents` contains the ids of the agents whose turns are listed; without it, the turns of all agents are
    listed. `tool` is the name of a tool, with or without its namespace. `after` is the id of the last turn on the
    previous page. `end` is how a turn ended.
    """

    since: float = -math.inf
    until: float = math.inf
    agent: str | None = None
    people: frozenset[str | None] | None = None
    route: str | None = None
    end: EndStatus | None = None
    tool: str | None = None
    conversation: str | None = None
    after: str | None = None
    limit: int = 50
    agents: frozenset[str] | None = None
