"""What a turn needs of the world, as protocols. `bridge` fills them in with Home Assistant."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from ..providers.events import Provider, ReasoningDelta, Request, TextDelta, ToolCallDone, ToolSchema, Usage
from ..window import Message
from .budget import Budget

type Spoken = TextDelta | ReasoningDelta | ToolCallDone

# Takes in what a request has cost by the provider's account, before its answer enters the window.
type OnUsage = Callable[[Request, Usage], None]


class Reply(Protocol):
    """Where the answer goes: to the user's ear while it is still being written."""

    def add(self, deltas: AsyncIterator[Spoken]) -> AsyncIterator[Message]:
        """Pass one assistant message on, run its tool calls, and yield the message and the results.

        A call starts when its delta arrives, so calls of one message run in parallel. A tool that fails yields a
        result that says so.
        """
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """An input as the model gets it.

    `system` is the stable part, `prefix` the volatile context that is frozen before the user's words, and `done` what
    is said when tools ran and the model found no words. `budget` is what may be sent, and exchanges with a
    tag in `left_out` are not.
    """

    provider: Provider
    model: str
    system: str
    prefix: str
    tools: tuple[ToolSchema, ...]
    done: str
    budget: Budget
    left_out: frozenset[str] = frozenset()

    def request(self, messages: tuple[Message, ...], tools: tuple[ToolSchema, ...]) -> Request:
        """Return the request of these messages; all requests of a conversation begin alike."""
        return Request(self.model, messages, tools)


class LocalAnswers(Protocol):
    """What can answer without a model."""

    async def answer(self) -> tuple[Message, ...] | None:
        """Act on the input and return what was called and said, None when nothing local understood it.

        Raises `LocalAnswerFailed` when it was understood and could not be done.
        """
        ...


class ModelAccess(Protocol):
    """What can put the input to a model."""

    async def question(self) -> Question:
        """Prepare the request; raises `TurnError`."""
        ...
