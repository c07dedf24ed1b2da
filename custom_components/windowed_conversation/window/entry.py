"""Messages as a window stores them: counted, dated and tagged."""

from .messages import Message, Role, new_message
from .tags import BY_ROLE, INPUT, OUTPUT_AND_CALL, check_tags, join_tags
from .tokens import MESSAGE_OVERHEAD, TokenCounter, message_tokens
from .tool_results import cut_content


def question_entry(text: str, tags: frozenset[str], counter: TokenCounter, now: float) -> Message:
    """Return the user's message as a window stores it; `now` is in seconds since the epoch."""
    tokens = MESSAGE_OVERHEAD + counter.count(text)
    return new_message(Role.USER, text, (), None, None, join_tags(INPUT, tags) if tags else INPUT, now, tokens)


def message_entry(message: Message, most: int, counter: TokenCounter, now: float) -> Message:
    """Return a message as a window stores it; a tool result is cut to `most` tokens. Raises `InvalidTag`.

    The message is dated `now` unless it has a date.
    """
    role, calls = message.role, message.tool_calls
    if role is Role.TOOL:
        content, tokens = cut_content(message, most, counter)
    else:
        content, tokens = message.content, message_tokens(message, counter)
    automatic = OUTPUT_AND_CALL if calls else BY_ROLE[role]
    return new_message(
        role,
        content,
        calls,
        message.tool_call_id,
        message.name,
        join_tags(automatic, check_tags(message.tags)) if message.tags else automatic,
        now if message.created is None else message.created,
        tokens,
        message.native,
        message.attachments,
    )
