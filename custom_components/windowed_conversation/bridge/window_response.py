"""Windows as the responses of actions: plain JSON, times in ISO 8601. How a window is kept is not in here."""

from collections.abc import Iterable
import time
from typing import Any

from homeassistant.util import dt as dt_util
from homeassistant.util.json import JsonObjectType

from ..window import Message, Window, WindowStats


def messages_response(conversation_id: str, messages: Iterable[Message]) -> dict[str, Any]:
    """Return the response of `get_window` with messages: oldest first, including the system prompt."""
    return {"conversation_id": conversation_id, "messages": [_message(message) for message in messages]}


def statistics_response(window: Window) -> dict[str, Any]:
    """Return the response of `get_window` with figures: tokens, messages, exchanges, and the utilization in percent."""
    stats = window.stats()
    return {
        "conversation_id": window.conversation_id,
        **stats._asdict(),
        "tag_distribution": dict(stats.tag_distribution),
    }


def conversation_response(agent: str, conversation_id: str, stats: WindowStats, idle: float) -> JsonObjectType:
    """Return a conversation's entry in a list: figures but no text. It was used `idle` seconds ago."""
    return {
        "entity_id": agent,
        "conversation_id": conversation_id,
        "last_used": iso_time(time.time() - idle),
        "exchanges": stats.exchange_count,
        "tokens": stats.current_tokens,
        "utilization": round(stats.utilization, 1),
    }


def iso_time(seconds: float) -> str | None:
    """Return a time in Home Assistant's zone, None for one that an imported message cannot have."""
    try:
        return dt_util.as_local(dt_util.utc_from_timestamp(seconds)).isoformat()
    except OSError, OverflowError, ValueError:
        return None


def _message(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "role": str(message.role),
        "content": message.content,
        "tags": sorted(message.tags),
        "created": None if message.created is None else iso_time(message.created),
        "tokens": message.tokens,
    }
    if message.tool_calls:
        calls = [{"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in message.tool_calls]
        fields["tool_calls"] = calls
    if message.tool_call_id is not None:
        fields |= {"tool_call_id": message.tool_call_id, "name": message.name}
    return fields
