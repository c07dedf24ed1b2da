"""The server's interface to a wire format, and the frames that a format turns an answer into.

A format is pure: it reads a parsed body and returns bytes. Connections, faults and delays are not its business.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any, Protocol
from uuid import uuid4

from .conversation import Answer, Conversation
from .prompt_cache import Caching
from .refusal import Refusal
from .usage import Usage
from .violations import Violation


class FrameKind(StrEnum):
    """The content of a frame. A closing one says that a part is whole; a terminal one ends the answer."""

    OPENING = auto()
    REASONING = auto()
    TEXT = auto()
    CALL = auto()
    CLOSING = auto()
    TERMINAL = auto()


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream, or a part of an answer that is not streamed."""

    kind: FrameKind
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request, read. `cached_form` is the bytes that the prompt cache compares, `body` what it says to the format.

    A model that does not think has no reasoning; one that always does has some in every answer.
    """

    model: str
    conversation: Conversation
    cached_form: bytes
    stream: bool
    body: dict[str, Any]
    stream_usage: bool = True
    thinks: bool = True
    always_thinks: bool = False
    caching: Caching = field(default=Caching())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer and all that is written with it. `id` is hexadecimal; `figures` are reported as `misreported` says."""

    prompt: Prompt
    answer: Answer
    usage: Usage
    shapes: tuple[str, ...]
    figures: Mapping[str, str | None] = field(default_factory=dict)
    id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def model(self) -> str:
        """The model that was asked."""
        return self.prompt.model


class WireFormat(Protocol):
    """A format that the server speaks, for one request."""

    name: str

    def sent_key(self, headers: Mapping[str, str]) -> str | None:
        """Return the key that came with the request."""
        ...

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise RefusedError where the request lacks a header that the format wants."""
        ...

    def violations(self, body: Any) -> list[Violation]:
        """Return the rules of the format that the request breaks."""
        ...

    def read(self, body: Any) -> Prompt:
        """Return the request; raises RefusedError when it cannot be read at all."""
        ...

    def frames(self, reply: Reply) -> Iterator[Frame]:
        """Yield the answer: events where it is streamed, else the two halves of one document."""
        ...

    def in_own_words(self, refusal: Refusal) -> Refusal:
        """Return the refusal with the status, type and code that this provider has for its reason."""
        ...

    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        """Return the document that says the refusal."""
        ...

    def error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the event that says the refusal inside a stream, after `sent` events."""
        ...

    def failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the event with which the answer itself fails; the error event where the format has no other."""
        ...

    def malformed_event(self) -> bytes:
        """Return an event that cannot be parsed."""
        ...


def halves(document: bytes) -> Iterator[Frame]:
    """Yield an answer that is not streamed, in two parts, so that a fault can come between them."""
    middle = len(document) // 2
    yield Frame(FrameKind.TEXT, document[:middle])
    yield Frame(FrameKind.TERMINAL, document[middle:])


def bearer(headers: Mapping[str, str]) -> str | None:
    """Return the key of an `Authorization: Bearer` header."""
    scheme, _, key = headers.get("Authorization", "").partition(" ")
    return key if scheme.lower() == "bearer" else None


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON list; empty if it is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
