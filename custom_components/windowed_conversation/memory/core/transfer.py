"""Exports memory as JSON lines, and imports them. Forgotten memories are exported without text, and stay forgotten.

Ids and existing rows do not change. If another row already has the id, the imported row gets a new id and keeps the old
one as its origin.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import json
import sqlite3
from typing import Any

from . import index
from .records import KINDS, BadLine, FactStatement, LoadCounts, MemoryFull, MemoryKind, PastSummary, PastTurn
from .rows import build_row, find_equal_fact, insert_record, mark_fact_replaced
from .search import build_visibility_condition
from .words import Words, validate_timestamp

type _MemoryRecord = FactStatement | PastTurn | PastSummary

_BATCH_SIZE = 200
# The version of each line that does not name one.
_FORMAT_VERSION = 1
# The largest integer that every JSON parser reads exactly.
_MAX_EXACT_JSON_INT = 2**53

# Names of fields in a JSON line that differ from those in the record.
_FIELD_KEYS = {"tellings": "told"}
_TYPE_BY_KIND: dict[MemoryKind, type[_MemoryRecord]] = {"fact": FactStatement, "turn": PastTurn, "summary": PastSummary}

_EXPORTED_COLUMNS_BY_KIND: dict[MemoryKind, str] = {
    "fact": "person, private, text, source, quote, search_words, confirmed, told, replaced_by, turn",
    "turn": "conversation, person, agent, device, tools, said, answer",
    "summary": "since, conversation, person, agent, text",
}
_CONVERSATION_CONDITION = "at = :at AND person IS :person AND conversation = :conversation"
_SELECT_EQUAL_BY_KIND: dict[MemoryKind, str] = {
    "fact": "SELECT id FROM fact WHERE at = :at AND person IS :person AND text = :text",
    "turn": f"SELECT id FROM turn WHERE {_CONVERSATION_CONDITION} AND said = :said AND answer = :answer",
    "summary": f"SELECT id FROM summary WHERE {_CONVERSATION_CONDITION} AND text = :text",
}


def export_lines(database: index.store.Database, person: str | None) -> Iterator[str]:
    """Yield the lines of the memories that a person may see, or of all, and of those that must stay forgotten."""
    always = {"all": person is None, "person": person, "private": True, "most": _BATCH_SIZE}
    for kind in KINDS:
        rows = [(kind, 0)]
        while rows:
            with database.read_transaction() as connection:
                found = connection.execute(
                    f"""
                    SELECT :kind AS kind, id, at, {_EXPORTED_COLUMNS_BY_KIND[kind]} FROM {kind}
                    WHERE id > :after AND (:all OR {build_visibility_condition(kind, kind)}) ORDER BY id LIMIT :most
                    """,
                    {**always, "kind": kind, "after": rows[-1][1]},
                )
                names, rows = [column[0] for column in found.description], found.fetchall()
            yield from (_format_line(dict(zip(names, row, strict=True))) for row in rows)
    if person is None:
        with database.read_transaction() as connection:
            forgotten = connection.execute("SELECT kind, id, at FROM tombstone ORDER BY kind, id, at").fetchall()
        for kind, row, at in forgotten:
            yield _format_line({"kind": "forgotten", "of": kind, "id": row, "at": at})


def _format_line(fields: dict[str, object]) -> str:
    filled = {name: value for name, value in fields.items() if value is not None}
    if "private" in filled:
        filled["private"] = bool(filled["private"])
    return json.dumps(filled, ensure_ascii=False)


def load_lines(connection: sqlite3.Connection, words: Words, lines: Iterable[str]) -> LoadCounts:
    """Import lines. Raises `BadLine` for a line that memory cannot have written."""
    loader = _LineLoader(connection, words)
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                loader.load_line(json.loads(line))
        except MemoryFull:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise BadLine(number) from error
    loader.finish()
    return LoadCounts(loader.added_count, loader.duplicate_count, loader.refused_count)


class _LineLoader:
    """The state of an import."""

    def __init__(self, connection: sqlite3.Connection, words: Words) -> None:
        self._connection = connection
        self._splitter = words
        self._id_by_exported_id: dict[tuple[MemoryKind, int], int] = {}
        self._replaced_facts: list[tuple[int, int]] = []
        self._suggestions: list[tuple[int, int]] = []
        self.added_count = self.duplicate_count = self.refused_count = 0

    def load_line(self, fields: dict[str, Any]) -> None:
        """Import one line. Raises `TypeError` or `ValueError` for one that memory cannot have written."""
        if not isinstance(fields, dict):
            raise TypeError("A line is an object")
        if (_read_field(fields, "version", int | None) or _FORMAT_VERSION) > _FORMAT_VERSION:
            raise ValueError("The line is of a later version")
        if _read_field(fields, "kind", str) == "forgotten":
            self._connection.execute(
                "INSERT OR IGNORE INTO tombstone VALUES (?, ?, ?, FALSE)",
                (_parse_kind(fields, "of"), _read_field(fields, "id", int), _read_field(fields, "at", float)),
            )
            return
        kind, row = _parse_kind(fields, "kind"), _read_field(fields, "id", int)
        record_type = _TYPE_BY_KIND[kind]
        columns = [each for each in dataclasses.fields(record_type) if each.name != "unread_language"]
        record = record_type(
            **{each.name: _read_field(fields, _FIELD_KEYS.get(each.name, each.name), each.type) for each in columns}
        )
        if self._has_row("tombstone WHERE kind = ? AND id = ? AND at = ?", kind, row, record.at):
            self.refused_count += 1
            return
        by = _read_field(fields, "replaced_by", int | None)
        stored = self._find_equal_row(kind, row, record, is_current=by is None)
        if stored is None:
            new, origin = (None, row) if self._is_id_used(kind, row) else (row, None)
            stored = insert_record(self._connection, self._splitter, record, new, origin)
            self.added_count += 1
            if isinstance(record, FactStatement) and record.turn is not None:
                self._suggestions.append((stored, record.turn))
        else:
            self.duplicate_count += 1
        self._id_by_exported_id[kind, row] = stored
        if by is not None:
            self._replaced_facts.append((stored, by))

    def finish(self) -> None:
        """Close the outdated facts, and find the turns of suggestions: both may follow on later lines."""
        for row, by in self._replaced_facts:
            if self._has_row("fact WHERE replaced_by IS NULL AND id = ?", row):
                mark_fact_replaced(self._connection, self._splitter, row, self._id_by_exported_id.get(("fact", by), 0))
        for row, turn in self._suggestions:
            # without its turn, a suggestion would never go
            if (stored := self._id_by_exported_id.get(("turn", turn))) is None:
                index.delete_rows(self._connection, self._splitter, "fact", [row])
            self._connection.execute("UPDATE fact SET turn = ? WHERE id = ?", (stored, row))

    def _is_id_used(self, kind: MemoryKind, row: int) -> bool:
        return self._has_row(f"{kind} WHERE id = ?", row) or self._has_row(
            "tombstone WHERE kind = ? AND id = ?", kind, row
        )

    def _find_equal_row(self, kind: MemoryKind, row: int, record: _MemoryRecord, *, is_current: bool) -> int | None:
        """Return the id of an equal row, or None. A row with an unused id is new, unless it repeats a fact."""
        found: int | None = None
        if self._is_id_used(kind, row):
            query = f"{_SELECT_EQUAL_BY_KIND[kind]} ORDER BY id != :id"
            found, *_ = self._connection.execute(query, {**build_row(record)[1], "id": row}).fetchone() or (None,)
        if found is None and isinstance(record, FactStatement) and is_current:
            found = find_equal_fact(self._connection, record)
        return found

    def _has_row(self, rows: str, *parameters: object) -> bool:
        return self._connection.execute(f"SELECT 1 FROM {rows}", parameters).fetchone() is not None


def _read_field(fields: dict[str, Any], key: str, kind: Any) -> Any:
    """Return a field as the given type. A tuple of strings is stored as one text, and a missing field is None.

    Raises `TypeError` or `ValueError` for a field that memory cannot have written.
    """
    value: Any = fields.get(key)
    if kind == tuple[str, ...]:
        return tuple((_read_field(fields, key, str | None) or "").split())
    if not index.store.has_json_type(value, kind):
        raise TypeError(f"{key} is missing or of another type")
    if kind is float:
        return validate_timestamp(value)
    if isinstance(value, int) and not isinstance(value, bool) and not 1 <= value <= _MAX_EXACT_JSON_INT:
        raise ValueError(f"{key} is out of range")
    return value


def _parse_kind(fields: dict[str, Any], key: str) -> MemoryKind:
    kind: MemoryKind = _read_field(fields, key, str)
    if kind not in KINDS:
        raise ValueError("There is no such kind")
    return kind
