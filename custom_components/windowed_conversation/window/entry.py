"""How a message is kept in a window: counted, dated and tagged. Where it goes is the window's business."""

from typing import Any, cast

from .messages import Message, Role
from .tags import INPUT, automatic_tags, checked_tags
from .tokens import MESSAGE_OVERHEAD, TokenCounter, message_tokens


def question(text: str, tags: frozenset[str], counter: TokenCounter, now: float) -> Message:
    """Return what the user said as a window keeps it; `now` is in seconds since the epoch."""
    tokens = MESSAGE_OVERHEAD + counter.count(text)
    return _written(Role.USER, text, (), None, None, INPUT if tags <= INPUT else INPUT | tags, now, tokens, None, ())


def entered(message: Message, counter: TokenCounter, now: float) -> Message:
    """Return a message as a window keeps it, dated `now` unless it has a date; raises `InvalidTag`."""
    return as_kept(message, message.content, message_tokens(message, counter), now)


def as_kept(message: Message, content: str, tokens: int, now: float) -> Message:
    """Return a message as a window keeps it, with this content, which costs so many tokens; raises `InvalidTag`."""
    automatic = automatic_tags(message)
    return _written(
        message.role,
        content,
        message.tool_calls,
        message.tool_call_id,
        message.name,
        automatic if message.tags <= automatic else automatic | checked_tags(message.tags),
        now if message.created is None else message.created,
        tokens,
        message.native,
        message.attachments,
    )


def rewritten(message: Message, content: str, tokens: int) -> Message:
    """Return a message of a window with another content."""
    return _written(
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


class _Unfrozen:
    """Laid out in memory like a message."""

    __slots__ = Message.__slots__


def _written(*values: Any) -> Message:
    """Return the message of these values, in the order of its fields.

    `Message.__init__` has to get around its own frozenness for every field, which would be most of what a turn costs.
    """
    message: Any = _Unfrozen()
    (
        message.role,
        message.content,
        message.tool_calls,
        message.tool_call_id,
        message.name,
        message.tags,
        message.created,
        message.tokens,
        message.native,
        message.attachments,
    ) = values
    message.__class__ = Message
    return cast("Message", message)
