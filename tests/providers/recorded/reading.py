"""The content of an answer, in a form in which the results of both readers can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Called:
    """A tool call; the id is empty if the server sent none, or used it for an earlier call."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class UsageCounts:
    """The usage of an answer: `input` includes the cached tokens, `output` the reasoning."""

    input: int = 0
    cached: int = 0
    output: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cleared: int = 0


@dataclass(frozen=True)
class Reading:
    """The content of an answer. `outcome` is "stop", "tool_calls", or the name of the error that ended it.

    An error after the terminal marker does not invalidate the answer.
    """

    text: str
    reasoning: str
    calls: tuple[Called, ...]
    usage: UsageCounts | None
    outcome: str
