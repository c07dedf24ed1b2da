"""What a provider is asked and what its stream yields, in words that no provider owns."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from ..window import Message, ToolCall
from ..window.tokens import tool_text
from .json_values import finite
from .profile import UNKNOWN_MODEL, Profile
from .settings import DEFAULT_SETTINGS, ModelSettings


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool that is offered to the model; `parameters` is a JSON schema of type object, `text` what is counted of it.

    Limits that are not finite are removed from the schema: no request can be written with them. `read_only`: whether it
    changes nothing in the home; it is not sent. Raises `TypeError` where the parameters are no JSON.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool = False
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Write the text once: the same schema is counted several times in every turn."""
        parameters = {"type": "object", "properties": {}, **finite(dict(self.parameters))}
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "text", tool_text(self.name, self.description, self.parameters))

    def __hash__(self) -> int:
        """Return a hash of the text, by which encoders remember what they made of a schema."""
        return hash(self.text)


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the window's messages as they are (system first) and the tools in the order they are sent.

    `settings` are the user's, `profile` says what the model accepts; what it does not accept is not sent. `cache_key`
    is the same for requests that begin alike. `reply_tokens` are the most that the model may write, reasoning included.
    `may_call`: whether the model may call the tools; where it may not they are sent all the same, so that the request
    begins like those before it, unless it is unknown whether the server can be told.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    profile: Profile = UNKNOWN_MODEL
    cache_key: str = ""
    reply_tokens: int | None = None
    settings: ModelSettings = DEFAULT_SETTINGS
    may_call: bool = True

    @property
    def reply_limit(self) -> int | None:
        """The most tokens of the answer, which are no more than the model writes; None if nobody limits it."""
        limits = (self.reply_tokens, self.profile.output_tokens or self.reply_tokens)
        return None if self.reply_tokens is None else min(limit for limit in limits if limit is not None)


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
    """Tokens of one request: `input` includes `cached` and `cache_written`, `output` includes `reasoning`.

    `cleared` is what the provider left out of the request by its own account, and not in `input`.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cleared: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum over two requests."""
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.cache_written + other.cache_written,
            self.reasoning + other.reasoning,
            self.cleared + other.cleared,
        )


class FinishReason(StrEnum):
    """Why a whole answer ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class Finished:
    """The terminal marker of a stream that ended well; `native` is the provider's own word for the reason.

    `residue` is what only the same provider and model can use of the answer when it is sent back (signatures, encrypted
    reasoning), a JSON value, None where there is none.
    """

    reason: FinishReason
    native: str
    residue: Any = None


type Event = TextDelta | ReasoningDelta | ToolCallDone | Usage | Finished


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that a server offers, and its limits in tokens where the server's list says them."""

    id: str
    context_tokens: int | None = None
    output_tokens: int | None = None


class Provider(Protocol):
    """A wire format. `name` is what its residue is stamped with."""

    name: str

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Send the request and yield events up to `Finished`; raises `ProviderError`, never an SDK's error.

        Closing the generator, or cancelling the task that waits on it, frees the connection.
        """
        ...

    async def list_models(self) -> list[ListedModel]:
        """Return the models that the server offers, sorted by their ids; raises `ProviderError`."""
        ...

    def caching(self, request: Request) -> Mapping[str, Any]:
        """Return what the request asks of the provider's prompt cache, in the provider's own words; for the record."""
        ...


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is left of a conversation that its provider shortened: a JSON value that only the same model can read.

    `texts` are the user's that are in it as they were, and `usage` what it has cost: what is not in `texts` is output.
    """

    value: Any
    texts: tuple[str, ...]
    usage: Usage


@runtime_checkable
class Compacts(Protocol):
    """A provider that shortens a conversation in its own way."""

    async def compact(self, request: Request) -> Compacted | None:
        """Return what can stand in the place of the request's conversation, or None if the server has no way for it.

        Raises `ProviderError`.
        """
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """A provider that has an endpoint which counts the tokens of a request."""

    async def count_tokens(self, request: Request) -> int:
        """Return the input tokens that the request would cost; raises `ProviderError`."""
        ...
