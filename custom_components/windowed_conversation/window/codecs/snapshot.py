"""A window as JSON, and as database rows: one row for each exchange, and one for the rest of its state."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
import json
import sqlite3
from typing import Any, NamedTuple

from ..errors import InvalidTag, WindowError
from ..exchange import EvictionCounts, Exchange, OpenExchange, Snapshot
from ..messages import Attachment, Message, NativeData, Role, ToolCall, check_tags, join_tags, make_tags, to_message
from ..tokens import dump_arguments
from ..window import WindowStats
from .fields import CharAllowance, CodecError, Fields, MalformedData, TooLarge, TooNew, UnknownFormat

_EVICTION_FIELDS = EvictionCounts._fields
# More than any window ever evicts.
_MAX_EVICTED_COUNT = 10**15
# The most messages of one exchange: three times as many as a turn has with the most tool rounds and the most calls in
# each. It is limited because the time for checking them is quadratic.
_MAX_EXCHANGE_MESSAGES = 10_000
METADATA_FIELDS = ("tags", "created", "tokens", "native", "attachments")

FORMAT_NAME = "windowed_conversation"
FORMAT_VERSION = 1

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


def dump_metadata(message: Message) -> dict[str, Any]:
    """Return the metadata of a message (tags, time, tokens and so on) as JSON values, without empty fields."""
    marks = {
        "tags": sorted(message.tags),
        "created": message.created,
        "tokens": message.tokens,
        "native": message.native and _dump_native(message.native),
        "attachments": [
            {"mime_type": each.mime_type, "name": each.name, "data": b64encode(each.data).decode()}
            for each in message.attachments
        ],
    }
    return {name: value for name, value in marks.items() if value not in (None, [])}


def load_metadata(fields: Fields) -> dict[str, Any]:
    """Return the `Message` fields from metadata that `dump_metadata` returned."""
    return {
        "tags": load_tags(fields, "tags"),
        "created": fields.read_seconds("created") if fields.has("created") else None,
        "tokens": fields.read_integer("tokens") if fields.has("tokens") else None,
        "native": _load_native(fields.read_child("native")) if fields.has("native") else None,
        "attachments": tuple(load_attachment(each) for each in fields.children("attachments")),
    }


def load_tags(fields: Fields, name: str) -> frozenset[str]:
    """Return the tags in a field. Raises an error if a window would not accept them."""
    try:
        return check_tags(fields.read_texts(name))
    except WindowError as err:
        raise fields.build_error(name, f"is not accepted: {err}") from err


def load_eviction_counts(fields: Fields) -> EvictionCounts:
    """Return the eviction counts of a stored window."""
    fields.check_field_names(*_EVICTION_FIELDS)
    return EvictionCounts(*(fields.read_integer(name, _MAX_EVICTED_COUNT) for name in _EVICTION_FIELDS))


def build_exchange(
    messages: Sequence[Message], tags: frozenset[str], path: str, sources: Iterable[str] = ()
) -> Exchange:
    """Return the exchange that consists of counted messages.

    Raises `MalformedData` if the messages are not one complete exchange, and `TooLarge` if there are too many.
    """
    if not messages:
        raise MalformedData(f"{path} is empty")
    if len(messages) > _MAX_EXCHANGE_MESSAGES:
        raise TooLarge(f"{path} has more than {_MAX_EXCHANGE_MESSAGES} messages")
    try:
        exchange = OpenExchange(messages[0])
        for message in messages[1:]:
            exchange.append(message)
        exchange.tags = join_tags(exchange.tags, tags)
        exchange.sources = frozenset(sources)
        return exchange.to_exchange()
    except WindowError as err:
        # The text of the original error is omitted, because it contains ids.
        raise MalformedData(f"{path} is no whole exchange: {type(err).__name__}") from err


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


def _load_native(fields: Fields) -> NativeData:
    fields.check_field_names("provider", "model", "value", "tokens")
    tokens = fields.read_integer("tokens") if fields.has("tokens") else 0
    return NativeData(fields.read_text("provider"), fields.read_text("model"), fields.read_json("value"), tokens)


def load_attachment(fields: Fields) -> Attachment:
    """Return a stored attachment of a message."""
    fields.check_field_names("mime_type", "name", "data")
    try:
        data = b64decode(fields.read_text("data"), validate=True)
    except ValueError as err:
        raise fields.build_error("data", "is no base64") from err
    return Attachment(fields.read_text("mime_type"), data, fields.read_text("name"))


def dump_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as a dictionary of JSON values."""
    system = {} if snapshot.system is None else {"system": _dump_message(snapshot.system)}
    return {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "conversation_id": snapshot.conversation_id,
        **system,
        "exchanges": [dump_exchange(exchange) for exchange in snapshot.exchanges],
        "evicted": snapshot.evicted._asdict(),
    }


def load_snapshot(data: object) -> Snapshot:
    """Read a snapshot from a dictionary. Raises `UnknownFormat`, `TooNew`, `MalformedData` and `TooLarge`."""
    if not isinstance(data, dict) or data.get("format") != FORMAT_NAME:
        raise UnknownFormat("not the form of a conversation of ours")
    fields = Fields(data, "conversation", CharAllowance())
    version = fields.read_integer("version")
    if version > FORMAT_VERSION:
        raise TooNew(f"version {version} is later than {FORMAT_VERSION}")
    if version < FORMAT_VERSION:
        raise fields.build_error("version", "was never written")
    fields.check_field_names("format", "version", "conversation_id", "system", "exchanges", "evicted")
    if not fields.has("exchanges"):
        raise fields.build_error("exchanges", "is missing")
    return Snapshot(
        fields.read_text("conversation_id"),
        _load_system(fields.read_child("system")) if fields.has("system") else None,
        tuple(_load_exchange(exchange) for exchange in fields.children("exchanges")),
        load_eviction_counts(fields.read_child("evicted")),
    )


def dump_exchange(exchange: Exchange) -> dict[str, Any]:
    """Return an exchange as a dictionary of JSON values."""
    sources = {"sources": sorted(exchange.sources)} if exchange.sources else {}
    messages = [_dump_message(message) for message in exchange.messages]
    return {"tags": sorted(exchange.tags), "messages": messages, **sources}


def _load_exchange(fields: Fields) -> Exchange:
    fields.check_field_names("tags", "messages", "sources")
    messages = [_load_message(message) for message in fields.children("messages")]
    return build_exchange(messages, load_tags(fields, "tags"), fields.path, fields.read_texts("sources"))


def _load_system(fields: Fields) -> Message:
    message = _load_message(fields)
    if message.role != Role.SYSTEM or message.tool_calls or not message.content:
        raise MalformedData(f"{fields.path} is no system message")
    return message


def _dump_message(message: Message) -> dict[str, Any]:
    fields = {
        "role": str(message.role),
        "content": message.content,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": dump_arguments(call)} for call in message.tool_calls
        ],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }
    return {name: value for name, value in fields.items() if value not in (None, [])} | dump_metadata(message)


def _load_message(fields: Fields) -> Message:
    fields.check_field_names("role", "content", "tool_calls", "tool_call_id", "name", *METADATA_FIELDS)
    marks = load_metadata(fields)
    if marks["tokens"] is None:
        raise fields.build_error("tokens", "is missing")
    role = fields.read_text("role")
    if role not in Role:
        raise fields.build_error("role", "is none")
    return Message(
        role=Role(role),
        content=fields.read_text("content"),
        tool_calls=tuple(_load_call(call) for call in fields.children("tool_calls")),
        tool_call_id=fields.read_optional_text("tool_call_id"),
        name=fields.read_optional_text("name"),
        **marks,
    )


def _load_call(fields: Fields) -> ToolCall:
    fields.check_field_names("id", "name", "arguments")
    return ToolCall(fields.read_text("id"), fields.read_text("name"), fields.read_json_object("arguments"))


class StoredConversation(NamedTuple):
    """A stored conversation without its exchanges. `used_at` is its last use, in seconds since the epoch."""

    id: int
    agent_id: str
    window_key: str
    used_at: float
    stats: WindowStats


class ConversationChange(NamedTuple):
    """A change of a stored conversation: the exchanges to write, and the numbers of those to delete."""

    agent_id: str
    window_key: str
    used_at: float
    stats: WindowStats
    changed_exchanges: Sequence[Exchange] = ()
    removed_numbers: Iterable[int] = ()


def write_conversation_change(connection: sqlite3.Connection, change: ConversationChange) -> None:
    """Write the changes of a conversation to the database."""
    state = {**change.stats._asdict(), "tag_distribution": dict(change.stats.tag_distribution)}
    row = connection.execute(
        """
        INSERT INTO conversation (agent, key, used, state) VALUES (?, ?, ?, ?)
        ON CONFLICT (agent, key) DO UPDATE SET used = excluded.used, state = excluded.state RETURNING id
        """,
        (change.agent_id, change.window_key, change.used_at, _encode_json(state)),
    ).fetchone()[0]
    for exchange in change.changed_exchanges:
        fields = row << _BITS | exchange.number, _encode_json(dump_exchange(exchange))
        connection.execute("INSERT OR REPLACE INTO exchange (id, text) VALUES (?, ?)", fields)
    for number in change.removed_numbers:
        connection.execute("DELETE FROM exchange WHERE id = ?", (row << _BITS | number,))


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
        "SELECT id, agent, key, used, state FROM conversation WHERE ?1 IS NULL OR agent = ?1 ORDER BY used", (agent,)
    )
    return [StoredConversation(row, name, key, used, _load_stats(state)) for row, name, key, used, state in rows]


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
        fields = json.loads(text)
        messages = tuple(map(_load_row_message, fields["messages"]))
        tokens = sum(message.tokens or 0 for message in messages)
        sources = frozenset(fields.get("sources", ()))
        yield Exchange(messages, make_tags(tuple(fields["tags"])), tokens, sources=sources).with_number(number)
    except AttributeError, LookupError, TypeError, ValueError, RecursionError, CodecError, InvalidTag:
        return


def _load_row_message(fields: Mapping[str, Any]) -> Message:
    native, calls = fields.get("native"), fields.get("tool_calls", ())
    return to_message(
        Role(fields["role"]),
        fields["content"],
        tuple(ToolCall(call["id"], call["name"], json.loads(call["arguments"])) for call in calls),
        fields.get("tool_call_id"),
        fields.get("name"),
        make_tags(tuple(fields.get("tags", ()))),
        fields.get("created"),
        fields["tokens"],
        native and NativeData(**{**native, "value": json.loads(native["value"])}),
        tuple(load_attachment(Fields(each, "attachment", CharAllowance())) for each in fields.get("attachments", ())),
    )
