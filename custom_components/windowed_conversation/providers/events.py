"""Requests to a provider with their settings, and the events of its answer stream, independent of any vendor."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import add, attrgetter
from typing import Any

from ..window import Attachment, Message, Role, ToolCall, format_tool_definition
from .json_values import as_text, drop_non_finite, get_member, get_objects, read_repaired_json
from .models import UNKNOWN_MODEL, Effort, ModelProfile

# The fingerprint of Ollama servers, the first part of `AnswerDone.server_identity`:
# https://github.com/ollama/ollama/blob/main/openai/openai.go
OLLAMA_FINGERPRINT = "fp_ollama"


@dataclass(frozen=True, slots=True)
class WebSearch:
    """A web search that the provider runs, for the country code and the time zone of the home, if they are known."""

    country: str = ""
    timezone: str = ""

    @property
    def location(self) -> dict[str, str]:
        """The location in the form of OpenAI and Anthropic. Without one, OpenAI assumes the United States."""
        parts = {"country": self.country, "timezone": self.timezone}
        return {"type": "approximate", **{name: value for name, value in parts.items() if value}}


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of a model's answers. None leaves a choice to the provider."""

    # How much the model reasons.
    effort: Effort | None = None
    # Controls how the model samples tokens.
    temperature: float | None = None
    # Whether the provider may shorten old turns by itself.
    compaction: bool = False
    # The tokens reserved for the answer, and its limit. Reasoning tokens come on top.
    max_answer_tokens: int = 1000
    # None if the provider may not search the web.
    web_search: WebSearch | None = None


DEFAULT_SETTINGS = ModelSettings()


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool that the model may call.

    Limits that are not finite are removed from the schema, as JSON cannot express them. Raises `TypeError` if the
    parameters are not JSON.
    """

    name: str
    description: str
    # A JSON schema of type object.
    parameters: Mapping[str, Any]
    # Whether the tool changes nothing in the home. Not sent to the provider.
    read_only: bool = False
    # The tool as text, used to count its tokens.
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Create the text once, because every turn counts the same schema several times."""
        parameters = {"type": "object", "properties": {}, **drop_non_finite(dict(self.parameters))}
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "text", format_tool_definition(self.name, self.description, self.parameters))

    def __hash__(self) -> int:
        """Return a hash of the text, so that encoders can cache the encoded schema."""
        return hash(self.text)


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The JSON schema that an answer must match."""

    name: str
    # A JSON schema of type object as Home Assistant makes it. Limits that are not finite are removed from it.
    schema: Mapping[str, Any]
    # Whether to send it as text only, because the server ignores or refuses its parameter.
    in_prompt: bool = False

    def __post_init__(self) -> None:
        """Remove limits that JSON cannot express."""
        object.__setattr__(self, "schema", drop_non_finite(dict(self.schema)))


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the messages of the window (system message first), and the tools in sending order."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    # Describes the model. Settings that the model does not accept are not sent.
    profile: ModelProfile = UNKNOWN_MODEL
    # The same for requests with a common beginning.
    cache_key: str = ""
    # Limits the answer, including reasoning.
    max_answer_tokens: int | None = None
    # The user's settings.
    settings: ModelSettings = DEFAULT_SETTINGS
    # Whether the model may call the tools. If it may not, they are usually still sent, so that the request begins like
    # earlier ones. They are dropped if the server may not support forbidding calls.
    may_call: bool = True
    # Whether the answer must call one of the tools. Not every server can demand it, and some refuse such a request.
    requires_call: bool = False
    # The schema that the answer must match. None for text.
    answer_schema: AnswerSchema | None = None
    # Whether the newest exchange contains results of the provider's own search.
    has_search_results: bool = False
    # Whether nobody waits for the answer, so that a slower and cheaper one will do.
    is_background: bool = False
    # Whether the answer is spoken, so that a short one is better.
    is_spoken: bool = False
    # Further tools. The model reads the schema of one only after it has found the tool.
    deferred_tools: tuple[ToolSchema, ...] = ()
    # The name of the tool that finds them, if its results can load them.
    search_tool: str = ""

    def read_found_tools(self, message: Message) -> list[ToolSchema] | None:
        """Return the deferred tools that a search has found, or None for the result of another tool."""
        if not self.search_tool or message.name != self.search_tool:
            return None
        try:
            found = get_objects(get_member(read_repaired_json(message.content), "tools"))
        except ValueError, RecursionError:
            found = []
        tools, names = {tool.name: tool for tool in self.deferred_tools}, [as_text(each.get("name")) for each in found]
        return [tools[name] for name in dict.fromkeys(names) if name in tools]

    @property
    def web_search(self) -> WebSearch | None:
        """The web search to offer, or None if it is off or the model does not support it."""
        return self.settings.web_search if self.profile.web_search else None

    def has_own_size(self, usage: Usage) -> bool:
        """Return whether the billed input covers only texts and tools: no pictures and no web search results."""
        return not (usage.searches or self.has_search_results or [each for each in self.messages if each.attachments])

    @property
    def answer_limit(self) -> int | None:
        """The limit of the answer in tokens, at most the model's own limit; None if there is no limit."""
        most = self.max_answer_tokens
        return None if most is None else min(most, self.profile.output_tokens or most)


def add_picture_messages(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages, with a user message after the tool results of each round for their attachments.

    A tool result cannot carry attachments itself, because Chat Completions accepts only text there.
    """
    for role, group in groupby(messages, key=attrgetter("role")):
        pictures: tuple[Attachment, ...] = ()
        for message in group:
            yield message
            pictures += message.attachments
        if role is Role.TOOL and pictures:
            yield Message.user(f"Pictures: {', '.join([each.name for each in pictures])}", attachments=pictures)


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
    """A complete tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Source:
    """A web page on which an answer is based."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Sources:
    """The web pages on which the answer is based, each once."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """The token usage of a request."""

    # Includes `cached` and `cache_written`.
    input: int = 0
    cached: int = 0
    # Includes `reasoning`.
    output: int = 0
    cache_written: int = 0
    reasoning: int = 0
    # The tokens that the provider dropped from the request. They are not part of `input`.
    cleared: int = 0
    # The number of web searches that are billed.
    searches: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both usages."""
        return Usage(*map(add, astuple(self), astuple(other), strict=True))


class FinishReason(StrEnum):
    """The reason why a complete answer ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class AnswerDone:
    """The terminal marker of a stream that ended successfully."""

    reason: FinishReason
    # The provider's own finish reason, or "other" if that is unknown.
    native_reason: str
    # A JSON value that only the same provider and model can use when it is sent back (signatures, encrypted reasoning),
    # or None.
    native_value: Any = None
    # The size of `native_value` when it is sent back. None if that equals the reasoning tokens of the usage.
    native_tokens: int | None = None
    # A compatible server's fingerprint, model and provider. Empty for other formats.
    server_identity: str = ""
    # The residue with the results of web searches, which replaces `native_value` until the turn ends. May be None.
    turn_value: Any = None
    # Whether the answer is billed at the price of OpenAI's flexible tier.
    is_flexible: bool = False


type Event = TextDelta | ReasoningDelta | ToolCallDone | Sources | Usage | AnswerDone


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that a server offers, with its token limits and capabilities if the server's list contains them."""

    id: str
    context_tokens: int | None = None
    output_tokens: int | None = None
    # The facts of a `ModelProfile` that the list states, by the names of its fields.
    capabilities: Mapping[str, Any] = field(default_factory=dict)


# A callback for every sign of life: it is called whenever a server sends anything.
type OnBytesCallback = Callable[[], None]


def ignore_bytes() -> None:
    """Ignore a sign of life."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A conversation that its provider has compacted into a JSON value that only the same model can read."""

    native_value: Any
    # The user's messages that the compaction keeps verbatim.
    user_texts: tuple[str, ...]
    # The cost. Everything but `user_texts` counts as output.
    usage: Usage


class Provider(ABC):
    """A provider for one wire format. Methods that not every server supports have a default."""

    # Stored with the residue of its answers.
    name: str
    # Whether the format lets the result of a tool search load tools.
    loads_tools: bool = False

    @abstractmethod
    def stream(self, request: Request, on_bytes: OnBytesCallback = ignore_bytes) -> AsyncGenerator[Event]:
        """Send the request and yield events up to `AnswerDone`. Raises `ProviderError`, never an SDK's error.

        `on_bytes` is called whenever the server sends any part of the answer: a comment, a ping, a part of an event.
        Closing the generator, or cancelling the task that awaits it, releases the connection.
        """

    @abstractmethod
    async def list_models(self) -> list[ListedModel]:
        """Return the models that the server offers, sorted by id. Raises `ProviderError`."""

    def cache_settings(self, request: Request) -> Mapping[str, Any]:
        """Return the request's settings for the prompt cache, with the provider's own names, for the trace."""
        return {}

    async def compact(self, request: Request) -> Compacted | None:
        """Return the compaction that can replace the request's conversation, or None if the server cannot compact.

        Raises `ProviderError`.
        """
        return None

    async def count_tokens(self, request: Request) -> int | None:
        """Return the input tokens of a request as the server counts them, or None if it cannot.

        Raises `ProviderError`.
        """
        return None

    async def fetch_reads_images(self, model: str) -> bool | None:
        """Return whether the model reads pictures, or None if the server does not say or cannot be asked."""
        return None

    async def fetch_context_tokens(self, model: str, server: str) -> int | None:
        """Return the context size of the loaded model in tokens, or None if the server does not say.

        `server` identifies the server that answered, see `AnswerDone.server_identity`. Raises `ProviderError`.
        """
        return None
