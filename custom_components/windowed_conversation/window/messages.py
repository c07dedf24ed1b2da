"""The values of a conversation: messages, tool calls, and the tags of messages and exchanges."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeGuard, cast

from .errors import InvalidTag

# More tokens than any request or message has. JSON and databases can hold sums of such counts.
MAX_COUNT = 10**9

MAX_TAG_LENGTH = 100

# Conversations share few sets of tags. Each is one object, checked and hashed once.
SETS_IN_USE = 256

NO_TAGS = frozenset[str]()

# The tags that a trim looks at: these exchanges are evicted last, and those first.
IMPORTANT = "important"

EPHEMERAL = "ephemeral"

# A summary has this tag and is protected.
SUMMARY = "summary"

# An exchange whose turn ended before its answer did. Not an automatic tag of messages: it belongs to the exchange.
INCOMPLETE = "incomplete"

INPUT = frozenset({"input"})
OUTPUT_AND_CALL = frozenset({"output", "tool_call"})


def is_count(value: object, least: int = 0, most: int = MAX_COUNT) -> TypeGuard[int]:
    """Return whether a value is a whole number from `least` to `most`. A boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


class Role(StrEnum):
    """The author of a message. A provider's own names for the roles exist only in its module."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asked for; `arguments` is a JSON object."""

    id: str
    name: str
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Copy the arguments, so that the caller's dictionary stays independent."""
        object.__setattr__(self, "arguments", MappingProxyType(dict(self.arguments)))


@dataclass(frozen=True, slots=True)
class Native:
    """A provider's own residue (signatures, encrypted reasoning), usable only by the same provider and model.

    `value` is a JSON value. `tokens` is its cost when it is sent back, as far as the provider reported one; at least 0.
    """

    provider: str
    model: str
    value: Any
    tokens: int = 0

    def __post_init__(self) -> None:
        """Bound the tokens, so that a provider's figure cannot make a message of negative or absurd size."""
        object.__setattr__(self, "tokens", min(max(self.tokens, 0), MAX_COUNT))


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image or a PDF in a user's message; `mime_type` is, for example, `image/png`."""

    mime_type: str
    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `created` is in seconds since the epoch. A window sets `created` and `tokens` on entry.

    It has no slot for weak references: with that it would have 128 bytes, at which all messages share half of a
    processor's cache, and to read a full window of 100,000 tokens would take a tenth longer.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    tags: frozenset[str] = frozenset()
    created: float | None = None
    tokens: int | None = None
    native: Native | None = None
    attachments: tuple[Attachment, ...] = ()

    @staticmethod
    def system(content: str, **fields: Any) -> Message:
        """Return a system message."""
        return new_message(Role.SYSTEM, content, **fields)

    @staticmethod
    def user(content: str, **fields: Any) -> Message:
        """Return a user message."""
        return new_message(Role.USER, content, **fields)

    @staticmethod
    def assistant(content: str = "", *, tool_calls: tuple[ToolCall, ...] = (), **fields: Any) -> Message:
        """Return an assistant message: text, tool calls, or both."""
        if not fields:
            # nearly always: a call that unpacks fields takes two thirds longer
            return new_message(Role.ASSISTANT, content, tool_calls)
        return new_message(Role.ASSISTANT, content, tool_calls, **fields)

    @staticmethod
    def tool(tool_call_id: str, name: str, content: str, **fields: Any) -> Message:
        """Return the result of one tool call."""
        return new_message(Role.TOOL, content, (), tool_call_id, name, **fields)


def _become_message(draft: Any) -> None:
    draft.__class__ = Message


# `Message`, but three times as fast: a frozen dataclass sets each field with `object.__setattr__`, which would take
# most of a turn's time in the window. A draft is mutable, has the same memory layout, and becomes a message.
new_message = cast(
    "type[Message]",
    make_dataclass(
        "_Draft",
        [(each.name, each.type, field(default=each.default)) for each in fields(Message)],
        namespace={"__post_init__": _become_message},
        slots=True,
    ),
)


def with_content(message: Message, content: str, tokens: int) -> Message:
    """Return a message with other content."""
    return new_message(
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


BY_ROLE = {
    Role.SYSTEM: NO_TAGS,
    Role.USER: INPUT,
    Role.ASSISTANT: frozenset({"output"}),
    Role.TOOL: frozenset({"tool_call"}),
}

AUTOMATIC = frozenset[str]().union(*BY_ROLE.values())


def check_tags(tags: Iterable[str]) -> frozenset[str]:
    """Return the tags as a set. Raises `InvalidTag` for one that is not a text, blank, or over 100 characters."""
    if isinstance(tags, str):
        raise InvalidTag("tags are given as a collection, not as one text")
    return tag_set(tuple(tags))


@lru_cache(maxsize=SETS_IN_USE)
def tag_set(tags: tuple[str, ...]) -> frozenset[str]:
    """Return the tags as a set. Raises `InvalidTag` like `check_tags`."""
    for tag in tags:
        if not isinstance(tag, str) or not tag.strip():
            raise InvalidTag("a tag is a text that is not blank")
        if len(tag) > MAX_TAG_LENGTH:
            raise InvalidTag(f"a tag has at most {MAX_TAG_LENGTH} characters, not {len(tag)}")
    return frozenset(tags)


@lru_cache(maxsize=SETS_IN_USE)
def join_tags(tags: frozenset[str], more: frozenset[str]) -> frozenset[str]:
    """Return the union of both sets."""
    return tags | more


def tag_filter(tags: Iterable[str], match: str, exclude: Iterable[str]) -> Callable[[frozenset[str]], bool]:
    """Return a function that tells from an exchange's tags whether it is shown.

    An exchange is shown if it has any, or all, of `tags` (or if there are none), and none of `exclude`. Raises
    `InvalidTag`, and `ValueError` if `match` is neither "any" nor "all".
    """
    if match not in {"any", "all"}:
        raise ValueError(f"match must be 'any' or 'all', not {match!r}")
    wanted, unwanted = check_tags(tags), check_tags(exclude)

    def shows(found: frozenset[str]) -> bool:
        is_wanted = wanted <= found if match == "all" or not wanted else bool(wanted & found)
        return is_wanted and not unwanted & found

    return shows
