"""The record of turns in the file: statistics as JSON in one row, the text in other tables, equal texts only once."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
import json
import sqlite3
from typing import Any, NamedTuple

from .index import select_ids, store
from .records import (
    CallRecord,
    FailureRecord,
    RequestRecord,
    Sent,
    Tokens,
    TurnCost,
    TurnListing,
    TurnRecord,
    TurnWords,
    fingerprint,
)
from .words import moment

MOST_TURN_RECORDS = 200_000
MOST_WHOLE = 20_000
# The limits are checked only after this many records, because counting rows is slow.
_EVERY = 500
# In characters. Conversations that fit a window do not have longer texts.
_LONGEST_SAID = 16_000
_LONGEST_CONTENT = 1_000_000
_LONGEST_CALL = 100_000
_LONGEST_FIGURE = 500
_HIGHEST = 2**53
_CUT = "…"

_LONGEST_LIST = 1_000
# How many turns an export reads at a time.
_STEP = 100

AMONG = "{} IN (SELECT value FROM json_each({}))"
_TURNS = """
    SELECT row, id, at, figures, EXISTS (SELECT 1 FROM record_words WHERE record_words.turn = turn_record.row)
    FROM turn_record
"""
# Home Assistant adds a namespace to the names of some tools (`intent__HassTurnOn`).
_HAS_TOOL = """
    EXISTS (
        SELECT 1 FROM json_each(figures, '$.tools')
        WHERE value = :tool OR substr(value, -length('__' || :tool)) = '__' || :tool
    )
"""
# The SQL condition for each field of a `TurnListing`.
_CONDITIONS = {
    "since": "at >= :since",
    "until": "at <= :until",
    **{each: f"figures ->> '{each}' = :{each}" for each in ("agent", "route", "end", "error", "conversation")},
    "people": AMONG.format("coalesce(figures ->> 'person', '')", ":people"),
    "agents": AMONG.format("figures ->> 'agent'", ":agents"),
    "tool": _HAS_TOOL,
    "after": "id < :after",
}
_OLDEST = "SELECT {row} FROM {table} ORDER BY {row} LIMIT max(0, (SELECT count(*) FROM {table}) - ?)"

_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

# Row ids of the texts that a transaction has stored or looked up: consecutive requests send mostly the same texts.
type _ContentRows = dict[str, int]


def store_turn_record(connection: sqlite3.Connection, record: TurnRecord, contents: _ContentRows) -> None:
    """Store the record of a turn with its requests, unless it is already stored.

    All records of a transaction share `contents`.
    """
    added = connection.execute(
        "INSERT OR IGNORE INTO turn_record (id, at, figures) VALUES (?, ?, ?)",
        (record.id, moment(record.at), _record_json(record)),
    )
    row = added.lastrowid
    if not added.rowcount or row is None:
        return
    if record.words is not None:
        _store_words(connection, row, record.words)
        for number, request in enumerate(record.requests):
            if request.sent is not None:
                _store_sent(connection, (row, number), request.sent, contents)
    if row % _EVERY == 0:
        _make_room(connection)
        contents.clear()


def store_cost(connection: sqlite3.Connection, cost: TurnCost) -> None:
    """Store the cost of a turn, if the turn is in the record."""
    connection.execute(
        "UPDATE turn_record SET figures = json_set(figures, '$.cost', ?) WHERE id = ?",
        (cost.cost[:_LONGEST_FIGURE], cost.turn),
    )


def _record_json(record: TurnRecord) -> str:
    """Return a record as JSON, without text, empty fields, and the fields that have their own columns."""
    fields = asdict(record)
    for name in ("id", "at", "level", "words"):
        del fields[name]
    for request in fields["requests"]:
        del request["sent"]
    return _json(_bounded(fields))


def _bounded(value: Any) -> Any:
    """Return a value for JSON, with all texts and integers limited, because some of them come from a server."""
    match value:
        case str():
            return _cut(value, _LONGEST_FIGURE)
        case int():
            return min(max(value, 0), _HIGHEST)
        case dict():
            return {name: _bounded(each) for name, each in value.items() if each not in (None, "", ())}
        case tuple():
            return [_bounded(each) for each in value]
    return value


def _store_words(connection: sqlite3.Connection, turn: int, words: TurnWords) -> None:
    calls = [
        [each.name, _cut(each.arguments, _LONGEST_CALL), each.result and _cut(each.result, _LONGEST_CALL)]
        for each in words.calls
    ]
    connection.execute(
        "INSERT INTO record_words VALUES (?, ?, ?, ?)",
        (turn, _cut(words.said, _LONGEST_SAID), _cut(words.answer, _LONGEST_SAID), _json(calls)),
    )


def _store_sent(connection: sqlite3.Connection, place: tuple[int, int], sent: Sent, contents: _ContentRows) -> None:
    system, tools, *messages = (
        _content(connection, each, contents) for each in (sent.system, sent.tools, *sent.messages)
    )
    connection.execute("INSERT INTO record_sent VALUES (?, ?, ?, ?, ?)", (*place, system, tools, _json(messages)))


def _content(connection: sqlite3.Connection, text: str, contents: _ContentRows) -> int:
    """Return the row id of a text, and store the text if it is new."""
    if text not in contents:
        mark = bytes.fromhex(fingerprint(text))
        find = "SELECT id FROM record_content WHERE fingerprint = ?"
        row = (
            connection.execute(find, (mark,)).fetchone()
            or connection.execute(
                "INSERT INTO record_content (fingerprint, text) VALUES (?, ?) RETURNING id",
                (mark, _cut(text, _LONGEST_CONTENT)),
            ).fetchone()
        )
        contents[text] = row[0]
    return contents[text]


def _cut(text: str, length: int) -> str:
    sound = text.encode(errors="replace").decode()
    return sound if len(sound) <= length else sound[: length - len(_CUT)] + _CUT


class _Row(NamedTuple):
    row: int
    record: TurnRecord


class TurnRecords:
    """The record of turns in an open file. Every method raises `MemoryUnavailable`."""

    def __init__(self, database: store.Database) -> None:
        self._database = database

    def newest(self, listing: TurnListing) -> list[TurnRecord]:
        """Return turns with their statistics but without text, newest first, at most 1,000."""
        with self._database.read() as connection:
            return [each.record for each in _listed(connection, listing)]

    def get(self, turn: str) -> TurnRecord | None:
        """Return one turn, with its text if that is stored, or None if there is no such turn."""
        with self._database.read() as connection:
            found = _turns(connection, "WHERE id = ?", (turn,))
            return _with_words(connection, found[0]) if found else None

    def export(self, listing: TurnListing) -> Iterator[str]:
        """Yield the turns that meet the conditions as JSON lines, newest first, without a limit.

        Each line is either a turn (kind `turn_record`) or a text (kind `content`). Requests of turns refer to texts by
        id; the line of a text precedes the first turn that refers to it.
        """
        exported: set[int] = set()
        after = listing.after
        while True:
            with self._database.read() as connection:
                page = _listed(connection, listing._replace(after=after, limit=_STEP))
                lines = [line for each in page for line in _lines(connection, each, exported)]
            yield from lines
            if len(page) < _STEP:
                return
            after = page[-1].record.id


def _listed(connection: sqlite3.Connection, listing: TurnListing) -> list[_Row]:
    values = {name: each for name, each in listing._asdict().items() if each is not None}
    conditions = " AND ".join(_CONDITIONS[name] for name in values if name in _CONDITIONS)
    values |= {
        name: json.dumps([each or "" for each in owners])
        for name, owners in values.items()
        if isinstance(owners, frozenset)
    }
    values["limit"] = min(max(listing.limit, 0), _LONGEST_LIST)
    return _turns(connection, f"WHERE {conditions} ORDER BY id DESC LIMIT :limit", values)


def _turns(connection: sqlite3.Connection, where: str, values: Any) -> list[_Row]:
    rows = connection.execute(_TURNS + where, values).fetchall()
    return [_Row(row, _turn(turn, at, json.loads(fields), has_words)) for row, turn, at, fields, has_words in rows]


def _turn(turn: str, at: float, fields: dict[str, Any], has_words: int) -> TurnRecord:
    fields["failures"] = tuple(FailureRecord(**each) for each in fields.get("failures", ()))
    fields["tools"] = tuple(fields.get("tools", ()))
    fields["requests"] = tuple(map(_request, fields.get("requests", ())))
    return TurnRecord(id=turn, at=at, level="whole" if has_words else "figures", **fields)


def _request(fields: dict[str, Any]) -> RequestRecord:
    usage = fields.pop("usage", None)
    called = tuple(fields.pop("called", ()))
    return RequestRecord(called=called, usage=None if usage is None else Tokens(**usage), **fields)


def _with_words(connection: sqlite3.Connection, found: _Row) -> TurnRecord:
    words = _words(connection, found.row)
    if words is None:
        return found.record
    sent: dict[int, Sent] = {}
    for number, system, tools, messages in _sent_rows(connection, found.row):
        # texts that were lost because they were damaged are omitted
        texts = dict(_contents(connection, {system, tools, *messages}))
        rest = tuple(texts[row] for row in messages if row in texts)
        sent[number] = Sent(texts.get(system, ""), texts.get(tools, ""), rest)
    requests = tuple(replace(each, sent=sent.get(number)) for number, each in enumerate(found.record.requests))
    return replace(found.record, words=words, requests=requests)


def _words(connection: sqlite3.Connection, turn: int) -> TurnWords | None:
    found = connection.execute("SELECT said, answer, calls FROM record_words WHERE turn = ?", (turn,)).fetchone()
    if found is None:
        return None
    said, answer, calls = found
    return TurnWords(said, answer, tuple(CallRecord(*each) for each in json.loads(calls)))


def _sent_rows(connection: sqlite3.Connection, turn: int) -> list[tuple[int, int, int, list[int]]]:
    """Return the number of each request of a turn, with the row ids of its system prompt, tools and messages."""
    rows = connection.execute(
        "SELECT number, system, tools, messages FROM record_sent WHERE turn = ? ORDER BY number", (turn,)
    )
    return [(number, system, tools, json.loads(messages)) for number, system, tools, messages in rows]


def _contents(connection: sqlite3.Connection, rows: Collection[int]) -> list[tuple[int, str]]:
    query = f"SELECT id, text FROM record_content WHERE {AMONG.format('id', '?')} ORDER BY id"
    return connection.execute(query, (json.dumps([*rows]),)).fetchall()


def _lines(connection: sqlite3.Connection, found: _Row, exported: set[int]) -> Iterator[str]:
    """Yield the line of a turn, preceded by the lines of its texts that have not been exported yet."""
    fields = _fields(replace(found.record, words=_words(connection, found.row)))
    for number, system, tools, messages in _sent_rows(connection, found.row):
        fields["requests"][number]["sent"] = {"system": system, "tools": tools, "messages": messages}
        new = {system, tools, *messages} - exported
        exported |= new
        for row, text in _contents(connection, new):
            yield json.dumps({"kind": "content", "id": row, "text": text}, ensure_ascii=False)
    yield json.dumps(fields, ensure_ascii=False)


def _fields(record: TurnRecord) -> dict[str, Any]:
    """Return the fields of a turn for export as JSON, without empty fields."""
    fields = {"kind": "turn_record", **_filled(asdict(record))}
    fields["requests"] = [_filled(asdict(each)) for each in record.requests]
    for each in fields["requests"]:
        each["parameters"] = json.loads(each["parameters"])
    return fields


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, ())}


def delete_records(connection: sqlite3.Connection, rows: Collection[int]) -> None:
    """Delete turns from the record."""
    delete_words(connection, rows)
    connection.execute(f"DELETE FROM turn_record WHERE {AMONG.format('row', '?')}", (json.dumps([*rows]),))


def delete_words(connection: sqlite3.Connection, rows: Collection[int]) -> None:
    """Delete the text of turns, and the contents of requests that no other turn refers to. The statistics are kept."""
    if not rows:
        return
    for table in ("record_words", "record_sent"):
        connection.execute(f"DELETE FROM {table} WHERE {AMONG.format('turn', '?')}", (json.dumps([*rows]),))
    # if a list of messages is damaged, it must not prevent the deletion of other texts
    connection.execute("""
        DELETE FROM record_content WHERE id NOT IN (
            SELECT system FROM record_sent UNION SELECT tools FROM record_sent
            UNION SELECT value FROM record_sent, json_each(iif(json_valid(messages), messages, '[]'))
        )
    """)


def expire_records(
    connection: sqlite3.Connection, before: Mapping[str, float], others: float, whole_before: float
) -> bool:
    """Delete turns that began before their agent's time (`others` for all others), and text older than `whole_before`.

    Return whether there was anything to delete.
    """
    rows = connection.execute(
        "SELECT row, at, figures ->> 'agent' FROM turn_record WHERE at < ?", (max([others, *before.values()]),)
    )
    expired = [row for row, at, agent in rows if at < before.get(agent, others)]
    delete_records(connection, expired)
    older = "SELECT turn FROM record_words JOIN turn_record ON row = turn WHERE at < ?"
    wordless = select_ids(connection, older, (whole_before,))
    delete_words(connection, wordless)
    return bool(expired or wordless)


def _make_room(connection: sqlite3.Connection) -> None:
    """Delete the oldest turns, and the text of the oldest turns, that exceed the limits."""
    oldest = _OLDEST.format(row="row", table="turn_record")
    delete_records(connection, select_ids(connection, oldest, (MOST_TURN_RECORDS,)))
    delete_words(connection, select_ids(connection, _OLDEST.format(row="turn", table="record_words"), (MOST_WHOLE,)))
