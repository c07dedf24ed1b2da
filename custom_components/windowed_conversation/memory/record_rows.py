"""The record of turns, as it is stored: figures as JSON in one row, words beside them, each text once."""

from dataclasses import asdict
import json
import sqlite3
from typing import Any

from .record_forgetting import make_room
from .texts import moment
from .turn_record import Sent, TurnCost, TurnRecord, TurnWords, fingerprint

# counting takes time
_EVERY = 500
# In characters. No conversation that fits a window has longer ones.
_LONGEST_SAID = 16_000
_LONGEST_CONTENT = 1_000_000
_LONGEST_CALL = 100_000
_LONGEST_FIGURE = 500
_MOST = 2**53
_CUT = "…"


type Contents = dict[str, int]


def store_turn_record(connection: sqlite3.Connection, record: TurnRecord, contents: Contents) -> None:
    """Store the record of a turn with its requests. One that is there already is not stored again.

    `contents` has the rows of texts that this transaction has stored or found: requests that follow each other send
    mostly the same.
    """
    added = connection.execute(
        "INSERT OR IGNORE INTO turn_record (id, at, figures) VALUES (?, ?, ?)",
        (record.id, moment(record.at), _json(_figures(record))),
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
        make_room(connection)
        contents.clear()


def store_cost(connection: sqlite3.Connection, known: TurnCost) -> None:
    """Store what a turn has cost, if its record is there."""
    connection.execute(
        "UPDATE turn_record SET figures = json_set(figures, '$.cost', ?) WHERE id = ?",
        (known.cost[:_LONGEST_FIGURE], known.turn),
    )


def _figures(record: TurnRecord) -> Any:
    """Return all of a record but its words, as JSON has it, without what is empty or is in a column of its own."""
    fields = asdict(record)
    for name in ("id", "at", "level", "words"):
        del fields[name]
    for request in fields["requests"]:
        del request["sent"]
    return _bounded(fields)


def _bounded(value: Any) -> Any:
    """Return a value for JSON, with every text and number in bounds. A server has written some of them."""
    match value:
        case str():
            return _cut(value, _LONGEST_FIGURE)
        case int():
            return min(max(value, 0), _MOST)
        case float():
            return moment(value)
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


def _store_sent(connection: sqlite3.Connection, place: tuple[int, int], sent: Sent, contents: Contents) -> None:
    system, tools, *messages = (
        _content(connection, each, contents) for each in (sent.system, sent.tools, *sent.messages)
    )
    connection.execute("INSERT INTO record_sent VALUES (?, ?, ?, ?, ?)", (*place, system, tools, _json(messages)))


def _content(connection: sqlite3.Connection, text: str, contents: Contents) -> int:
    """Return the row of a text, a new one if it has none."""
    if text not in contents:
        contents[text] = _stored_content(connection, text)
    return contents[text]


def _stored_content(connection: sqlite3.Connection, text: str) -> int:
    mark = bytes.fromhex(fingerprint(text))
    found = connection.execute("SELECT id FROM record_content WHERE fingerprint = ?", (mark,)).fetchone()
    if found:
        row: int = found[0]
        return row
    added = connection.execute(
        "INSERT INTO record_content (fingerprint, text) VALUES (?, ?)", (mark, _cut(text, _LONGEST_CONTENT))
    ).lastrowid
    assert added is not None
    return added


def _cut(text: str, length: int) -> str:
    sound = text.encode(errors="replace").decode()
    return sound if len(sound) <= length else sound[: length - len(_CUT)] + _CUT


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
