"""A window as JSON, and as database rows: one row for each exchange, and one for the rest of its state."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
import json
import sqlite3
from typing import Any, NamedTuple

from ..errors import InvalidTag, WindowError
from ..exchange import EvictionCounts, Exchange, OpenExchange, Snapshot
from ..messages import (
    Attachment,
    Message,
    NativeData,
    Role,
    ToolCall,
    check_tags,
    is_int_in_range,
    join_tags,
    to_message,
)
from ..tokens import dump_arguments
from ..window import WindowStats
from .fields import (
    CodecError,
    FieldChecks,
    check_data,
    check_object,
    decode_json_text,
    is_text_list,
    is_timestamp,
)

# More than any window ever evicts.
_MAX_EVICTED_COUNT = 10**15
# The most messages of one exchange: three times as many as a turn has with the most tool rounds and the most calls in
# each. It is limited because the time for checking them is quadratic.
_MAX_EXCHANGE_MESSAGES = 10_000

FORMAT_NAME = "windowed_conversation"
FORMAT_VERSION = 1

_SNAPSHOT_FIELDS: FieldChecks = {
    "format": lambda name: name == FORMAT_NAME,
    "version": lambda version: is_int_in_range(version, FORMAT_VERSION, FORMAT_VERSION),
    "conversation_id": str,
    "exchanges": list,
    "evicted": dict,
}
_EVICTION_FIELDS: FieldChecks = dict.fromkeys(EvictionCounts._fields, partial(is_int_in_range, most=_MAX_EVICTED_COUNT))
_EXCHANGE_FIELDS: FieldChecks = {"tags": is_text_list, "messages": list}
_MESSAGE_FIELDS: FieldChecks = {"role": lambda role: isinstance(role, str) and role in Role, "content": str}
# The fields of a message that only a window has.
METADATA_FIELDS: FieldChecks = {
    "tags": is_text_list,
    "created": is_timestamp,
    "tokens": is_int_in_range,
    "native": dict,
    "attachments": list,
}
_OPTIONAL_MESSAGE_FIELDS: FieldChecks = {
    "tool_calls": list,
    "tool_call_id": str,
    "name": str,
    **METADATA_FIELDS,
}
_CALL_FIELDS: FieldChecks = {"id": str, "name": str, "arguments": str}
_NATIVE_FIELDS: FieldChecks = {"provider": str, "model": str, "value": str}
_ATTACHMENT_FIELDS: FieldChecks = {"mime_type": str, "name": str, "data": str}

# For each table, the columns with texts whose damage must be detected. `TABLES_SQL` creates the tables; the column
# `sum` is the checksum of those texts. An exchange's id has the conversation's id in its upper half and the exchange's
# number in its lower half, so that the exchanges of a conversation are stored next to each other.
TEXTS = {"exchange": ("text",)}

TABLES_SQL = """
    CREATE TABLE IF NOT EXISTS conversation (
        id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, key TEXT NOT NULL, used REAL NOT NULL,
        state TEXT NOT NULL, UNIQUE (agent, key)
    );
    CREATE TABLE IF NOT EXISTS exchange (id INTEGER PRIMARY KEY, text TEXT NOT NULL, sum INTEGER AS ({sum}) STORED);
"""
_BITS = 32
_NUMBER_MASK = (1 << _BITS) - 1
_EMPTY_STATS = WindowStats(0, 0, 0, 1, 0.0, 0, False, {}, 0, 0, 0, 0, 0)


def dump_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as a dictionary of JSON values."""
    system = {} if snapshot.system is None else {"system": dump_message(snapshot.system)}
    return {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "conversation_id": snapshot.conversation_id,
        **system,
        "exchanges": [dump_exchange(exchange) for exchange in snapshot.exchanges],
        "evicted": snapshot.evicted._asdict(),
    }


def load_snapshot(data: object) -> Snapshot:
    """Return the snapshot that `dump_snapshot` returned as a dictionary. Raises `CodecError`."""
    check_data(data)
    fields = check_object(data, "conversation", _SNAPSHOT_FIELDS, {"system": dict})
    system = None
    if "system" in fields:
        system = _load_counted_message(fields["system"], "system")
        if system.role is not Role.SYSTEM or system.tool_calls or not system.content:
            raise CodecError("system is no system message")
    exchanges = [_load_exchange(each, f"exchanges[{place}]") for place, each in enumerate(fields["exchanges"])]
    return Snapshot(fields["conversation_id"], system, tuple(exchanges), load_eviction_counts(fields["evicted"]))


def load_eviction_counts(data: object) -> EvictionCounts:
    """Return the eviction counts of a stored window. Raises `CodecError`."""
    return EvictionCounts(**check_object(data, "evicted", _EVICTION_FIELDS, {}))


def dump_exchange(exchange: Exchange) -> dict[str, Any]:
    """Return an exchange as a dictionary of JSON values."""
    sources = {"sources": sorted(exchange.sources)} if exchange.sources else {}
    messages = [dump_message(message) for message in exchange.messages]
    return {"tags": sorted(exchange.tags), "messages": messages, **sources}


def _load_exchange(data: object, path: str) -> Exchange:
    fields = check_object(data, path, _EXCHANGE_FIELDS, {"sources": is_text_list})
    messages = [_load_counted_message(each, f"{path}[{place}]") for place, each in enumerate(fields["messages"])]
    return build_exchange(messages, fields["tags"], path, fields.get("sources", ()))


def build_exchange(messages: Sequence[Message], tags: Iterable[str], path: str, sources: Iterable[str]) -> Exchange:
    """Return the exchange of counted messages. Raises `CodecError` if they are not one complete exchange."""
    if not 0 < len(messages) <= _MAX_EXCHANGE_MESSAGES:
        raise CodecError(f"{path} has no messages, or more than {_MAX_EXCHANGE_MESSAGES}")
    try:
        exchange = OpenExchange(messages[0])
        for message in messages[1:]:
            exchange.append(message)
        exchange.tags = join_tags(exchange.tags, check_tags(tags))
        exchange.sources = frozenset(sources)
        return exchange.to_exchange()
    except WindowError as err:
        # The text of the original error is omitted, because it contains ids.
        raise CodecError(f"{path} is no whole exchange: {type(err).__name__}") from err


def dump_message(message: Message) -> dict[str, Any]:
    """Return a message as a dictionary of JSON values, without empty fields."""
    fields = {
        "role": str(message.role),
        "content": message.content,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": dump_arguments(call)} for call in message.tool_calls
        ],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "tags": sorted(message.tags),
        "created": message.created,
        "tokens": message.tokens,
        "native": message.native and _dump_native(message.native),
        "attachments": [
            {"mime_type": each.mime_type, "name": each.name, "data": b64encode(each.data).decode()}
            for each in message.attachments
        ],
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}


def _dump_native(native: NativeData) -> dict[str, Any] | None:
    """Return a provider's residue, or None if JSON cannot represent it. Residue is optional, so it can be omitted."""
    try:
        value = json.dumps(native.value, ensure_ascii=False, separators=(",", ":"))
    except TypeError, ValueError, RecursionError:
        return None
    if json.loads(value) != native.value:
        return None
    tokens = {"tokens": native.tokens} if native.tokens else {}
    return {"provider": native.provider, "model": native.model, "value": value, **tokens}


def load_message(data: object, path: str) -> Message:
    """Return the message that `dump_message` returned as a dictionary, or one without metadata. Raises `CodecError`."""
    fields = check_object(data, path, _MESSAGE_FIELDS, _OPTIONAL_MESSAGE_FIELDS)
    try:
        tags = check_tags(fields.get("tags", ()))
    except InvalidTag as err:
        raise CodecError(f"{path}.tags is not valid: {err}") from err
    return to_message(
        Role(fields["role"]),
        fields["content"],
        tuple([_load_call(call, f"{path}.tool_calls") for call in fields.get("tool_calls", ())]),
        fields.get("tool_call_id"),
        fields.get("name"),
        tags,
        fields.get("created"),
        fields.get("tokens"),
        _load_native(fields["native"], f"{path}.native") if "native" in fields else None,
        tuple([_load_attachment(each, f"{path}.attachments") for each in fields.get("attachments", ())]),
    )


def _load_counted_message(data: object, path: str) -> Message:
    message = load_message(data, path)
    if message.tokens is None:
        raise CodecError(f"{path} has no tokens")
    return message


def _load_call(data: object, path: str) -> ToolCall:
    fields = check_object(data, path, _CALL_FIELDS, {})
    arguments = decode_json_text(fields["arguments"], path)
    if not isinstance(arguments, dict):
        raise CodecError(f"{path} has arguments that are no object")
    return ToolCall(fields["id"], fields["name"], arguments)


def _load_native(data: object, path: str) -> NativeData:
    fields = check_object(data, path, _NATIVE_FIELDS, {"tokens": is_int_in_range})
    return NativeData(**{**fields, "value": decode_json_text(fields["value"], path)})


def _load_attachment(data: object, path: str) -> Attachment:
    fields = check_object(data, path, _ATTACHMENT_FIELDS, {})
    try:
        return Attachment(fields["mime_type"], b64decode(fields["data"], validate=True), fields["name"])
    except ValueError as err:
        raise CodecError(f"{path} has data that are no base64") from err


class StoredConversation(NamedTuple):
    """A stored conversation without its exchanges. `used_at` is its last use, in seconds since the epoch."""

    agent_id: str
    window_key: str
    used_at: float
    stats: WindowStats


def write_conversation(
    connection: sqlite3.Connection,
    stored: StoredConversation,
    changed_exchanges: Iterable[Exchange] = (),
    removed_numbers: Iterable[int] = (),
) -> None:
    """Write a conversation and its changed exchanges, and delete those with the removed numbers."""
    state = {**stored.stats._asdict(), "tag_distribution": dict(stored.stats.tag_distribution)}
    row = connection.execute(
        """
        INSERT INTO conversation (agent, key, used, state) VALUES (?, ?, ?, ?)
        ON CONFLICT (agent, key) DO UPDATE SET used = excluded.used, state = excluded.state RETURNING id
        """,
        (stored.agent_id, stored.window_key, stored.used_at, _encode_json(state)),
    ).fetchone()[0]
    rows = [(row << _BITS | each.number, _encode_json(dump_exchange(each))) for each in changed_exchanges]
    connection.executemany("INSERT OR REPLACE INTO exchange (id, text) VALUES (?, ?)", rows)
    connection.executemany("DELETE FROM exchange WHERE id = ?", [(row << _BITS | each,) for each in removed_numbers])


def delete_conversation(connection: sqlite3.Connection, agent: str, key: str) -> None:
    """Delete a conversation and its exchanges."""
    deleted = "DELETE FROM conversation WHERE agent = ? AND key = ? RETURNING id"
    for (row,) in connection.execute(deleted, (agent, key)).fetchall():
        connection.execute("DELETE FROM exchange WHERE id BETWEEN ? AND ?", (row << _BITS, row << _BITS | _NUMBER_MASK))


def delete_orphans(connection: sqlite3.Connection) -> None:
    """Delete the exchanges whose conversation no longer exists."""
    connection.execute(f"DELETE FROM exchange WHERE id >> {_BITS} NOT IN (SELECT id FROM conversation)")


def list_stored_conversations(connection: sqlite3.Connection, agent: str | None = None) -> list[StoredConversation]:
    """Return the conversations of one agent, or of all agents, with the least recently used one first."""
    rows = connection.execute(
        "SELECT agent, key, used, state FROM conversation WHERE ?1 IS NULL OR agent = ?1 ORDER BY used", (agent,)
    )
    return [StoredConversation(name, key, used, _load_stats(state)) for name, key, used, state in rows]


def read_conversation(connection: sqlite3.Connection, agent: str, key: str) -> Snapshot | None:
    """Return a stored conversation with its numbered exchanges, or None if it does not exist."""
    found = connection.execute(
        "SELECT id, state FROM conversation WHERE agent = ? AND key = ?", (agent, key)
    ).fetchone()
    if found is None:
        return None
    row, state = found
    rows = connection.execute(
        "SELECT id, text FROM exchange WHERE id BETWEEN ? AND ? ORDER BY id",
        (row << _BITS, row << _BITS | _NUMBER_MASK),
    )
    exchanges = tuple(exchange for place, text in rows for exchange in _load_exchange_row(place & _NUMBER_MASK, text))
    stats = _load_stats(state)
    evicted = EvictionCounts(stats.evicted_exchanges, stats.evicted_messages, stats.evicted_tokens, stats.trims)
    return Snapshot("", None, exchanges, evicted)


def read_first_exchanges(connection: sqlite3.Connection, agent: str) -> dict[str, Exchange]:
    """Return the oldest exchange of each stored conversation of an agent, by window key."""
    rows = connection.execute(
        """
        SELECT key, text FROM conversation JOIN exchange ON exchange.id = (
            SELECT min(id) FROM exchange
            WHERE id BETWEEN conversation.id << :bits AND conversation.id << :bits | :mask
        ) WHERE agent = :agent
        """,
        {"bits": _BITS, "mask": _NUMBER_MASK, "agent": agent},
    )
    return {key: exchange for key, text in rows for exchange in _load_exchange_row(0, text)}


def _encode_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        # The text contains a lone surrogate, which UTF-8 cannot encode, so it is escaped.
        return json.dumps(value, separators=(",", ":"))
    return text


def _load_stats(state: str) -> WindowStats:
    try:
        return WindowStats(**json.loads(state))
    except TypeError, ValueError, RecursionError:
        return _EMPTY_STATS


def _load_exchange_row(number: int, text: str) -> Iterator[Exchange]:
    """Yield the exchange of a row, or nothing if the row is not valid."""
    try:
        yield _load_exchange(json.loads(text), "exchange").with_number(number)
    except ValueError, RecursionError, CodecError:
        return
