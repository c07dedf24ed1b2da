"""The record of turns, as it is read: figures of many turns, or one turn with its words."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
import json
import sqlite3
from typing import Any, NamedTuple

from .storage import store
from .turn_record import (
    CallRecord,
    FailureRecord,
    RequestRecord,
    Sent,
    Tokens,
    TurnListing,
    TurnRecord,
    TurnWords,
)

_MOST = 1_000
# Home Assistant has a namespace before the own names of some tools (`intent__HassTurnOn`).
_NAMESPACE_END = "__"
_HAS_TOOL = """
    EXISTS (
        SELECT 1 FROM json_each(figures, '$.tools')
        WHERE value = :tool OR substr(value, -length(:own_name)) = :own_name
    )
"""
# Turns that are read at once for an export.
_STEP = 100

_TURNS = """
    SELECT row, id, at, figures, EXISTS (SELECT 1 FROM record_words WHERE record_words.turn = turn_record.row)
    FROM turn_record
"""


class _Row(NamedTuple):
    row: int
    record: TurnRecord


class TurnRecords:
    """The record of turns in an open file. Every method raises MemoryUnavailable."""

    def __init__(self, database: store.Database) -> None:
        self._database = database

    def newest(self, listing: TurnListing) -> list[TurnRecord]:
        """Return turns with their figures, newest first; at most 1,000 of them."""
        with self._database.read() as connection:
            return [each.record for each in _listed(connection, listing)]

    def get(self, turn: str) -> TurnRecord | None:
        """Return one turn with its words if they are kept, or None if there is no such turn."""
        with self._database.read() as connection:
            found = _turns(connection, "WHERE id = ?", (turn,))
            return _with_words(connection, found[0]) if found else None

    def export(self, listing: TurnListing) -> Iterator[str]:
        """Yield the turns that meet the conditions as lines of JSON, newest first, whatever the limit.

        A line is a turn, of the kind `turn_record`, or a text, of the kind `content`. The requests of turns name texts
        by their ids; the line of a text comes before that of the first turn which names it.
        """
        told: set[int] = set()
        after = listing.after
        while True:
            with self._database.read() as connection:
                page = _listed(connection, listing._replace(after=after, limit=_STEP))
                lines = [line for each in page for line in _lines(connection, each, told)]
            yield from lines
            if len(page) < _STEP:
                return
            after = page[-1].record.id


def _listed(connection: sqlite3.Connection, listing: TurnListing) -> list[_Row]:
    conditions = ["at >= :since", "at <= :until"]
    values: dict[str, Any] = {"since": listing.since, "until": listing.until}
    for name in ("agent", "route", "end", "error", "conversation"):
        if (wanted := getattr(listing, name)) is not None:
            conditions.append(f"figures ->> '{name}' = :{name}")
            values[name] = wanted
    if listing.people is not None:
        unknown = " OR figures ->> 'person' IS NULL" if None in listing.people else ""
        conditions.append(f"(figures ->> 'person' IN (SELECT value FROM json_each(:people)){unknown})")
        values["people"] = json.dumps([*listing.people])
    if listing.agents is not None:
        conditions.append("figures ->> 'agent' IN (SELECT value FROM json_each(:agents))")
        values["agents"] = json.dumps([*listing.agents])
    if listing.tool is not None:
        conditions.append(_HAS_TOOL)
        values |= {"tool": listing.tool, "own_name": f"{_NAMESPACE_END}{listing.tool}"}
    if listing.after is not None:
        conditions.append("id < :after")
        values["after"] = listing.after
    values["limit"] = min(max(listing.limit, 0), _MOST)
    return _turns(connection, f"WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT :limit", values)


def _turns(connection: sqlite3.Connection, where: str, values: Any) -> list[_Row]:
    rows = connection.execute(_TURNS + where, values).fetchall()
    return [_Row(row, _turn(turn, at, json.loads(figures), has_words)) for row, turn, at, figures, has_words in rows]


def _turn(turn: str, at: float, figures: dict[str, Any], has_words: int) -> TurnRecord:
    figures["failures"] = tuple(FailureRecord(**each) for each in figures.get("failures", ()))
    figures["tools"] = tuple(figures.get("tools", ()))
    figures["requests"] = tuple(map(_request, figures.get("requests", ())))
    return TurnRecord(id=turn, at=at, level="whole" if has_words else "figures", **figures)


def _request(figures: dict[str, Any]) -> RequestRecord:
    usage = figures.pop("usage", None)
    called = tuple(figures.pop("called", ()))
    return RequestRecord(called=called, usage=None if usage is None else Tokens(**usage), **figures)


def _with_words(connection: sqlite3.Connection, found: _Row) -> TurnRecord:
    words = _words(connection, found.row)
    if words is None:
        return found.record
    rows = _sent_rows(connection, found.row)
    sent = {number: _sent(connection, system, tools, messages) for number, system, tools, messages in rows}
    requests = tuple(replace(each, sent=sent.get(number)) for number, each in enumerate(found.record.requests))
    return replace(found.record, words=words, requests=requests)


def _words(connection: sqlite3.Connection, turn: int) -> TurnWords | None:
    kept = connection.execute("SELECT said, answer, calls FROM record_words WHERE turn = ?", (turn,)).fetchone()
    if kept is None:
        return None
    said, answer, calls = kept
    return TurnWords(said, answer, tuple(CallRecord(*each) for each in json.loads(calls)))


def _sent_rows(connection: sqlite3.Connection, turn: int) -> list[tuple[int, int, int, list[int]]]:
    """Return the number of each request of a turn, with the rows of its texts."""
    rows = connection.execute(
        "SELECT number, system, tools, messages FROM record_sent WHERE turn = ? ORDER BY number", (turn,)
    )
    return [(number, system, tools, json.loads(messages)) for number, system, tools, messages in rows]


def _sent(connection: sqlite3.Connection, system: int, tools: int, messages: list[int]) -> Sent:
    # a text that was damaged is not there any more
    texts = dict(_contents(connection, {system, tools, *messages}))
    return Sent(texts.get(system, ""), texts.get(tools, ""), tuple(texts[row] for row in messages if row in texts))


def _contents(connection: sqlite3.Connection, rows: Iterable[int]) -> list[tuple[int, str]]:
    return connection.execute(
        "SELECT id, text FROM record_content WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(sorted(rows)),),
    ).fetchall()


def _lines(connection: sqlite3.Connection, found: _Row, told: set[int]) -> Iterator[str]:
    """Yield the line of a turn, and before it those of the texts that it names and that were not told yet."""
    fields = _fields(replace(found.record, words=_words(connection, found.row)))
    for number, system, tools, messages in _sent_rows(connection, found.row):
        fields["requests"][number]["sent"] = {"system": system, "tools": tools, "messages": messages}
        new = {system, tools, *messages} - told
        told |= new
        for row, text in _contents(connection, new):
            yield json.dumps({"kind": "content", "id": row, "text": text}, ensure_ascii=False)
    yield json.dumps(fields, ensure_ascii=False)


def _fields(record: TurnRecord) -> dict[str, Any]:
    """Return a turn as JSON has it, without what is empty."""
    fields = {"kind": "turn_record", **_filled(asdict(record))}
    fields["requests"] = [_filled(asdict(each)) for each in record.requests]
    for each in fields["requests"]:
        each["parameters"] = json.loads(each["parameters"])
    return fields


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, ())}
