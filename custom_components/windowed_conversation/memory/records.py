"""The values and errors of memory and of the record of turns. Times are seconds since the epoch."""

from dataclasses import dataclass
from hashlib import sha256
import math
from types import EllipsisType
from typing import Literal, NamedTuple

type Kind = Literal["fact", "episode", "turn"]

KINDS: tuple[Kind, ...] = ("fact", "episode", "turn")


@dataclass(frozen=True, slots=True)
class PastTurn:
    """An ended turn: its words, person, place and time. With `person=None` it is the home's."""

    conversation: str
    at: float
    said: str
    answer: str
    agent: str | None = None
    person: str | None = None
    device: str | None = None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Episode:
    """A summary of a conversation's turns from `since` to `at`. Forgetting one of the turns forgets it, too."""

    conversation: str
    since: float
    at: float
    text: str
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A new summary of turns, to be stored as their episode.

    `said` has the user's words in each turn, and `earlier` is the text of the summary that this one replaces. It covers
    the time from `since` to `until`, with turns that memory does not store. All turns belong to one person, or to the
    home.
    """

    conversation: str
    since: float
    until: float
    said: tuple[str, ...]
    text: str
    earlier: str = ""
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A current fact. `confirmed` is when it was last stated, `tellings` how often."""

    id: int
    text: str
    at: float
    person: str | None
    private: bool
    source: str
    quote: str
    confirmed: float
    tellings: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """A search result. `private` is True for a private fact, and for every turn and episode of a person.

    `excerpt` is the part of an episode that matches the question. `tools` are the names of those that ran in a turn.
    """

    kind: Kind
    id: int
    text: str
    at: float
    person: str | None
    score: float
    conversation: str | None = None
    private: bool = False
    excerpt: str = ""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The ids of the memories that were forgotten, or would be. `erased` is True if no byte of it is left in the file.

    `records` are rows of the record of turns, and `wordless` those that lose their words and keep their figures;
    `recorded` counts those of them that had the words of the query. `exchanges` counts the losses of conversations.
    """

    facts: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    episodes: tuple[int, ...] = ()
    records: tuple[int, ...] = ()
    wordless: tuple[int, ...] = ()
    recorded: int = 0
    exchanges: int = 0
    erased: bool = False

    @property
    def has_any(self) -> bool:
        """Whether memory had anything."""
        return bool(self.facts or self.turns or self.episodes)

    @property
    def has_words(self) -> bool:
        """Whether the words of the query were found anywhere."""
        return bool(self.has_any or self.exchanges or self.recorded)


class Selection(NamedTuple):
    """Conditions of a request to forget, all of which must be met. If `person` is `...`, the owner does not matter.

    An `agent` has turns and episodes, but no facts. With `ids` or a `query`, the selection covers all rows that the
    person may see, and without `private` those that may enter a shared window.
    """

    ids: tuple[tuple[Kind, int], ...] | None = None
    person: str | EllipsisType | None = ...
    since: float | None = None
    before: float | None = None
    query: str | None = None
    kinds: tuple[Kind, ...] = KINDS
    agent: str | None = None
    private: bool = True

    @property
    def is_named(self) -> bool:
        """Whether it names items, not only their owner or age."""
        return self.ids is not None or self.query is not None

    @property
    def is_asked_for(self) -> bool:
        """Whether a person asked for this, as opposed to expiry."""
        return self.is_named or self.person is not ... or self.agent is not None or self.since is not None

    @property
    def span(self) -> tuple[float, float]:
        """The times from which and before which something is selected."""
        return (
            -math.inf if self.since is None else self.since,
            math.inf if self.before is None else self.before,
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The number of loaded lines that were added, were stored already, or were refused because they were forgotten."""

    added: int = 0
    duplicates: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """The numbers of current facts, turns, episodes, bytes on disk, and rows that are not indexed yet.

    `unerased`: whether bytes of deleted rows may be in the file.
    """

    facts: int
    turns: int
    episodes: int
    size: int
    unindexed: int
    unerased: bool = False


class Tombstone(NamedTuple):
    """The trace of a forgotten fact, turn or episode: the time at which it came to be, and no words."""

    kind: Kind
    id: int
    at: float


class MemoryFull(ValueError):
    """The limit of facts is reached. Nothing was added, and no current fact is dropped for a new one."""


class BadLine(ValueError):
    """A line that cannot be loaded; nothing was loaded. `line` is counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is not one that memory exports")
        self.line = line


type Level = Literal["figures", "whole"]
type End = Literal["answered", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The reported usage of a request: `input` includes `cached` and `cache_written`, `output` `reasoning`.

    `cleared` are the tokens that the provider has dropped from the request.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cleared: int = 0


@dataclass(frozen=True, slots=True)
class Sent:
    """The content of a request: the system prompt, the tool list as JSON, and the other messages, each as JSON."""

    system: str
    tools: str
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request to a model, however it ended.

    `began` is in seconds from the start of its turn, `duration` and `first_token` from its own. `agent` is the id of
    the agent whose model it is, `purpose` is `answer`, `summary` or `compaction`, `parameters` a JSON object, `finish`
    the provider's own word. `prompt` and `tools` are fingerprints of the system prompt and the tool list, None if there
    was none; `called` has the names of the tools called. `error` is the class of the error, `usage` None if nothing was
    reported. `sent` is only kept at level `whole`, and only read with a single turn.
    """

    agent: str
    provider: str
    model: str
    end: End
    purpose: str = "answer"
    began: float = 0.0
    duration: float = 0.0
    first_token: float | None = None
    parameters: str = "{}"
    prompt: str | None = None
    tools: str | None = None
    called: tuple[str, ...] = ()
    error: str | None = None
    finish: str | None = None
    usage: Tokens | None = None
    sent: Sent | None = None


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """An agent that was asked before the one that answered, by its id, and the class of its error."""

    agent: str
    error: str


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A tool call: its arguments as JSON, and the result as it was sent, or None if it was not."""

    name: str
    arguments: str
    result: str | None = None


@dataclass(frozen=True, slots=True)
class TurnWords:
    """The words of a turn: the input, the answer, and the tool calls."""

    said: str
    answer: str
    calls: tuple[CallRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn that ended, or a summary, whose route is `summary` and whose `cause` is the id of the turn before it.

    `id` sorts by time. `at` is when it began, in seconds since the epoch; `first_token` and `duration` are in seconds
    from then. `error` is the class of the error and `message` its text for the log. `answered_by` is the id of the
    agent that answered. `failed_tool_calls` is how many tool calls returned an error. `cost` is a decimal number of US
    dollars, or None if it is unknown. `words` are only kept at level `whole`, and only read with a single turn.
    """

    id: str
    at: float
    agent: str
    route: str
    end: End
    reason: str | None = None
    conversation: str | None = None
    person: str | None = None
    device: str | None = None
    entity_id: str | None = None
    error: str | None = None
    message: str | None = None
    answered_by: str | None = None
    failures: tuple[FailureRecord, ...] = ()
    first_token: float | None = None
    duration: float = 0.0
    tools: tuple[str, ...] = ()
    failed_tool_calls: int = 0
    cost: str | None = None
    cause: str | None = None
    level: Level = "figures"
    requests: tuple[RequestRecord, ...] = ()
    words: TurnWords | None = None


@dataclass(frozen=True, slots=True)
class TurnCost:
    """The cost of a turn in US dollars, known after its record was written."""

    turn: str
    cost: str


class TurnListing(NamedTuple):
    """The conditions of a list of turns: all must be met. The newest come first, up to `limit`.

    `people` has the owners among whom to list, None among them for unknown speakers; without it everybody's are listed.
    `agents` has the ids of the agents among which to list, all without it.
    `tool` is the name of a tool, with its namespace or without. `after` is the id of the last turn of the page before.
    `error` is the class of an error, `end` how a turn ended.
    """

    since: float = -math.inf
    until: float = math.inf
    agent: str | None = None
    people: frozenset[str | None] | None = None
    route: str | None = None
    end: End | None = None
    error: str | None = None
    tool: str | None = None
    conversation: str | None = None
    after: str | None = None
    limit: int = 50
    agents: frozenset[str] | None = None


def fingerprint(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits: equal texts have equal ones."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
