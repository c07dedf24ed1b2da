"""The server's interface to a wire format, and the frames that a format converts an answer to.

A format is pure: it reads a parsed body and returns bytes. It does not handle connections, faults or delays.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any, Protocol
from uuid import uuid4

from .conversation import Answer, Conversation, Tool
from .prompt_cache import CacheRules
from .refusal import Refusal
from .usage import Usage
from .violations import Violation

# Where each format has the JSON schema of a tool's arguments.
_SCHEMA_KEYS = ("parameters", "input_schema", "parametersJsonSchema")


class FrameKind(StrEnum):
    """The kind of a frame. A closing frame means that a part is complete; a terminal frame ends the answer."""

    OPENING = auto()
    REASONING = auto()
    TEXT = auto()
    CALL = auto()
    SEARCH = auto()
    CLOSING = auto()
    TERMINAL = auto()


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream, or a part of an answer that is not streamed."""

    kind: FrameKind
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A parsed request."""

    model: str
    conversation: Conversation
    # The bytes that the prompt cache compares.
    cache_bytes: bytes
    is_streamed: bool
    # The body for the wire format.
    body: dict[str, Any]
    includes_usage: bool = True
    # A model that does not think has no reasoning.
    can_think: bool = True
    # A model that always thinks has some in every answer.
    must_think: bool = False
    # The JSON schema of the answer in a parameter.
    schema_parameter: dict[str, Any] | None = None
    # The JSON schema of the answer in the user's text.
    schema_text: dict[str, Any] | None = None
    cache_rules: CacheRules = field(default=CacheRules())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer and the data sent with it. `id` is hexadecimal; `figures` are the false counts for "misreported"."""

    prompt: Prompt
    answer: Answer
    usage: Usage
    shapes: tuple[str, ...]
    figures: Mapping[str, str | None] = field(default_factory=dict)
    id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def model(self) -> str:
        """The requested model."""
        return self.prompt.model


class WireFormat(Protocol):
    """A wire format of the server, for one request."""

    name: str

    def read_api_key(self, headers: Mapping[str, str]) -> str | None:
        """Return the API key from the request headers."""
        ...

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Raise RefusedError if the request lacks a header that the format requires."""
        ...

    def find_violations(self, body: Any) -> list[Violation]:
        """Return the violations of the format's rules in the request."""
        ...

    def parse_request(self, body: Any) -> Prompt:
        """Return the parsed request. Raises RefusedError if it cannot be parsed at all."""
        ...

    def iter_frames(self, reply: Reply) -> Iterator[Frame]:
        """Yield the answer as events if it is streamed, or as the two halves of one document."""
        ...

    def convert_refusal(self, refusal: Refusal) -> Refusal:
        """Return the refusal with the status, type and code that this provider uses for its reason."""
        ...

    def build_error_body(self, refusal: Refusal) -> dict[str, Any]:
        """Return the JSON error document for the refusal."""
        ...

    def build_error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the event that reports the refusal inside a stream, after `sent` events."""
        ...

    def build_failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the event that marks the answer as failed, or the error event if the format has no other."""
        ...

    def build_malformed_event(self) -> bytes:
        """Return an event that cannot be parsed."""
        ...


def split_document(document: bytes) -> Iterator[Frame]:
    """Yield the two halves of an answer that is not streamed, so that a fault can occur between them."""
    middle = len(document) // 2
    yield Frame(FrameKind.TEXT, document[:middle])
    yield Frame(FrameKind.TERMINAL, document[middle:])


def get_bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the key of an `Authorization: Bearer` header."""
    scheme, _, key = headers.get("Authorization", "").partition(" ")
    return key if scheme.lower() == "bearer" else None


def get_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a JSON list, or an empty list if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def parse_tools(declarations: Iterable[Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Return the tools of declarations that have a name; others are the provider's own, such as a web search."""
    return tuple(map(_parse_tool, (each for each in declarations if isinstance(each.get("name"), str))))


def _parse_tool(declaration: Mapping[str, Any]) -> Tool:
    schema = next((declaration[key] for key in _SCHEMA_KEYS if key in declaration), None)
    known = schema if isinstance(schema, dict) else {}
    properties, required = known.get("properties"), known.get("required")
    return Tool(
        declaration["name"],
        str(declaration.get("description") or ""),
        properties if isinstance(properties, dict) else {},
        tuple(map(str, required)) if isinstance(required, list) else (),
    )
