"""Messages as a window stores them: counted, dated and tagged."""

from .messages import Message, Role, new_message
from .tags import BY_ROLE, INPUT, OUTPUT_AND_CALL, checked_tags
from .tokens import MESSAGE_OVERHEAD, TokenCounter


def question(text: str, tags: frozenset[str], counter: TokenCounter, now: float) -> Message:
    """Return the user's message as a window stores it; `now` is in seconds since the epoch."""
    tokens = MESSAGE_OVERHEAD + counter.count(text)
    tags = INPUT if tags <= INPUT else INPUT | tags
    return new_message(Role.USER, text, (), None, None, tags, now, tokens)


def entered(message: Message, content: str, tokens: int, now: float) -> Message:
    """Return a message as a window stores it, with this content and its tokens. Raises `InvalidTag`.

    The message is dated `now` unless it has a date.
    """
    automatic = OUTPUT_AND_CALL if message.tool_calls else BY_ROLE[message.role]
    return new_message(
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
