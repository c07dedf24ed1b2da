"""The data types of a conversation: messages, tool calls, attachments, and tags of messages and exchanges."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeGuard, cast

from .errors import InvalidTag

# More tokens than any request or message has, but small enough for JSON and databases to hold sums of such counts.
MAX_TOKENS = 10**9

MAX_TAG_LENGTH = 100

# The size of the caches for sets of tags. Conversations share few sets, so each set is checked and hashed only once.
TAG_SET_CACHE_SIZE = 256

NO_TAGS = frozenset[str]()

# Tags that affect trimming: `important` exchanges are evicted last, `ephemeral` ones first.
IMPORTANT = "important"

EPHEMERAL = "ephemeral"

# The tag of a summary, which is also tagged `important`.
SUMMARY = "summary"

# The tag of an exchange whose turn ended before its answer was complete. It is set on the exchange, not on messages.
INCOMPLETE_TAG = "incomplete"

INPUT_TAGS = frozenset({"input"})
CALL_TAGS = frozenset({"output", "tool_call"})


def is_int_in_range(value: object, least: int = 0, most: int = MAX_TOKENS) -> TypeGuard[int]:
    """Return whether a value is an integer from `least` to `most`, and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is an integer or a float, and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


class Role(StrEnum):
    """The author of a message. Each provider module translates the roles to the provider's own names."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model requested. `arguments` is a JSON object."""

    id: str
    name: str
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Copy the arguments, so that later changes of the caller's dictionary have no effect."""
        object.__setattr__(self, "arguments", MappingProxyType(dict(self.arguments)))


@dataclass(frozen=True, slots=True)
class NativeData:
    """Residue: opaque data, such as signatures, that only the provider and model that produced it can use."""

    provider: str
    model: str
    # A JSON value.
    value: Any
    # The cost of sending it back if the provider has reported it, at least 0.
    tokens: int = 0

    def __post_init__(self) -> None:
        """Limit the tokens, so that a provider's number cannot give a message a negative or absurd size."""
        object.__setattr__(self, "tokens", min(max(self.tokens, 0), MAX_TOKENS))


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image or a PDF in a user's message; `mime_type` is, for example, `image/png`."""

    mime_type: str
    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `created` is in seconds since the epoch. A window sets `created` and `tokens` on entry.

    It has no slot for weak references. With one it would have 128 bytes, and at that size all messages share half of a
    processor's cache: reading a full window of 100,000 tokens would take a tenth longer.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    tags: frozenset[str] = frozenset()
    created: float | None = None
    tokens: int | None = None
    native: NativeData | None = None
    attachments: tuple[Attachment, ...] = ()

    @staticmethod
    def system(content: str, **fields: Any) -> Message:
        """Return a system message."""
        return to_message(Role.SYSTEM, content, **fields)

    @staticmethod
    def user(content: str, **fields: Any) -> Message:
        """Return a user message."""
        return to_message(Role.USER, content, **fields)

    @staticmethod
    def assistant(content: str = "", *, tool_calls: tuple[ToolCall, ...] = (), **fields: Any) -> Message:
        """Return an assistant message: text, tool calls, or both."""
        if not fields:
            # The usual case has a fast path, because a call that unpacks `fields` takes two thirds longer.
            return to_message(Role.ASSISTANT, content, tool_calls)
        return to_message(Role.ASSISTANT, content, tool_calls, **fields)

    @staticmethod
    def tool(tool_call_id: str, name: str, content: str, **fields: Any) -> Message:
        """Return the result of one tool call."""
        return to_message(Role.TOOL, content, (), tool_call_id, name, **fields)


def _convert_to_message(draft: Any) -> None:
    draft.__class__ = Message


# Builds a `Message` three times as fast as its constructor: a frozen dataclass sets each field with
# `object.__setattr__`, which would take most of the time of a turn in the window. This class is mutable and has the
# same memory layout, so an instance can be turned into a `Message`.
to_message = cast(
    "type[Message]",
    make_dataclass(
        "_Draft",
        [(each.name, each.type, field(default=each.default)) for each in fields(Message)],
        namespace={"__post_init__": _convert_to_message},
        slots=True,
    ),
)


def with_content(message: Message, content: str, tokens: int) -> Message:
    """Return a copy of a message with other content and tokens."""
    return to_message(
        message.role,
        content,
        message.tool_calls,
        message.tool_call_id,
        message.name,
        message.tags,
        message.created,
        tokens,
        message.native,
        message.attachments,
    )


ROLE_TAGS = {
    Role.SYSTEM: NO_TAGS,
    Role.USER: INPUT_TAGS,
    Role.ASSISTANT: frozenset({"output"}),
    Role.TOOL: frozenset({"tool_call"}),
}

AUTOMATIC_TAGS = frozenset[str]().union(*ROLE_TAGS.values())


def check_tags(tags: Iterable[str]) -> frozenset[str]:
    """Return the tags as a set. Raises `InvalidTag` for one that is not a text, is blank, or exceeds 100 characters."""
    if isinstance(tags, str):
        raise InvalidTag("tags are given as a collection, not as one text")
    return make_tags(tuple(tags))


@lru_cache(maxsize=TAG_SET_CACHE_SIZE)
def make_tags(tags: tuple[str, ...]) -> frozenset[str]:
    """Return the tags as a set. Raises `InvalidTag` for the same reasons as `check_tags`."""
    for tag in tags:
        if not isinstance(tag, str) or not tag.strip():
            raise InvalidTag("a tag is a text that is not blank")
        if len(tag) > MAX_TAG_LENGTH:
            raise InvalidTag(f"a tag has at most {MAX_TAG_LENGTH} characters, not {len(tag)}")
    return frozenset(tags)


@lru_cache(maxsize=TAG_SET_CACHE_SIZE)
def join_tags(tags: frozenset[str], more: frozenset[str]) -> frozenset[str]:
    """Return the union of two sets of tags."""
    return tags | more
