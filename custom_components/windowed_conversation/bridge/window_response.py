"""A window as the response of an action: plain JSON. How a window is kept is not in here."""

from collections.abc import Iterable
from typing import Any

from ..window import Message, Window


def messages_response(conversation_id: str, messages: Iterable[Message]) -> dict[str, Any]:
    """Return messages of a conversation, oldest first, the system prompt with them."""
    return {"conversation_id": conversation_id, "messages": [_message(message) for message in messages]}


def statistics_response(window: Window) -> dict[str, Any]:
    """Return the figures: tokens, messages, exchanges; the utilization in percent."""
    stats = window.stats()
    return {
        "conversation_id": window.conversation_id,
        **stats._asdict(),
        "tag_distribution": dict(stats.tag_distribution),
    }


def _message(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "role": str(message.role),
        "content": message.content,
        "tags": sorted(message.tags),
        "created": message.created,
        "tokens": message.tokens,
    }
    if message.tool_calls:
        calls = [{"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in message.tool_calls]
        fields["tool_calls"] = calls
    if message.tool_call_id is not None:
        fields |= {"tool_call_id": message.tool_call_id, "name": message.name}
    return fields
