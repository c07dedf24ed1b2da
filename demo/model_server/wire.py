"""What the server needs to know of a wire format, and the frames that a format turns an answer into.

A format is pure: it reads a parsed body and returns bytes. Connections, faults and delays are not its business.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any, Protocol

from .conversation import Answer, Conversation
from .faults import Refusal
from .usage import Usage
from .validation import Violation


class FrameKind(StrEnum):
    """What a frame carries; everything after the answer's content is terminal."""

    OPENING = auto()
    REASONING = auto()
    TEXT = auto()
    CALL = auto()
    TERMINAL = auto()


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream, or a part of an answer that is not streamed."""

    kind: FrameKind
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer and all that is written with it."""

    model: str
    answer: Answer
    usage: Usage
    shapes: tuple[str, ...]
    stream: bool
    stream_usage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request, read. `cached_form` is the bytes that the prompt cache compares."""

    model: object
    conversation: Conversation
    cached_form: bytes
    stream: bool
    stream_usage: bool


class WireFormat(Protocol):
    """A format that the server speaks."""

    def violations(self, body: Any) -> list[Violation]:
        """Return the ordering rules that the request breaks."""
        ...

    def read(self, body: Any) -> Prompt:
        """Return the request; raises RefusedError when it cannot be read at all."""
        ...

    def frames(self, reply: Reply) -> Iterator[Frame]:
        """Yield the answer: events where it is streamed, else the parts of one document."""
        ...

    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        """Return the document that says the refusal."""
        ...

    def error_event(self, refusal: Refusal) -> bytes:
        """Return the event that says the refusal inside a stream."""
        ...

    def malformed_event(self) -> bytes:
        """Return an event that cannot be parsed."""
        ...
