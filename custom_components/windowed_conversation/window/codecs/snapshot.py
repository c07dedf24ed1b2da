"""Our own format of a conversation: a JSON dictionary that loses nothing.

    {"format": "windowed_conversation", "version": 1, "conversation_id": ..., "system": message or absent,
     "exchanges": [{"tags": [...], "messages": [message, ...], "sources": ["fact:7", ...] or absent}, ...],
     "evicted": {"exchanges": 0, "messages": 0, "tokens": 0, "trims": 0}}

A message has the fields of `Message` without the empty ones. Arguments and residue are JSON texts, so that numbers and
the order of keys survive. The policy is not stored: the current one applies.
"""

from typing import Any

from ..exchange import Exchange
from ..messages import Message, Role, ToolCall
from ..restore import Snapshot
from ..tokens import arguments_json
from .errors import Malformed, NewerVersion, NotOurs
from .fields import Allowance, Fields
from .parts import (
    MARKS,
    build_exchange,
    read_evicted,
    read_marks,
    read_tags,
    write_marks,
)

FORMAT = "windowed_conversation"
VERSION = 1


def dump_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as a dictionary."""
    system = {} if snapshot.system is None else {"system": _write_message(snapshot.system)}
    return {
        "format": FORMAT,
        "version": VERSION,
        "conversation_id": snapshot.conversation_id,
        **system,
        "exchanges": [write_exchange(exchange) for exchange in snapshot.exchanges],
        "evicted": snapshot.evicted._asdict(),
    }


def load_snapshot(data: object) -> Snapshot:
    """Return the snapshot that a dictionary holds. Raises `NotOurs`, `NewerVersion`, `Malformed` and `TooLarge`."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise NotOurs("not the form of a conversation of ours")
    fields = Fields(data, "conversation", Allowance())
    version = fields.integer("version")
    if version > VERSION:
        raise NewerVersion(f"version {version} is later than {VERSION}")
    if version < VERSION:
        raise fields.error("version", "was never written")
    fields.expect_only("format", "version", "conversation_id", "system", "exchanges", "evicted")
    if not fields.has("exchanges"):
        raise fields.error("exchanges", "is missing")
    return Snapshot(
        fields.text("conversation_id"),
        _read_system(fields.child("system")) if fields.has("system") else None,
        tuple(_read_exchange(exchange) for exchange in fields.children("exchanges")),
        read_evicted(fields.child("evicted")),
    )


def write_exchange(exchange: Exchange) -> dict[str, Any]:
    """Return an exchange as a dictionary."""
    sources = {"sources": sorted(exchange.sources)} if exchange.sources else {}
    messages = [_write_message(message) for message in exchange.messages]
    return {"tags": sorted(exchange.tags), "messages": messages, **sources}


def _read_exchange(fields: Fields) -> Exchange:
    fields.expect_only("tags", "messages", "sources")
    messages = [_read_message(message) for message in fields.children("messages")]
    return build_exchange(messages, read_tags(fields, "tags"), fields.where, fields.texts("sources"))


def _read_system(fields: Fields) -> Message:
    message = _read_message(fields)
    if message.role != Role.SYSTEM or message.tool_calls or not message.content:
        raise Malformed(f"{fields.where} is no system message")
    return message


def _write_message(message: Message) -> dict[str, Any]:
    written = {
        "role": str(message.role),
        "content": message.content,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": arguments_json(call)} for call in message.tool_calls
        ],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }
    return {name: value for name, value in written.items() if value not in (None, [])} | write_marks(message)


def _read_message(fields: Fields) -> Message:
    fields.expect_only("role", "content", "tool_calls", "tool_call_id", "name", *MARKS)
    marks = read_marks(fields)
    if marks["tokens"] is None:
        raise fields.error("tokens", "is missing")
    role = fields.text("role")
    if role not in Role:
        raise fields.error("role", "is none")
    return Message(
        role=Role(role),
        content=fields.text("content"),
        tool_calls=tuple(_read_call(call) for call in fields.children("tool_calls")),
        tool_call_id=fields.optional_text("tool_call_id"),
        name=fields.optional_text("name"),
        **marks,
    )


def _read_call(fields: Fields) -> ToolCall:
    fields.expect_only("id", "name", "arguments")
    return ToolCall(fields.text("id"), fields.text("name"), fields.json_object("arguments"))
