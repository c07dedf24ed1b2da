"""The record of turns, as it is read: figures of many turns, or one turn with its words."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
import json
import sqlite3
from typing import Any, NamedTuple

from .database import Database
from .labels import REQUEST_NAMES, TURN_NAMES, find_label
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
_IS_OWN_NAME = "substr(value, -length(:own_name)) = :own_name"
# Turns that are read at once for an export.
_STEP = 100


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"(SELECT name FROM label WHERE label.id = {name}) AS {name}" for name in names)


_TURNS = f"""
    SELECT row, id, at, {_named(TURN_NAMES)}, message, failures, first_token, duration, tools,
        failed_tool_calls, cost, cause,
        EXISTS (SELECT 1 FROM record_words WHERE record_words.turn = turn_record.row) AS whole
    FROM turn_record
"""
_REQUESTS = f"""
    SELECT turn, number, {_named(REQUEST_NAMES)}, parameters, prompt, tools, called, began, duration, first_token,
        usage
    FROM request_record WHERE turn IN (SELECT value FROM json_each(?)) ORDER BY turn, number
"""


class _Row(NamedTuple):
    row: int
    record: TurnRecord


class TurnRecords:
    """The record of turns in an open file. Every method raises MemoryUnavailable."""

    def __init__(self, database: Database) -> None:
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
    named = {
        "agent": listing.agent,
        "route": listing.route,
        "outcome": listing.end,
        "error": listing.error,
        "conversation": listing.conversation,
    }
    for column, name in named.items():
        if name is not None:
            conditions.append(f"{column} = :{column}")
            values[column] = find_label(connection, name)
    if listing.people is not None:
        owners = [find_label(connection, each) for each in listing.people if each is not None]
        unknown = " OR person IS NULL" if None in listing.people else ""
        conditions.append(f"(person IN (SELECT value FROM json_each(:people)){unknown})")
        values["people"] = json.dumps(owners)
    if listing.agents is not None:
        conditions.append("agent IN (SELECT value FROM json_each(:agents))")
        values["agents"] = json.dumps([find_label(connection, each) for each in sorted(listing.agents)])
    if listing.tool is not None:
        conditions.append(f"EXISTS (SELECT 1 FROM json_each(turn_record.tools) WHERE value = :tool OR {_IS_OWN_NAME})")
        values |= {"tool": listing.tool, "own_name": f"{_NAMESPACE_END}{listing.tool}"}
    if listing.after is not None:
        conditions.append("id < :after")
        values["after"] = listing.after
    values["limit"] = min(max(listing.limit, 0), _MOST)
    return _turns(connection, f"WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT :limit", values)


def _turns(connection: sqlite3.Connection, where: str, values: Any) -> list[_Row]:
    rows = _dicts(connection.execute(_TURNS + where, values))
    requests: dict[int, list[RequestRecord]] = {row["row"]: [] for row in rows}
    for each in _dicts(connection.execute(_REQUESTS, (json.dumps(list(requests)),))):
        requests[each["turn"]].append(_request(each))
    return [_Row(row["row"], _turn(row, tuple(requests[row["row"]]))) for row in rows]


def _turn(row: dict[str, Any], requests: tuple[RequestRecord, ...]) -> TurnRecord:
    return TurnRecord(
        id=row["id"],
        at=row["at"],
        agent=row["agent"],
        route=row["route"],
        end=row["outcome"],
        reason=row["reason"],
        conversation=row["conversation"],
        person=row["person"],
        device=row["device"],
        entity_id=row["entity_id"],
        error=row["error"],
        message=row["message"],
        answered_by=row["answered_by"],
        failures=tuple(FailureRecord(*each) for each in _list(row["failures"])),
        first_token=row["first_token"],
        duration=row["duration"],
        tools=tuple(_list(row["tools"])),
        failed_tool_calls=row["failed_tool_calls"],
        cost=row["cost"],
        cause=row["cause"],
        level="whole" if row["whole"] else "figures",
        requests=requests,
    )


def _request(row: dict[str, Any]) -> RequestRecord:
    usage = _list(row["usage"])
    return RequestRecord(
        agent=row["agent"],
        provider=row["provider"],
        model=row["model"],
        end=row["outcome"],
        purpose=row["purpose"],
        began=row["began"],
        duration=row["duration"],
        first_token=row["first_token"],
        parameters=row["parameters"],
        prompt=row["prompt"] and row["prompt"].hex(),
        tools=row["tools"] and row["tools"].hex(),
        called=tuple(_list(row["called"])),
        error=row["error"],
        finish=row["finish"],
        usage=Tokens(*usage) if usage else None,
    )


def _with_words(connection: sqlite3.Connection, found: _Row) -> TurnRecord:
    kept = connection.execute("SELECT said, answer, calls FROM record_words WHERE turn = ?", (found.row,)).fetchone()
    if kept is None:
        return found.record
    said, answer, calls = kept
    rows = _sent_rows(connection, found.row)
    sent = {number: _sent(connection, system, tools, messages) for number, system, tools, messages in rows}
    requests = tuple(replace(each, sent=sent.get(number)) for number, each in enumerate(found.record.requests))
    words = TurnWords(said, answer, tuple(CallRecord(*each) for each in json.loads(calls)))
    return replace(found.record, words=words, requests=requests)


def _sent_rows(connection: sqlite3.Connection, turn: int) -> list[tuple[int, int, int, str]]:
    return connection.execute(
        "SELECT number, system, tools, messages FROM record_sent WHERE turn = ? ORDER BY number", (turn,)
    ).fetchall()


def _sent(connection: sqlite3.Connection, system: int, tools: int, messages: str) -> Sent:
    rows = json.loads(messages)
    texts = dict(_contents(connection, {system, tools, *rows}))
    return Sent(texts[system], texts[tools], tuple(texts[row] for row in rows))


def _contents(connection: sqlite3.Connection, rows: Iterable[int]) -> list[tuple[int, str]]:
    return connection.execute(
        "SELECT id, text FROM record_content WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(sorted(rows)),),
    ).fetchall()


def _lines(connection: sqlite3.Connection, found: _Row, told: set[int]) -> Iterator[str]:
    """Yield the line of a turn, and before it those of the texts that it names and that were not told yet."""
    record = found.record
    kept = connection.execute("SELECT said, answer, calls FROM record_words WHERE turn = ?", (found.row,)).fetchone()
    fields = _fields(record)
    if kept is not None:
        said, answer, calls = kept
        listed = [asdict(CallRecord(*each)) for each in json.loads(calls)]
        fields["words"] = {"said": said, "answer": answer, "calls": listed}
    for number, system, tools, messages in _sent_rows(connection, found.row):
        rows = json.loads(messages)
        fields["requests"][number]["sent"] = {"system": system, "tools": tools, "messages": rows}
        new = {system, tools, *rows} - told
        told |= new
        for row, text in _contents(connection, new):
            yield json.dumps({"kind": "content", "id": row, "text": text}, ensure_ascii=False)
    yield json.dumps(fields, ensure_ascii=False)


def _fields(record: TurnRecord) -> dict[str, Any]:
    """Return the figures of a turn as JSON has them, without what is empty."""
    fields = {"kind": "turn_record", **_filled(asdict(record))}
    fields["requests"] = [_filled(asdict(each)) for each in record.requests]
    for each in fields["requests"]:
        each["parameters"] = json.loads(each["parameters"])
    return fields


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, ())}


def _dicts(cursor: sqlite3.Cursor) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _list(text: str | None) -> list[Any]:
    return json.loads(text) if text else []
