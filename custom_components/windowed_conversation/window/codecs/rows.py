"""Conversations as rows of an SQLite database: one for each exchange, and one for the state of the window.

An exchange is a JSON object as in `snapshot`. The system prompt is not stored: each turn sets its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import json
import sqlite3
from typing import Any, NamedTuple

from ..errors import InvalidTag
from ..exchange import EvictionCounts, Exchange, Snapshot
from ..messages import Message, Native, Role, ToolCall, new_message, tag_set
from ..window import WindowStats
from .fields import Allowance, CodecError, Fields
from .snapshot import read_attachment, write_exchange

# The columns of each table with texts whose damage must be noticed, and the script that creates the tables; `sum` is
# the checksum of those columns. The exchanges of a conversation are beside each other: its id is the upper half of
# theirs, and their number the lower half.
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


class StoredConversation(NamedTuple):
    """A conversation without its exchanges; `used` is when it was used last, in seconds since the epoch."""

    id: int
    agent: str
    key: str
    used: float
    stats: WindowStats


class ConversationChange(NamedTuple):
    """A change of a conversation, to be written: exchanges that changed, and the numbers of those that were removed."""

    agent: str
    key: str
    used: float
    stats: WindowStats
    changed: Sequence[Exchange] = ()
    removed: Iterable[int] = ()


def write_change(connection: sqlite3.Connection, change: ConversationChange) -> None:
    """Write the changes of a conversation."""
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
    """Delete a conversation."""
    deleted = "DELETE FROM conversation WHERE agent = ? AND key = ? RETURNING id"
    for (row,) in connection.execute(deleted, (agent, key)).fetchall():
        connection.execute("DELETE FROM exchange WHERE id BETWEEN ? AND ?", (row << _BITS, row << _BITS | _NUMBER))


def delete_orphans(connection: sqlite3.Connection) -> None:
    """Delete the exchanges whose conversation is not there any more."""
    connection.execute(f"DELETE FROM exchange WHERE id >> {_BITS} NOT IN (SELECT id FROM conversation)")


def stored_conversations(connection: sqlite3.Connection, agent: str | None = None) -> list[StoredConversation]:
    """Return the conversations of an agent, or of all agents, the least recently used one first."""
    rows = connection.execute(
        "SELECT id, agent, key, used, state FROM conversation WHERE ?1 IS NULL OR agent = ?1 ORDER BY used", (agent,)
    )
    return [StoredConversation(row, name, key, used, _stats(state)) for row, name, key, used, state in rows]


def read_conversation(connection: sqlite3.Connection, agent: str, key: str) -> Snapshot | None:
    """Return a conversation with its exchanges, which have their numbers, or None if it is not stored."""
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
        # half of a surrogate pair, which no file can hold
        return json.dumps(value, separators=(",", ":"))
    return text


def _stats(state: str) -> WindowStats:
    try:
        return WindowStats(**json.loads(state))
    except TypeError, ValueError, RecursionError:
        return _EMPTY


def _exchanges(number: int, text: str) -> Iterator[Exchange]:
    """Yield the exchange of a row, or nothing if it is none of ours.

    Its form is not checked as in a file from outside, which would take four times as long: it has a checksum.
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
