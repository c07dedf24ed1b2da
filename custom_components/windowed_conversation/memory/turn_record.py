"""The record of turns: the end of each turn and of each of its requests, and at level `whole` its words.

Figures hold no words: ids, names, codes, fingerprints, tokens, times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
import math
from typing import Literal, NamedTuple

type Level = Literal["figures", "whole"]
type End = Literal["answered", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The reported usage of a request: `input` includes `cached` and `cache_written`, `output` `reasoning`.

    `cleared` is what it has dropped from the request.
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
class LateRecord:
    """A turn's record that the thread which writes makes, so that nobody else waits for that."""

    make: Callable[[], TurnRecord]


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
