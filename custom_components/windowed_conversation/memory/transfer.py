"""Exports memory as JSON lines, and imports them. Forgotten memories are exported without text, and stay forgotten.

Ids and existing rows do not change. If another row already has the id, the imported row gets a new id and keeps the old
one as its origin. A large import is not indexed, because indexing would take most of the time; `reindex` does it.
"""

from collections import Counter
from collections.abc import Iterable
import dataclasses
import json
import sqlite3
from typing import Any

from . import index
from .records import KINDS, BadLine, Episode, Kind, Loaded, MemoryFull, PastTurn
from .rows import FactStatement, close_fact, equal_fact, insert, row_values
from .search import visible
from .words import Words, moment

type _Record = FactStatement | PastTurn | Episode

_MANY = 1_000
# The largest integer that every JSON parser reads exactly.
_HIGHEST = 2**53

# Names of fields in a JSON line that differ from those in the record.
_KEYS = {"tellings": "told"}
_RECORDS: dict[Kind, type[_Record]] = {"fact": FactStatement, "turn": PastTurn, "episode": Episode}

_COLUMNS: dict[Kind, str] = {
    "fact": "person, private, text, source, quote, confirmed, told, replaced_by",
    "turn": "conversation, person, agent, device, tools, said, answer",
    "episode": "since, conversation, person, agent, text",
}
_WITHIN = "at = :at AND person IS :person AND conversation = :conversation"
_SAME: dict[Kind, str] = {
    "fact": "SELECT id FROM fact WHERE at = :at AND person IS :person AND text = :text",
    "turn": f"SELECT id FROM turn WHERE {_WITHIN} AND said = :said AND answer = :answer",
    "episode": f"SELECT id FROM episode WHERE {_WITHIN} AND text = :text",
}


class _Fields:
    """The fields of one line. Reading a field that memory cannot have written raises `TypeError` or `ValueError`."""

    def __init__(self, line: str) -> None:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise TypeError("A line is an object")
        self._fields: dict[str, Any] = fields

    def read(self, name: str, kind: Any) -> Any:
        """Return a field as the given type. A tuple of strings is stored as one text, and a missing field is None."""
        value: Any = self._fields.get(name)
        if kind == tuple[str, ...]:
            return tuple((self.read(name, str | None) or "").split())
        accepted = float | int if kind is float else kind
        # bool is a subclass of int in Python
        if not isinstance(value, accepted) or isinstance(value, bool) != (kind is bool):
            raise TypeError(f"{name} is missing or of another type")
        if kind is float:
            return moment(value)
        if isinstance(value, int) and not isinstance(value, bool) and not 1 <= value <= _HIGHEST:
            raise ValueError(f"{name} is out of range")
        return value


def export_rows(
    connection: sqlite3.Connection, kind: Kind, person: str | None, after: int, most: int
) -> list[tuple[int, str]]:
    """Return the next rows after an id with their lines: all rows, or those that a person may see."""
    rows = connection.execute(
        f"""
        SELECT :kind AS kind, id, at, {_COLUMNS[kind]} FROM {kind}
        WHERE id > :after AND (:all OR {visible(kind, kind)}) ORDER BY id LIMIT :most
        """,
        {"kind": kind, "after": after, "all": person is None, "person": person, "private": True, "most": most},
    )
    names = [column[0] for column in rows.description]
    return [(row[1], _line(dict(zip(names, row, strict=True)))) for row in rows]


def export_forgotten(connection: sqlite3.Connection) -> list[str]:
    """Return a line for each memory that must stay forgotten."""
    return [
        _line({"kind": "forgotten", "of": kind, "id": row, "at": at})
        for kind, row, at in connection.execute("SELECT kind, id, at FROM tombstone ORDER BY kind, id, at")
    ]


def _line(fields: dict[str, object]) -> str:
    filled = {name: value for name, value in fields.items() if value is not None}
    if "private" in filled:
        filled["private"] = bool(filled["private"])
    return json.dumps(filled, ensure_ascii=False)


def load(connection: sqlite3.Connection, words: Words, lines: Iterable[str]) -> Loaded:
    """Import lines. Raises `BadLine` for a line that memory cannot have written."""
    loader = _Loader(connection, words)
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                loader.take(_Fields(line))
        except MemoryFull:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise BadLine(number) from error
    loader.finish()
    return Loaded(loader.added.total(), loader.duplicates, loader.refused)


class _Loader:
    """The state of an import."""

    def __init__(self, connection: sqlite3.Connection, words: Words) -> None:
        self._connection = connection
        self._words = words
        self._facts: dict[int, int] = {}
        self._replaced: list[tuple[int, int]] = []
        self._postponed: set[Kind] = set()
        self.added = Counter[Kind]()
        self.duplicates = self.refused = 0

    def take(self, fields: _Fields) -> None:
        """Import one line."""
        if fields.read("kind", str) == "forgotten":
            self._connection.execute(
                "INSERT OR IGNORE INTO tombstone VALUES (?, ?, ?, FALSE)",
                (_kind(fields, "of"), fields.read("id", int), fields.read("at", float)),
            )
            return
        kind, row = _kind(fields, "kind"), fields.read("id", int)
        record_type = _RECORDS[kind]
        columns = dataclasses.fields(record_type)
        record = record_type(**{each.name: fields.read(_KEYS.get(each.name, each.name), each.type) for each in columns})
        if self._has("tombstone WHERE kind = ? AND id = ? AND at = ?", kind, row, record.at):
            self.refused += 1
            return
        by = fields.read("replaced_by", int | None)
        stored = self._equal_row(kind, row, record, is_current=by is None)
        if stored is None:
            new, origin = (None, row) if self._is_taken(kind, row) else (row, None)
            stored = insert(self._connection, self._words, record, new, origin)
            self._on_added(kind)
        else:
            self.duplicates += 1
        if kind == "fact":
            self._facts[row] = stored
        if by is not None:
            self._replaced.append((stored, by))

    def finish(self) -> None:
        """Close the outdated facts, whose replacements may follow on later lines, and resume the indexing."""
        for row, by in self._replaced:
            if self._has("fact WHERE replaced_by IS NULL AND id = ?", row):
                close_fact(self._connection, self._words, row, self._facts.get(by, 0))
        for kind in self._postponed:
            index.resume(self._connection, kind)

    def _on_added(self, kind: Kind) -> None:
        """Count an added row, and postpone the indexing of a kind if it has many new rows and few old ones."""
        self.added[kind] += 1
        if self.added[kind] % _MANY or kind in self._postponed:
            return
        rows: int = self._connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0]
        if self.added[kind] * 2 >= rows:
            index.postpone(self._connection, kind)
            self._postponed.add(kind)

    def _is_taken(self, kind: Kind, row: int) -> bool:
        return self._has(f"{kind} WHERE id = ?", row) or self._has("tombstone WHERE kind = ? AND id = ?", kind, row)

    def _equal_row(self, kind: Kind, row: int, record: _Record, *, is_current: bool) -> int | None:
        """Return the id of an equal row, or None. A row with an unused id is new, unless it repeats a fact."""
        found = None
        if self._is_taken(kind, row):
            query, values = _SAME[kind], {**row_values(record)[1], "id": row}
            found = self._row(f"{query} AND id = :id", values) or self._row(query, values)
        if found is None and isinstance(record, FactStatement) and is_current:
            found = equal_fact(self._connection, record)
        return found

    def _has(self, rows: str, *parameters: object) -> bool:
        return self._connection.execute(f"SELECT 1 FROM {rows}", parameters).fetchone() is not None

    def _row(self, query: str, parameters: dict[str, object]) -> int | None:
        found = self._connection.execute(query, parameters).fetchone()
        return found[0] if found else None


def _kind(fields: _Fields, name: str) -> Kind:
    for kind in KINDS:
        if kind == fields.read(name, str):
            return kind
    raise ValueError("There is no such kind")
