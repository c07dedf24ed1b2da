"""The record of turns in the file: statistics as JSON in one row, the text in other tables, equal texts only once."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime, tzinfo
from hashlib import sha256
import json
import sqlite3
from typing import Any, NamedTuple

from .index import select_ids, store
from .records import (
    CallRecord,
    DailyUsage,
    FailureRecord,
    RequestContent,
    RequestRecord,
    TokenUsage,
    ToolRunRecord,
    TurnCost,
    TurnListQuery,
    TurnRecord,
    TurnText,
)
from .words import validate_timestamp

MAX_TURN_RECORDS = 200_000
MAX_TEXT_RECORDS = 20_000
# The limits are checked only after this many records, because counting rows is slow.
_TURNS_PER_LIMIT_CHECK = 500
# In characters. Conversations that fit a window do not have longer texts.
_MAX_TEXT_CHARS = 16_000
_MAX_CONTENT_CHARS = 1_000_000
_MAX_CALL_CHARS = 100_000
_MAX_FIELD_CHARS = 500
_MAX_EXACT_JSON_INT = 2**53
_ELLIPSIS = "…"

_MAX_LIST_LIMIT = 1_000
_MAX_SPEAKER_TURNS = 2_000
# How many turns an export reads at a time.
_EXPORT_PAGE_SIZE = 100

IN_LIST_CONDITION = "{} IN (SELECT value FROM json_each({}))"
_SELECT_TURNS = """
    SELECT row, id, at, figures, EXISTS (SELECT 1 FROM record_words WHERE record_words.turn = turn_record.row)
    FROM turn_record
"""
# Home Assistant adds a namespace to the names of some tools ("intent__HassTurnOn").
_TOOL_CONDITION = """
    EXISTS (
        SELECT 1 FROM json_each(figures, '$.tools')
        WHERE value = :tool OR substr(value, -length('__' || :tool)) = '__' || :tool
    )
"""
# The SQL condition for each field of a `TurnListQuery`.
_CONDITION_BY_FIELD = {
    "since": "at >= :since",
    "until": "at <= :until",
    **{each: f"figures ->> '{each}' = :{each}" for each in ("agent", "route", "end", "conversation")},
    "people": IN_LIST_CONDITION.format("coalesce(figures ->> 'person', '')", ":people"),
    "agents": IN_LIST_CONDITION.format("figures ->> 'agent'", ":agents"),
    "tool": _TOOL_CONDITION,
    "after": "id < :after",
}
_SELECT_OLDEST = "SELECT {row} FROM {table} ORDER BY {row} LIMIT max(0, (SELECT count(*) FROM {table}) - ?)"

# In seconds. The offset of every time zone is a multiple of this, and so is every change of an offset.
_SLOT_SECONDS = 900
# The sums of turns and of their requests. The routes are those of an agent's own work, which is recorded like a turn.
_SELECT_TURN_SUMS = """
    count(*) FILTER (WHERE figures ->> 'route' NOT IN ('summary', 'search_words')), 0, 0, 0, 0,
    total(figures ->> 'cost'),
    count(*) FILTER (WHERE figures ->> 'cost' IS NULL AND json_array_length(figures, '$.requests') > 0)
    FROM listed
"""
_SELECT_REQUEST_SUMS = """
    0, count(*), total(value ->> '$.usage.input'), total(value ->> '$.usage.cached'),
    total(value ->> '$.usage.output'), 0.0, 0
    FROM listed, json_each(figures, '$.requests')
"""
_SELECT_SUMS = """
    WITH listed AS (SELECT at, figures FROM turn_record WHERE {conditions})
    SELECT CAST(at / :slot_seconds AS INTEGER) AS slot, figures ->> 'agent' AS agent, figures ->> 'person' AS person,
    {sums} GROUP BY slot, agent, person
"""

# The names in an export of the fields that the actions call otherwise than the record does.
_EXPORTED_NAMES = {
    "cause": "summarizes_turn",
    "end": "outcome",
    "first_byte": "time_to_first_byte",
    "first_token": "time_to_first_token",
    "words": "text",
}

_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

# Row ids of the texts that a transaction has stored or looked up: consecutive requests send mostly the same texts.
type _ContentIds = dict[str, int]


def store_turn_record(connection: sqlite3.Connection, record: TurnRecord, contents: _ContentIds) -> None:
    """Store the record of a turn with its requests, unless it is already stored.

    All records of a transaction share `contents`.
    """
    fields = asdict(record)
    # These have their own columns and tables.
    for name in ("id", "at", "level", "words"):
        del fields[name]
    for request in fields["requests"]:
        del request["sent"]
    added = connection.execute(
        "INSERT OR IGNORE INTO turn_record (id, at, figures) VALUES (?, ?, ?)",
        (record.id, validate_timestamp(record.at), _to_json(_limit_values(fields))),
    )
    row = added.lastrowid
    if not added.rowcount or row is None:
        return
    if record.words is not None:
        _store_turn_text(connection, row, record.words)
        for number, request in enumerate(record.requests):
            if request.sent is not None:
                _store_request_content(connection, (row, number), request.sent, contents)
    if row % _TURNS_PER_LIMIT_CHECK == 0:
        _delete_excess_records(connection)
        contents.clear()


def store_turn_cost(connection: sqlite3.Connection, cost: TurnCost) -> None:
    """Store the cost of a turn, if the turn is in the record."""
    connection.execute(
        "UPDATE turn_record SET figures = json_set(figures, '$.cost', ?) WHERE id = ?",
        (cost.cost[:_MAX_FIELD_CHARS], cost.turn_id),
    )


def _limit_values(value: Any) -> Any:
    """Return a value for JSON, without empty fields, and with texts and integers limited, as some are a server's."""
    match value:
        case str():
            return _truncate(value, _MAX_FIELD_CHARS)
        case int():
            return min(max(value, 0), _MAX_EXACT_JSON_INT)
        case dict():
            return {name: _limit_values(each) for name, each in value.items() if each not in (None, "", ())}
        case tuple():
            return [_limit_values(each) for each in value]
    return value


def _store_turn_text(connection: sqlite3.Connection, turn: int, words: TurnText) -> None:
    calls = [
        [each.name, _truncate(each.arguments, _MAX_CALL_CHARS), each.result and _truncate(each.result, _MAX_CALL_CHARS)]
        for each in words.calls
    ]
    connection.execute(
        "INSERT INTO record_words VALUES (?, ?, ?, ?)",
        (turn, _truncate(words.said, _MAX_TEXT_CHARS), _truncate(words.answer, _MAX_TEXT_CHARS), _to_json(calls)),
    )


def _store_request_content(
    connection: sqlite3.Connection, place: tuple[int, int], sent: RequestContent, contents: _ContentIds
) -> None:
    system, tools, *messages = (
        _find_or_store_text(connection, each, contents) for each in (sent.system, sent.tools, *sent.messages)
    )
    connection.execute("INSERT INTO record_sent VALUES (?, ?, ?, ?, ?)", (*place, system, tools, _to_json(messages)))


def _find_or_store_text(connection: sqlite3.Connection, text: str, contents: _ContentIds) -> int:
    """Return the row id of a text, and store the text if it is new."""
    if text not in contents:
        mark = bytes.fromhex(calculate_fingerprint(text))
        find = "SELECT id FROM record_content WHERE fingerprint = ?"
        row = (
            connection.execute(find, (mark,)).fetchone()
            or connection.execute(
                "INSERT INTO record_content (fingerprint, text) VALUES (?, ?) RETURNING id",
                (mark, _truncate(text, _MAX_CONTENT_CHARS)),
            ).fetchone()
        )
        contents[text] = row[0]
    return contents[text]


def _truncate(text: str, length: int) -> str:
    sound = text.encode(errors="replace").decode()
    return sound if len(sound) <= length else sound[: length - len(_ELLIPSIS)] + _ELLIPSIS


class _StoredTurn(NamedTuple):
    row_id: int
    record: TurnRecord


class TurnRecords:
    """The record of turns in an open file. Every method raises `MemoryUnavailable`."""

    def __init__(self, database: store.Database) -> None:
        self._database = database

    def list_newest(self, query: TurnListQuery) -> list[TurnRecord]:
        """Return turns with their statistics but without text, newest first, at most 1,000."""
        with self._database.read_transaction() as connection:
            return [each.record for each in _select_listed_turns(connection, query)]

    def list_newest_texts(self, query: TurnListQuery) -> list[TurnRecord]:
        """Return the listed turns that have text, with the text of the turn but not that of its requests."""
        with self._database.read_transaction() as connection:
            return [
                replace(each.record, words=words)
                for each in _select_listed_turns(connection, query)
                if (words := _read_turn_text(connection, each.row_id)) is not None
            ]

    def get_turn(self, turn: str) -> TurnRecord | None:
        """Return one turn, with its text if that is stored, or None if there is no such turn."""
        with self._database.read_transaction() as connection:
            found = _read_turns(connection, "WHERE id = ?", (turn,))
            return _attach_turn_text(connection, found[0]) if found else None

    def list_speakers(self) -> dict[str, tuple[str | None, str | None]]:
        """Return the person and the device of the newest turn of each conversation, in the newest 2,000 turns."""
        query = """
            SELECT figures ->> 'conversation', figures ->> 'person', figures ->> 'device'
            FROM turn_record ORDER BY id DESC LIMIT ?
        """
        speakers: dict[str, tuple[str | None, str | None]] = {}
        with self._database.read_transaction() as connection:
            for conversation, person, device in connection.execute(query, (_MAX_SPEAKER_TURNS,)):
                if conversation is not None:
                    speakers.setdefault(conversation, (person, device))
        return speakers

    def sum_usage(self, query: TurnListQuery, zone: tzinfo) -> list[DailyUsage]:
        """Return the sums of the turns that meet the conditions, by local day, agent and person, newest day first.

        The limit of the query is ignored.
        """
        conditions, values = _build_conditions(query)
        sums: dict[tuple[str, str, str], DailyUsage] = {}
        with self._database.read_transaction() as connection:
            for select in (_SELECT_TURN_SUMS, _SELECT_REQUEST_SUMS):
                statement = _SELECT_SUMS.format(conditions=conditions, sums=select)
                for row in connection.execute(statement, {**values, "slot_seconds": _SLOT_SECONDS}):
                    _add_usage(sums, zone, row)
        return [sums[key] for key in sorted(sums, reverse=True)]

    def export(self, query: TurnListQuery) -> Iterator[str]:
        """Yield the turns that meet the conditions as JSON lines, newest first, without a limit.

        Each line is either a turn (kind "turn_record") or a text (kind "content"). Requests of turns refer to texts by
        id; the line of a text precedes the first turn that refers to it.
        """
        exported: set[int] = set()
        after = query.after
        while True:
            with self._database.read_transaction() as connection:
                page = _select_listed_turns(connection, query._replace(after=after, limit=_EXPORT_PAGE_SIZE))
                lines = [line for each in page for line in _iter_export_lines(connection, each, exported)]
            yield from lines
            if len(page) < _EXPORT_PAGE_SIZE:
                return
            after = page[-1].record.id


def _add_usage(sums: dict[tuple[str, str, str], DailyUsage], zone: tzinfo, row: tuple[Any, ...]) -> None:
    """Add the sums of a quarter of an hour to those of its day."""
    slot, agent, person, turns, requests, input_tokens, cached_tokens, output_tokens, cost, without_price = row
    day = datetime.fromtimestamp(slot * _SLOT_SECONDS, zone).date()
    usage = sums.setdefault((day.isoformat(), agent, person or ""), DailyUsage(day, agent, person))
    usage.turns += turns
    usage.requests += requests
    usage.input_tokens += int(input_tokens)
    usage.cached_tokens += int(cached_tokens)
    usage.output_tokens += int(output_tokens)
    usage.cost += cost
    usage.without_price += without_price


def _select_listed_turns(connection: sqlite3.Connection, query: TurnListQuery) -> list[_StoredTurn]:
    conditions, values = _build_conditions(query)
    values["limit"] = min(max(query.limit, 0), _MAX_LIST_LIMIT)
    return _read_turns(connection, f"WHERE {conditions} ORDER BY id DESC LIMIT :limit", values)


def _build_conditions(query: TurnListQuery) -> tuple[str, dict[str, Any]]:
    """Return the SQL conditions of a query, and their values."""
    values = {name: each for name, each in query._asdict().items() if each is not None}
    conditions = " AND ".join(_CONDITION_BY_FIELD[name] for name in values if name in _CONDITION_BY_FIELD)
    values |= {
        name: json.dumps([each or "" for each in owners])
        for name, owners in values.items()
        if isinstance(owners, frozenset)
    }
    return conditions, values


def _read_turns(connection: sqlite3.Connection, where: str, values: Any) -> list[_StoredTurn]:
    rows = connection.execute(_SELECT_TURNS + where, values).fetchall()
    return [
        _StoredTurn(row, _parse_turn(turn, at, json.loads(fields), has_words))
        for row, turn, at, fields, has_words in rows
    ]


def _parse_turn(turn: str, at: float, fields: dict[str, Any], has_words: int) -> TurnRecord:
    fields["failures"] = tuple(FailureRecord(**each) for each in fields.get("failures", ()))
    fields["tools"] = tuple(fields.get("tools", ()))
    fields["tool_runs"] = tuple(ToolRunRecord(**each) for each in fields.get("tool_runs", ()))
    fields["requests"] = tuple(map(_parse_request, fields.get("requests", ())))
    return TurnRecord(id=turn, at=at, level="full" if has_words else "statistics", **fields)


def _parse_request(fields: dict[str, Any]) -> RequestRecord:
    usage = fields.pop("usage", None)
    called = tuple(fields.pop("called", ()))
    return RequestRecord(called=called, usage=None if usage is None else TokenUsage(**usage), **fields)


def _attach_turn_text(connection: sqlite3.Connection, found: _StoredTurn) -> TurnRecord:
    words = _read_turn_text(connection, found.row_id)
    if words is None:
        return found.record
    sent: dict[int, RequestContent] = {}
    for number, system, tools, messages in _select_request_contents(connection, found.row_id):
        # texts that were lost because they were damaged are omitted
        texts = dict(_select_content_texts(connection, {system, tools, *messages}))
        rest = tuple(texts[row] for row in messages if row in texts)
        sent[number] = RequestContent(texts.get(system, ""), texts.get(tools, ""), rest)
    requests = tuple(replace(each, sent=sent.get(number)) for number, each in enumerate(found.record.requests))
    return replace(found.record, words=words, requests=requests)


def _read_turn_text(connection: sqlite3.Connection, turn: int) -> TurnText | None:
    found = connection.execute("SELECT said, answer, calls FROM record_words WHERE turn = ?", (turn,)).fetchone()
    if found is None:
        return None
    said, answer, calls = found
    return TurnText(said, answer, tuple(CallRecord(*each) for each in json.loads(calls)))


def _select_request_contents(connection: sqlite3.Connection, turn: int) -> list[tuple[int, int, int, list[int]]]:
    """Return the number of each request of a turn, with the row ids of its system prompt, tools and messages."""
    rows = connection.execute(
        "SELECT number, system, tools, messages FROM record_sent WHERE turn = ? ORDER BY number", (turn,)
    )
    return [(number, system, tools, json.loads(messages)) for number, system, tools, messages in rows]


def _select_content_texts(connection: sqlite3.Connection, rows: Collection[int]) -> list[tuple[int, str]]:
    query = f"SELECT id, text FROM record_content WHERE {IN_LIST_CONDITION.format('id', '?')} ORDER BY id"
    return connection.execute(query, (json.dumps([*rows]),)).fetchall()


def _iter_export_lines(connection: sqlite3.Connection, found: _StoredTurn, exported: set[int]) -> Iterator[str]:
    """Yield the line of a turn, preceded by the lines of its texts that have not been exported yet."""
    fields = _build_export_fields(replace(found.record, words=_read_turn_text(connection, found.row_id)))
    for number, system, tools, messages in _select_request_contents(connection, found.row_id):
        fields["requests"][number]["sent"] = {"system": system, "tools": tools, "messages": messages}
        new = {system, tools, *messages} - exported
        exported |= new
        for row, text in _select_content_texts(connection, new):
            yield json.dumps({"kind": "content", "id": row, "text": text}, ensure_ascii=False)
    yield json.dumps(fields, ensure_ascii=False)


def _build_export_fields(record: TurnRecord) -> dict[str, Any]:
    """Return the fields of a turn for export as JSON, without empty fields, by the names that the actions use."""
    fields = {"kind": "turn_record", **_select_exported(asdict(record))}
    fields["requests"] = [_select_exported(asdict(each)) for each in record.requests]
    for each in fields["requests"]:
        each["parameters"] = json.loads(each["parameters"])
    return fields


def _select_exported(fields: dict[str, Any]) -> dict[str, Any]:
    return {_EXPORTED_NAMES.get(name, name): value for name, value in fields.items() if value not in (None, ())}


def delete_records(connection: sqlite3.Connection, rows: Collection[int]) -> None:
    """Delete turns from the record."""
    delete_record_texts(connection, rows)
    connection.execute(f"DELETE FROM turn_record WHERE {IN_LIST_CONDITION.format('row', '?')}", (json.dumps([*rows]),))


def delete_record_texts(connection: sqlite3.Connection, rows: Collection[int]) -> None:
    """Delete the text of turns, and the contents of requests that no other turn refers to. The statistics are kept."""
    if not rows:
        return
    for table in ("record_words", "record_sent"):
        connection.execute(f"DELETE FROM {table} WHERE {IN_LIST_CONDITION.format('turn', '?')}", (json.dumps([*rows]),))
    # if a list of messages is damaged, it must not prevent the deletion of other texts
    connection.execute("""
        DELETE FROM record_content WHERE id NOT IN (
            SELECT system FROM record_sent UNION SELECT tools FROM record_sent
            UNION SELECT value FROM record_sent, json_each(iif(json_valid(messages), messages, '[]'))
        )
    """)


def expire_records(
    connection: sqlite3.Connection, before: Mapping[str, float], others: float, text_cutoff: float
) -> bool:
    """Delete turns that began before their agent's time (`others` for all others), and text older than `text_cutoff`.

    Return whether there was anything to delete.
    """
    rows = connection.execute(
        "SELECT row, at, figures ->> 'agent' FROM turn_record WHERE at < ?", (max([others, *before.values()]),)
    )
    expired = [row for row, at, agent in rows if at < before.get(agent, others)]
    delete_records(connection, expired)
    older = "SELECT turn FROM record_words JOIN turn_record ON row = turn WHERE at < ?"
    wordless = select_ids(connection, older, (text_cutoff,))
    delete_record_texts(connection, wordless)
    return bool(expired or wordless)


def _delete_excess_records(connection: sqlite3.Connection) -> None:
    """Delete the oldest turns, and the text of the oldest turns, that exceed the limits."""
    oldest = _SELECT_OLDEST.format(row="row", table="turn_record")
    delete_records(connection, select_ids(connection, oldest, (MAX_TURN_RECORDS,)))
    delete_record_texts(
        connection, select_ids(connection, _SELECT_OLDEST.format(row="turn", table="record_words"), (MAX_TEXT_RECORDS,))
    )


def calculate_fingerprint(text: str) -> str:
    """Return the SHA-256 hash of a text in hexadecimal digits, which is the same for equal texts."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
