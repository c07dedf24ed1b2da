"""What a provider is asked and what its stream yields, in words that no provider owns.

How each wire format writes a request and reads its answer lives in that format's module.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ..window import Message, ToolCall


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool that is offered to the model; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the window's messages as they are (system first) and the tools in the order they are sent."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Text that the model thinks aloud: never spoken."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDone:
    """A tool call, announced when it is whole."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request: `input` includes `cached`, `output` includes reasoning."""

    input: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum over two requests."""
        return Usage(self.input + other.input, self.cached + other.cached, self.output + other.output)


class FinishReason(StrEnum):
    """Why a whole answer ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class Finished:
    """The terminal marker of a stream that ended well; `native` is the provider's own word for the reason."""

    reason: FinishReason
    native: str


type Event = TextDelta | ReasoningDelta | ToolCallDone | Usage | Finished


class Provider(Protocol):
    """A wire format."""

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Send the request and yield events up to `Finished`; raises `ProviderError`, never an SDK's error.

        Closing the generator, or cancelling the task that waits on it, frees the connection.
        """
        ...

    async def list_models(self) -> list[str]:
        """Return the ids of the models that the server offers, sorted; raises `ProviderError`."""
        ...
