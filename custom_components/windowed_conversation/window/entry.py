"""How a message is kept in a window: counted, dated and tagged. Where it goes is the window's business."""

from .messages import Message, Remembered, Role, new_message
from .tags import BY_ROLE, INPUT, OUTPUT_AND_CALL, checked_tags
from .tokens import MESSAGE_OVERHEAD, TokenCounter


def question(
    text: str, tags: frozenset[str], counter: TokenCounter, now: float, remembered: Remembered | None = None
) -> Message:
    """Return what the user said as a window keeps it; `now` is in seconds since the epoch."""
    tokens = MESSAGE_OVERHEAD + counter.count(text)
    tags = INPUT if tags <= INPUT else INPUT | tags
    return new_message(Role.USER, text, tags=tags, created=now, tokens=tokens, remembered=remembered)


def entered(message: Message, content: str, tokens: int, now: float) -> Message:
    """Return a message as a window keeps it, with this content, which costs so many tokens; raises `InvalidTag`.

    It is dated `now` unless it has a date.
    """
    automatic = OUTPUT_AND_CALL if message.tool_calls else BY_ROLE[message.role]
    return new_message(
        message.role,
        content,
        message.tool_calls,
        message.tool_call_id,
        message.name,
        tags=automatic if message.tags <= automatic else automatic | checked_tags(message.tags),
        created=now if message.created is None else message.created,
        tokens=tokens,
        native=message.native,
        attachments=message.attachments,
        remembered=message.remembered,
    )


def rewritten(message: Message, content: str, tokens: int, remembered: Remembered | None = None) -> Message:
    """Return a message of a window with another content, and what memory has added to that."""
    return new_message(
        message.role,
        content,
        message.tool_calls,
        message.tool_call_id,
        message.name,
        tags=message.tags,
        created=message.created,
        tokens=tokens,
        native=message.native,
        attachments=message.attachments,
        remembered=remembered,
    )
