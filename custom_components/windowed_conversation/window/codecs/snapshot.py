"""A window as JSON, and as database rows: one row for each exchange, and one for the rest of its state."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
import json
import sqlite3
from typing import Any, NamedTuple

from ..errors import InvalidTag, WindowError
from ..exchange import EvictionCounts, Exchange, OpenExchange, Snapshot
from ..messages import Attachment, Message, Native, Role, ToolCall, check_tags, join_tags, new_message, tag_set
from ..tokens import arguments_json
from ..window import WindowStats
from .fields import Allowance, CodecError, Fields, Malformed, NewerVersion, NotOurs, TooLarge

_EVICTED = EvictionCounts._fields
# More than any window ever evicts.
_MOST_EVICTED = 10**15
# The most messages of one exchange: three times as many as a turn has with the most tool rounds and the most calls in
# each. It is limited because the time for checking them is quadratic.
_MOST_MESSAGES = 10_000
MARKS = ("tags", "created", "tokens", "native", "attachments")

FORMAT = "windowed_conversation"
VERSION = 1

# For each table, the columns with texts whose damage must be detected. `TABLES` creates the tables; the column `sum` is
# the checksum of those texts. An exchange's id has the conversation's id in its upper half and the exchange's number in
# its lower half, so that the exchanges of a conversation are stored next to each other.
TEXTS = {"exchange": ("text",)}

TABLES = """
    CREATE TABLE IF NOT EXISTS conversation (
        id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, key TEXT NOT NULL, used REAL NOT NULL,
        state TEXT NOT NULL, UNIQUE (agent, key)
    );
    CREATE TABLE IF NOT EXISTS exchange (id INTEGER PRIMARY KEY, text TEXT NOT NULL, sum INTEGER AS ({sum}) STORED);
"""
_BITS = 32
_NUMBER = (1 << _BITS) - 1
_EMPTY = WindowStats(0, 0, 0, 1, 0.0, 0, False, {}, 0, 0, 0, 0, 0)


def write_marks(message: Message) -> dict[str, Any]:
    """Return the metadata of a message (tags, time, tokens and so on) as JSON values, without empty fields."""
    marks = {
        "tags": sorted(message.tags),
        "created": message.created,
        "tokens": message.tokens,
        "native": message.native and _write_native(message.native),
        "attachments": [
            {"mime_type": each.mime_type, "name": each.name, "data": b64encode(each.data).decode()}
            for each in message.attachments
        ],
    }
    return {name: value for name, value in marks.items() if value not in (None, [])}


def read_marks(fields: Fields) -> dict[str, Any]:
    """Return the `Message` fields from metadata that `write_marks` returned."""
    return {
        "tags": read_tags(fields, "tags"),
        "created": fields.seconds("created") if fields.has("created") else None,
        "tokens": fields.integer("tokens") if fields.has("tokens") else None,
        "native": _read_native(fields.child("native")) if fields.has("native") else None,
        "attachments": tuple(read_attachment(each) for each in fields.children("attachments")),
    }


def read_tags(fields: Fields, name: str) -> frozenset[str]:
    """Return the tags in a field. Raises an error if a window would not accept them."""
    try:
        return check_tags(fields.texts(name))
    except WindowError as err:
        raise fields.error(name, f"is not accepted: {err}") from err


def read_evicted(fields: Fields) -> EvictionCounts:
    """Return the eviction counts of a stored window."""
    fields.expect_only(*_EVICTED)
    return EvictionCounts(*(fields.integer(name, _MOST_EVICTED) for name in _EVICTED))


def build_exchange(
    messages: Sequence[Message], tags: frozenset[str], where: str, sources: Iterable[str] = ()
) -> Exchange:
    """Return the exchange that consists of counted messages.

    Raises `Malformed` if the messages are not one complete exchange, and `TooLarge` if there are too many.
    """
    if not messages:
        raise Malformed(f"{where} is empty")
    if len(messages) > _MOST_MESSAGES:
        raise TooLarge(f"{where} has more than {_MOST_MESSAGES} messages")
    try:
        exchange = OpenExchange(messages[0])
        for message in messages[1:]:
            exchange.append(message)
        exchange.tags = join_tags(exchange.tags, tags)
        exchange.sources = frozenset(sources)
        return exchange.to_exchange()
    except WindowError as err:
        # The text of the original error is omitted, because it contains ids.
        raise Malformed(f"{where} is no whole exchange: {type(err).__name__}") from err


def _write_native(native: Native) -> dict[str, Any] | None:
    """Return a provider's residue, or None if JSON cannot represent it. Residue is optional, so it can be omitted."""
    try:
        value = json.dumps(native.value, ensure_ascii=False, separators=(",", ":"))
    except TypeError, ValueError, RecursionError:
        return None
    if json.loads(value) != native.value:
        return None
    tokens = {"tokens": native.tokens} if native.tokens else {}
    return {"provider": native.provider, "model": native.model, "value": value, **tokens}


def _read_native(fields: Fields) -> Native:
    fields.expect_only("provider", "model", "value", "tokens")
    tokens = fields.integer("tokens") if fields.has("tokens") else 0
    return Native(fields.text("provider"), fields.text("model"), fields.json("value"), tokens)


def read_attachment(fields: Fields) -> Attachment:
    """Return a stored attachment of a message."""
    fields.expect_only("mime_type", "name", "data")
    try:
        data = b64decode(fields.text("data"), validate=True)
    except ValueError as err:
        raise fields.error("data", "is no base64") from err
    return Attachment(fields.text("mime_type"), data, fields.text("name"))


def dump_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as a dictionary of JSON values."""
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
    """Return the snapshot from a dictionary. Raises `NotOurs`, `NewerVersion`, `Malformed` and `TooLarge`."""
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
    """Return an exchange as a dictionary of JSON values."""
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
    fields = {
        "role": str(message.role),
        "content": message.content,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": arguments_json(call)} for call in message.tool_calls
        ],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }
    return {name: value for name, value in fields.items() if value not in (None, [])} | write_marks(message)


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


class StoredConversation(NamedTuple):
    """A stored conversation without its exchanges. `used` is the time of its last use, in seconds since the epoch."""

    id: int
    agent: str
    key: str
    used: float
    stats: WindowStats


class ConversationChange(NamedTuple):
    """A change of a stored conversation: the exchanges to write, and the numbers of those to delete."""

    agent: str
    key: str
    used: float
    stats: WindowStats
    changed: Sequence[Exchange] = ()
    removed: Iterable[int] = ()


def write_change(connection: sqlite3.Connection, change: ConversationChange) -> None:
    """Write the changes of a conversation to the database."""
    state = {**change.stats._asdict(), "tag_distribution": dict(change.stats.tag_distribution)}
    row = connection.execute(
        """
        INSERT INTO conversation (agent, key, used, state) VALUES (?, ?, ?, ?)
        ON CONFLICT (agent, key) DO UPDATE SET used = excluded.used, state = excluded.state RETURNING id
        """,
        (change.agent, change.key, change.used, _json(state)),
    ).fetchone()[0]
    for exchange in change.changed:
        fields = row << _BITS | exchange.number, _json(write_exchange(exchange))
        connection.execute("INSERT OR REPLACE INTO exchange (id, text) VALUES (?, ?)", fields)
    for number in change.removed:
        connection.execute("DELETE FROM exchange WHERE id = ?", (row << _BITS | number,))


def delete_conversation(connection: sqlite3.Connection, agent: str, key: str) -> None:
    """Delete a conversation and its exchanges."""
    deleted = "DELETE FROM conversation WHERE agent = ? AND key = ? RETURNING id"
    for (row,) in connection.execute(deleted, (agent, key)).fetchall():
        connection.execute("DELETE FROM exchange WHERE id BETWEEN ? AND ?", (row << _BITS, row << _BITS | _NUMBER))


def delete_orphans(connection: sqlite3.Connection) -> None:
    """Delete the exchanges whose conversation no longer exists."""
    connection.execute(f"DELETE FROM exchange WHERE id >> {_BITS} NOT IN (SELECT id FROM conversation)")


def stored_conversations(connection: sqlite3.Connection, agent: str | None = None) -> list[StoredConversation]:
    """Return the conversations of one agent, or of all agents, with the least recently used one first."""
    rows = connection.execute(
        "SELECT id, agent, key, used, state FROM conversation WHERE ?1 IS NULL OR agent = ?1 ORDER BY used", (agent,)
    )
    return [StoredConversation(row, name, key, used, _stats(state)) for row, name, key, used, state in rows]


def read_conversation(connection: sqlite3.Connection, agent: str, key: str) -> Snapshot | None:
    """Return a stored conversation with its numbered exchanges, or None if it does not exist."""
    found = connection.execute(
        "SELECT id, state FROM conversation WHERE agent = ? AND key = ?", (agent, key)
    ).fetchone()
    if found is None:
        return None
    row, state = found
    rows = connection.execute(
        "SELECT id, text FROM exchange WHERE id BETWEEN ? AND ? ORDER BY id", (row << _BITS, row << _BITS | _NUMBER)
    )
    exchanges = tuple(exchange for place, text in rows for exchange in _exchanges(place & _NUMBER, text))
    stats = _stats(state)
    evicted = EvictionCounts(stats.evicted_exchanges, stats.evicted_messages, stats.evicted_tokens, stats.trims)
    return Snapshot("", None, exchanges, evicted)


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        # The text contains a lone surrogate, which UTF-8 cannot encode, so it is escaped.
        return json.dumps(value, separators=(",", ":"))
    return text


def _stats(state: str) -> WindowStats:
    try:
        return WindowStats(**json.loads(state))
    except TypeError, ValueError, RecursionError:
        return _EMPTY


def _exchanges(number: int, text: str) -> Iterator[Exchange]:
    """Yield the exchange of a row, or nothing if the row is not valid.

    The fields are not checked like imported data, which would take four times as long. A checksum detects damage.
    """
    try:
        fields = json.loads(text)
        messages = tuple(map(_message, fields["messages"]))
        tokens = sum(message.tokens or 0 for message in messages)
        sources = frozenset(fields.get("sources", ()))
        yield Exchange(messages, tag_set(tuple(fields["tags"])), tokens, sources=sources).with_number(number)
    except AttributeError, LookupError, TypeError, ValueError, RecursionError, CodecError, InvalidTag:
        return


def _message(fields: Mapping[str, Any]) -> Message:
    native, calls = fields.get("native"), fields.get("tool_calls", ())
    return new_message(
        Role(fields["role"]),
        fields["content"],
        tuple(ToolCall(call["id"], call["name"], json.loads(call["arguments"])) for call in calls),
        fields.get("tool_call_id"),
        fields.get("name"),
        tag_set(tuple(fields.get("tags", ()))),
        fields.get("created"),
        fields["tokens"],
        native and Native(**{**native, "value": json.loads(native["value"])}),
        tuple(read_attachment(Fields(each, "attachment", Allowance())) for each in fields.get("attachments", ())),
    )
