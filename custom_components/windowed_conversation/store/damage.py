"""Damage: rows whose text is not what was written, and files of which only a part can be read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
import sqlite3
import time
from typing import Any

from .room import Room, check_sum, text_sum

# Rows that were damaged, as far as they can be read. Nobody can tell what is in them, so forgetting empties it.
SET_ASIDE = Room("CREATE TABLE IF NOT EXISTS set_aside (of TEXT NOT NULL, at REAL NOT NULL, content BLOB)")

_SUM = "sum"


def is_whole(connection: sqlite3.Connection, rooms: Sequence[Room]) -> bool:
    """Return whether the structure of the file is undamaged, at least without the indexes of the rooms.

    Empties damaged indexes, in the caller's transaction.
    """
    if _is_sound(connection):
        return True
    try:
        for room in rooms:
            room.mend(connection)
    except sqlite3.Error:
        return False
    return _is_sound(connection)


def _is_sound(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")


def set_rows_aside(connection: sqlite3.Connection, room: Room) -> None:
    """Set each row aside whose text is not what was written, in the caller's transaction."""
    found = False
    for table, columns in room.texts.items():
        damaged = connection.execute(f"SELECT rowid FROM {table} WHERE {_SUM} IS NOT {check_sum(columns)}").fetchall()
        for (row,) in damaged:
            content = " || x'00' || ".join(f"coalesce(CAST({column} AS BLOB), x'')" for column in columns)
            connection.execute(
                f"INSERT INTO set_aside SELECT ?, ?, CAST({content} AS BLOB) FROM {table} WHERE rowid = ?",
                (table, time.time(), row),
            )
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        found |= bool(damaged)
    if found:
        room.mend(connection)


def salvage(connection: sqlite3.Connection, damaged: Path, rooms: Sequence[Room]) -> None:
    """Copy what can be read of a damaged file, table by table, in the caller's transaction."""
    with closing(sqlite3.connect(damaged)) as old:
        old.text_factory = bytes
        old.create_function("text_sum", -1, text_sum, deterministic=True)
        # while it is empty: no id is given again
        _copy(connection, old, "sqlite_sequence", {})
        for room in rooms:
            for table in _tables(connection, room):
                _copy(connection, old, table, room.texts)
            room.mend(connection)


def _tables(connection: sqlite3.Connection, room: Room) -> list[str]:
    """Return the tables of a room. A setting is about the file that it is in."""
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'setting'")
    return [name for (name,) in found if f" {name} (" in room.script]


def _copy(
    connection: sqlite3.Connection, old: sqlite3.Connection, table: str, texts: Mapping[str, tuple[str, ...]]
) -> None:
    columns = [each for each in connection.execute(f"PRAGMA table_xinfo({table})") if not each[6]]
    names = ", ".join(name for _, name, *_ in columns)
    kinds = [kind for _, _, kind, *_ in columns]
    last_first = ", ".join(f"{name} DESC" for _, name, _, _, _, key, _ in columns if key) or "rowid DESC"
    insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    whole = f" WHERE {_SUM} IS {check_sum(texts[table])}" if table in texts else ""
    for row in _rows(old, f"SELECT {names} FROM {table}{whole}", last_first):
        connection.execute(insert, [_value(value, kind) for value, kind in zip(row, kinds, strict=True)])


def _rows(old: sqlite3.Connection, selected: str, last_first: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that can be read: from the first one up to the damage, and from the last one down to it."""
    for query in (selected, f"{selected} ORDER BY {last_first}"):
        try:
            yield from old.execute(query)
        except sqlite3.Error:
            continue
        return


def _value(value: object, kind: str) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) and kind != "BLOB" else value
