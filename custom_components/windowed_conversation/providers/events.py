"""Requests to a provider with their settings, and the events of its stream, independent of any vendor."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from operator import add
from typing import Any, Protocol, runtime_checkable

from ..window import Message, ToolCall, tool_text
from .json_values import finite
from .models import UNKNOWN_MODEL, Effort, ModelProfile

# The first word of `Finished.server` of an Ollama server:
# https://github.com/ollama/ollama/blob/main/openai/openai.go
OLLAMA = "fp_ollama"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of a model's answers.

    `effort` is how much it thinks. `temperature` and `top_p` control how it samples tokens. None leaves each to the
    provider. `compaction`: whether the provider may shorten old turns by itself. `max_answer_tokens` are reserved for
    the answer and limit it; the reasoning of a model that reasons comes on top.
    """

    effort: Effort | None = None
    temperature: float | None = None
    top_p: float | None = None
    compaction: bool = False
    max_answer_tokens: int = 1000


DEFAULT_SETTINGS = ModelSettings()


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool that the model may call. `parameters` is a JSON schema of type object.

    `text` is the text by which its tokens are counted.

    Limits that are not finite are removed from the schema, as JSON cannot express them. `read_only`: whether the tool
    changes nothing in the home; not sent. Raises `TypeError` if the parameters are not JSON.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool = False
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Write the text once: every turn counts the same schema several times."""
        parameters = {"type": "object", "properties": {}, **finite(dict(self.parameters))}
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "text", tool_text(self.name, self.description, self.parameters))

    def __hash__(self) -> int:
        """Return a hash of the text, by which encoders cache the encoded schema."""
        return hash(self.text)


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the window's messages (system first), and the tools in the order in which they are sent.

    `settings` are the user's and `profile` is the model's; settings that the model does not accept are not sent.
    `cache_key` is the same for requests that begin alike. `max_answer_tokens` limits the answer, reasoning included.
    `may_call`: whether the model may call the tools. If not, they are sent all the same, so that the request begins
    like those before it, unless it is unknown whether the server can be told.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    profile: ModelProfile = UNKNOWN_MODEL
    cache_key: str = ""
    max_answer_tokens: int | None = None
    settings: ModelSettings = DEFAULT_SETTINGS
    may_call: bool = True

    @property
    def answer_limit(self) -> int | None:
        """The limit of the answer in tokens, at most the model's own; None if there is no limit."""
        most = self.max_answer_tokens
        return None if most is None else min(most, self.profile.output_tokens or most)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Text of the model's reasoning, which is never spoken."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDone:
    """A whole tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request: `input` includes `cached` and `cache_written`, `output` includes `reasoning`.

    `cleared` are the tokens that the provider dropped from the request; it is not part of `input`.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cleared: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum over two requests."""
        return Usage(*map(add, astuple(self), astuple(other), strict=True))


class FinishReason(StrEnum):
    """Why a whole answer ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class Finished:
    """The terminal marker of a stream that ended well.

    `native` is the provider's own word for the reason, or `other` for an unknown word. `residue` is a JSON
    value that is useful only to the same provider and model when it is sent back (signatures, encrypted reasoning), or
    None. `residue_tokens` is its size when it is sent back; None if that is the reasoning of the usage. `server` has
    a compatible server's fingerprint, its model and its provider; it is empty for other formats.
    """

    reason: FinishReason
    native: str
    residue: Any = None
    residue_tokens: int | None = None
    server: str = ""


type Event = TextDelta | ReasoningDelta | ToolCallDone | Usage | Finished


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that a server offers, with its limits in tokens if the server's list has them."""

    id: str
    context_tokens: int | None = None
    output_tokens: int | None = None


# Called whenever a server sends anything: a sign of life.
type OnBytes = Callable[[], None]


def ignore() -> None:
    """Do nothing about a sign of life."""


class Provider(Protocol):
    """A wire format. `name` is the stamp on its residue."""

    name: str

    def stream(self, request: Request, on_bytes: OnBytes = ignore) -> AsyncGenerator[Event]:
        """Send the request and yield events up to `Finished`. Raises `ProviderError`, never an SDK's error.

        `on_bytes` is called whenever the server sends anything of the answer: a comment, a ping, a part of an event.
        Closing the generator, or cancelling the task that waits for it, releases the connection.
        """

    async def list_models(self) -> list[ListedModel]:
        """Return the models that the server offers, sorted by id. Raises `ProviderError`."""

    def caching(self, request: Request) -> Mapping[str, Any]:
        """Return the request's settings for the prompt cache, in the provider's own words, for the trace."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A conversation that its provider has compacted: a JSON value that only the same model can read.

    `texts` are the user's messages that it keeps verbatim. `usage` is the cost; everything but `texts` counts as
    output.
    """

    value: Any
    texts: tuple[str, ...]
    usage: Usage


@runtime_checkable
class Compacts(Protocol):
    """A provider with its own way to compact a conversation."""

    async def compact(self, request: Request) -> Compacted | None:
        """Return the compaction that can replace the request's conversation, or None if the server cannot compact.

        Raises `ProviderError`.
        """


@runtime_checkable
class AnswersUnstreamed(Protocol):
    """A provider that can also ask for an answer that comes whole, through its vendor's own SDK. For trials."""

    def unstreamed_answer(self, request: Request) -> AsyncGenerator[Event]:
        """Send the request and yield the events of its answer, like `Provider.stream`, once all of it is there."""


@runtime_checkable
class NamesItsSize(Protocol):
    """A provider whose server may say how much a loaded model reads."""

    async def context_tokens(self, model: str, server: str) -> int | None:
        """Return the context size of the loaded model in tokens, or None if the server does not say.

        `server` identifies the server that answered, see `Finished`. Raises `ProviderError`.
        """


@runtime_checkable
class CountsTokens(Protocol):
    """A provider with an endpoint that counts the tokens of a request."""

    async def count_tokens(self, request: Request) -> int:
        """Return the input tokens of the request. Raises `ProviderError`."""
