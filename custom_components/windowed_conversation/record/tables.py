"""The tables of the record: statistics as JSON in one row, the text in other tables, equal texts only once."""

from collections.abc import Callable, Collection, Mapping, Set as AbstractSet
from dataclasses import replace
import json
import math
import sqlite3

from ..memory.core import Erasure, LostRows, mark_unerased
from ..store import Schema, checksum_sql
from .fields import (
    MAX_FIELD_CHARS,
    ToolCallText,
    TurnRecord,
    calculate_fingerprint,
    encode_json,
    encode_statistics,
    truncate,
)

MAX_TURNS = 200_000
MAX_TEXTS = 20_000
# The limits are checked only after this many turns, because counting rows is slow.
_TURNS_PER_LIMIT_CHECK = 500
# In characters. Conversations that fit a window do not have longer texts.
_MAX_TEXT_CHARS = 16_000
_MAX_CONTENT_CHARS = 1_000_000
_MAX_CALL_CHARS = 100_000
# The end of the year 9899: Python knows no year after 9999, in any time zone.
_MAX_SECONDS = 250_241_011_200

IN_LIST_CONDITION = "{} IN (SELECT value FROM json_each({}))"

_CHECKSUM_COLUMNS = {
    "turn_record": ("figures",),
    "record_content": ("text",),
    "record_words": ("said", "answer", "calls"),
}
RECORD = Schema(
    """
    CREATE TABLE IF NOT EXISTS turn_record (
        row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, figures TEXT NOT NULL,
        sum INTEGER AS ({turn_record}) STORED
    );
    CREATE TABLE IF NOT EXISTS record_content (
        id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE, text TEXT NOT NULL,
        sum INTEGER AS ({record_content}) STORED
    );
    CREATE TABLE IF NOT EXISTS record_words (
        turn INTEGER PRIMARY KEY, said TEXT NOT NULL, answer TEXT NOT NULL, calls TEXT NOT NULL,
        sum INTEGER AS ({record_words}) STORED
    );
    CREATE TABLE IF NOT EXISTS record_sent (
        turn INTEGER NOT NULL, number INTEGER NOT NULL, system INTEGER NOT NULL, tools INTEGER NOT NULL,
        messages TEXT NOT NULL, PRIMARY KEY (turn, number)
    ) WITHOUT ROWID;
    """.format(**{table: checksum_sql(columns) for table, columns in _CHECKSUM_COLUMNS.items()}),
    _CHECKSUM_COLUMNS,
)

# A shared window passes one person's input on to others, so other people's turns in the same conversation count too.
_SELECT_RECEIVED = """
    SELECT row FROM turn_record JOIN record_words ON record_words.turn = row
    WHERE at >= :since AND at < :before AND (
        :everybody OR coalesce(figures ->> 'person', '') IN (SELECT value FROM json_each(:people))
        OR figures ->> 'conversation_id' IN (SELECT value FROM json_each(:conversations))
        OR figures ->> 'conversation_id' IN (
            SELECT figures ->> 'conversation_id' FROM turn_record
            WHERE figures ->> 'person' IN (SELECT value FROM json_each(:people))
        )
    )
"""
_SELECT_OWNED = """
    SELECT row FROM turn_record WHERE at >= :since AND at < :before
    AND (:anybody OR figures ->> 'person' = :person) AND (:agent IS NULL OR figures ->> 'agent' = :agent)
"""
_SELECT_TEXTS = f"""
    SELECT said || char(10) || answer || char(10) || calls FROM record_words
    WHERE {IN_LIST_CONDITION.format("turn", ":rows")}
"""
_SELECT_OLDEST = "SELECT {row} FROM {table} ORDER BY {row} LIMIT max(0, (SELECT count(*) FROM {table}) - ?)"


def store_turn(connection: sqlite3.Connection, build: Callable[[], TurnRecord]) -> None:
    """Store the turn that `build` returns, unless it is already stored. Raises `ValueError` for impossible numbers."""
    turn = build()
    if not abs(turn["time"]) <= _MAX_SECONDS:
        raise ValueError("The time is not finite")
    added = connection.execute(
        "INSERT OR IGNORE INTO turn_record (id, at, figures) VALUES (?, ?, ?)",
        (turn["turn_id"], turn["time"], encode_statistics(turn)),
    )
    row = added.lastrowid
    if not added.rowcount or row is None:
        return
    if turn["has_text"]:
        _store_text(connection, row, turn)
    if row % _TURNS_PER_LIMIT_CHECK == 0:
        oldest = _SELECT_OLDEST.format(row="row", table="turn_record")
        _delete_turns(connection, _select_rows(connection, oldest, (MAX_TURNS,)))
        oldest = _SELECT_OLDEST.format(row="turn", table="record_words")
        _delete_texts(connection, _select_rows(connection, oldest, (MAX_TEXTS,)))


def store_turn_cost(connection: sqlite3.Connection, turn_id: str, cost: str) -> None:
    """Store the cost of a turn in US dollars, if the turn is in the record."""
    connection.execute(
        "UPDATE turn_record SET figures = json_set(figures, '$.cost', ?) WHERE id = ?",
        (cost[:MAX_FIELD_CHARS], turn_id),
    )


def _store_text(connection: sqlite3.Connection, row: int, turn: TurnRecord) -> None:
    calls = [_encode_call(each) for each in turn["tool_calls"]]
    texts = [truncate(each, _MAX_TEXT_CHARS) for each in (turn["said"], turn["answer"])]
    connection.execute("INSERT INTO record_words VALUES (?, ?, ?, ?)", (row, *texts, encode_json(calls)))
    for number, attempt in enumerate(turn["attempts"]):
        if sent := attempt.get("sent"):
            parts = (sent["system"], encode_json(sent["tools"]), *map(encode_json, sent["messages"]))
            system, tools, *messages = (_find_or_store_text(connection, each) for each in parts)
            values = row, number, system, tools, encode_json(messages)
            connection.execute("INSERT INTO record_sent VALUES (?, ?, ?, ?, ?)", values)


def _encode_call(call: ToolCallText) -> list[object]:
    """Return a tool call as a list without field names, because requests to forget search this text."""
    arguments, result = encode_json(call["arguments"]), call["result"]
    is_long = len(arguments) > _MAX_CALL_CHARS
    return [
        call["name"],
        truncate(arguments, _MAX_CALL_CHARS) if is_long else call["arguments"],
        result and truncate(result, _MAX_CALL_CHARS),
    ]


def _find_or_store_text(connection: sqlite3.Connection, text: str) -> int:
    """Return the row id of a text, and store the text if it is new."""
    mark = bytes.fromhex(calculate_fingerprint(text))
    row: tuple[int] = (
        connection.execute("SELECT id FROM record_content WHERE fingerprint = ?", (mark,)).fetchone()
        or connection.execute(
            "INSERT INTO record_content (fingerprint, text) VALUES (?, ?) RETURNING id",
            (mark, truncate(text, _MAX_CONTENT_CHARS)),
        ).fetchone()
    )
    return row[0]


def list_recorded_people(connection: sqlite3.Connection) -> set[str]:
    """Return the ids of people who own a turn in the record."""
    rows = connection.execute("SELECT DISTINCT figures ->> 'person' FROM turn_record")
    return {person for (person,) in rows if person is not None}


def forget_turns(connection: sqlite3.Connection, erasure: Erasure, lost: LostRows, dry_run: bool) -> LostRows:
    """Delete the rows that an erasure reaches in the record, unless `dry_run` is true. Return them added to `lost`.

    The record loses all turns of a person or an agent if everything of theirs is forgotten. A turn may repeat a
    forgotten text in words that cannot be recognized. Therefore, every turn whose person or conversation may have
    received it loses its text, even from before the first forgotten row, because memory does not store failed turns.
    """
    conditions = erasure.conditions
    person, (since, before) = conditions.person, conditions.time_span
    rows, textless = set[int](), set[int]()
    if not conditions.is_explicit and "turn" in conditions.kinds:
        owner = {"anybody": person is ..., "person": None if person is ... else person, "agent": conditions.agent}
        rows = _select_rows(connection, _SELECT_OWNED, {"since": since, "before": before, **owner})
    if conditions.query is not None:
        textless |= _find_received_turns(connection, None if person is ... else {person, None}, conditions.time_span)
    if lost.has_memories:
        people = None if None in erasure.people else erasure.people
        textless |= _find_received_turns(connection, people, (-math.inf, math.inf), erasure.conversations)
    textless -= rows
    matching = 0
    if conditions.query is not None:
        texts = connection.execute(_SELECT_TEXTS, {"rows": json.dumps([*textless])})
        matching = sum([erasure.repeats_query(text) for (text,) in texts])
    if not dry_run:
        _delete_turns(connection, rows)
        _delete_texts(connection, textless)
    return replace(
        lost, records=tuple(sorted(rows)), textless_records=tuple(sorted(textless)), matching_record_count=matching
    )


def _find_received_turns(
    connection: sqlite3.Connection,
    people: AbstractSet[str | None] | None,
    span: tuple[float, float],
    conversations: AbstractSet[str] = frozenset(),
) -> set[int]:
    """Return the rows with text in a time span that these people (None: everybody) may have received."""
    since, before = span
    values = {
        "since": since,
        "before": before,
        "everybody": people is None,
        "people": json.dumps([each or "" for each in people or ()]),
        "conversations": json.dumps([*conversations]),
    }
    return _select_rows(connection, _SELECT_RECEIVED, values)


def expire_turns(
    connection: sqlite3.Connection, before: Mapping[str, float], others: float, text_cutoff: float
) -> None:
    """Delete turns that began before their agent's time (`others` for all others), and text older than `text_cutoff`.

    `Memory.forget_expired` erases their bytes.
    """
    old = connection.execute(
        "SELECT row, at, figures ->> 'agent' FROM turn_record WHERE at < ?", (max([others, *before.values()]),)
    )
    expired = {row for row, at, agent in old if at < before.get(agent, others)}
    _delete_turns(connection, expired)
    older = "SELECT turn FROM record_words JOIN turn_record ON row = turn WHERE at < ?"
    textless = _select_rows(connection, older, (text_cutoff,))
    _delete_texts(connection, textless)
    if expired or textless:
        mark_unerased(connection)


def _delete_turns(connection: sqlite3.Connection, rows: Collection[int]) -> None:
    _delete_texts(connection, rows)
    connection.execute(f"DELETE FROM turn_record WHERE {IN_LIST_CONDITION.format('row', '?')}", (json.dumps([*rows]),))


def _delete_texts(connection: sqlite3.Connection, rows: Collection[int]) -> None:
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


def _select_rows(connection: sqlite3.Connection, query: str, values: Mapping[str, object] | tuple[object]) -> set[int]:
    return {row for (row,) in connection.execute(query, values)}
