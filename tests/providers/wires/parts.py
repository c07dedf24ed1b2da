"""The format-independent parts of an answer, and the protocol that the writers of all formats implement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, Protocol

from custom_components.windowed_conversation.providers.events import Provider, Usage

# Home Assistant shares an httpx client up to 2026.10 and an httpx2 client from 2026.11 on, which comes without httpx.
CLIENTS = tuple(name for name in ("httpx", "httpx2") if find_spec(name))


@dataclass(frozen=True)
class Text:
    """Text for the user; each piece is sent as a separate event."""

    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Reasoning:
    """Reasoning of the model; each piece is sent as a separate event."""

    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A tool call; the joined `fragments` are the JSON of its arguments, sent separately if the format allows it."""

    id: str
    name: str
    fragments: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    """Parallel calls; `interleaved` mixes their fragments, and `order` changes the order in which they are sent.

    A format without fragments cannot interleave them, and a format that does not number its calls cannot reorder them.
    """

    calls: tuple[Call, ...]
    interleaved: bool = False
    order: tuple[int, ...] | None = None

    def ordered[T](self, written: Sequence[T]) -> list[T]:
        """Return the written parts of the calls in sending order."""
        return [written[at] for at in self.order or range(len(written))]


type Part = Text | Reasoning | Calls


class End(StrEnum):
    """The way in which an answer ends."""

    WHOLE = "whole"
    LENGTH = "length"
    REFUSED = "refused"
    NONE = "none"


class Wire(Protocol):
    """The bytes of a format, and the provider that reads them; `clients` are the HTTP packages that its SDK runs on.

    `no_calls` contains the fields of a request whose tools may not be called, and `any_call` those of one that must
    call a tool.
    """

    name: str
    clients: tuple[str, ...]
    no_calls: Mapping[str, Any]
    any_call: Mapping[str, Any]

    def connect(self, address: str, http_client: Any, *, timeout: float = 10.0) -> Provider:
        """Return a provider for the server at an address without a path; `timeout` is in seconds."""
        ...

    def answer(self, *parts: Part, end: End = End.WHOLE, usage: Usage | None = None) -> list[bytes]:
        """Return the events of a streamed answer, terminal ones last; `End.NONE` omits the terminal events."""
        ...

    def unknown_event(self) -> bytes:
        """Return an event of an unknown type."""
        ...

    def usage_event(self, usage: Usage) -> bytes:
        """Return an event in the middle of an answer that reports the usage so far."""
        ...

    def error_event(self) -> bytes:
        """Return the event by which the server reports in mid-stream that it is overloaded."""
        ...

    def error_body(self, status: int) -> bytes:
        """Return the body of a response with this status, as the format's own server writes it."""
        ...

    def model_list(self, models: Sequence[str]) -> bytes:
        """Return the body of a model list."""
        ...

    def request_text(self, body: Mapping[str, Any]) -> str:
        """Return the text of the newest user message in a request's body."""
        ...
