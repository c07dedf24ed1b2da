"""The parts of an answer before a format writes them down, and the protocol of a format for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, Protocol

from custom_components.windowed_conversation.providers.events import Provider, Usage

# Home Assistant shares a client of httpx up to 2026.10, of httpx2 from 2026.11 on, which comes without httpx.
CLIENTS = tuple(name for name in ("httpx", "httpx2") if find_spec(name))


@dataclass(frozen=True)
class Text:
    """Text for the user, each piece in an event of its own."""

    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Reasoning:
    """The reasoning of the model, each piece in an event of its own."""

    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A tool call; `fragments` together are the JSON of its arguments, each in an event of its own where it can be."""

    id: str
    name: str
    fragments: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    """Parallel calls; `interleaved` mixes their fragments, `order` is the one they are written in, where not theirs.

    A format without fragments cannot mix, and one that does not number its calls has no other order.
    """

    calls: tuple[Call, ...]
    interleaved: bool = False
    order: tuple[int, ...] | None = None

    def ordered[T](self, written: Sequence[T]) -> list[T]:
        """Return the written parts of the calls in the order of their arrival."""
        return [written[at] for at in self.order or range(len(written))]


type Part = Text | Reasoning | Calls


class End(StrEnum):
    """The end of an answer."""

    WHOLE = "whole"
    LENGTH = "length"
    REFUSED = "refused"
    NONE = "none"


class Wire(Protocol):
    """A format's bytes, and the provider that reads them; `clients` are the HTTP packages that its SDK runs on.

    `no_calls` are the fields of a request whose tools may not be called.
    """

    name: str
    clients: tuple[str, ...]
    no_calls: Mapping[str, Any]

    def connect(self, address: str, http_client: Any, *, timeout: float = 10.0) -> Provider:
        """Return the provider for a server at an address without a path; `timeout` is in seconds."""
        ...

    def answer(self, *parts: Part, end: End = End.WHOLE, usage: Usage | None = None) -> list[bytes]:
        """Return the events of a streamed answer, terminal ones last; `End.NONE` leaves those out."""
        ...

    def unknown_event(self) -> bytes:
        """Return an event of a type that nobody knows yet."""
        ...

    def usage_event(self, usage: Usage) -> bytes:
        """Return an event in the middle of an answer that tells the usage so far."""
        ...

    def error_event(self) -> bytes:
        """Return the event with which the server says mid-stream that it is overloaded."""
        ...

    def error_body(self, status: int) -> bytes:
        """Return the body of an answer with this status, as the provider's own server writes it."""
        ...

    def model_list(self, models: Sequence[str]) -> bytes:
        """Return the list of models."""
        ...

    def request_text(self, body: Mapping[str, Any]) -> str:
        """Return the text of the newest user message in a request's body."""
        ...
