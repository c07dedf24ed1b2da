"""Tombstones beside the database: an older copy of it does not bring back what a person has forgotten.

Each line has the kind, the id and the time of a forgotten item, and no words.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
import json
import os
from pathlib import Path
import sqlite3
from typing import Literal, NamedTuple

from .forget import forget, select
from .records import KINDS, Forgotten, Kind
from .selection import Selection
from .words import Words

_MODE = 0o600
_RECORD: Literal["record"] = "record"


class Tombstone(NamedTuple):
    """What remains of a forgotten fact, turn or episode, or of a turn in the record."""

    kind: Kind | Literal["record"]
    id: int
    at: float


def tombstones_of(connection: sqlite3.Connection, chosen: Forgotten) -> list[Tombstone]:
    """Return the tombstones of what is selected, also under the ids in the file it was imported from."""
    return [
        Tombstone(kind, each, at)
        for kind, ids in chosen.ids.items()
        for row, origin, at in connection.execute(
            f"SELECT id, origin, at FROM {kind} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),)
        )
        for each in (row, origin)
        if each is not None
    ] + [
        Tombstone(_RECORD, row, at)
        for row, at in connection.execute(
            "SELECT row, at FROM turn_record WHERE row IN (SELECT value FROM json_each(?))",
            (json.dumps(chosen.records),),
        )
    ]


def write(path: Path, tombstones: Iterable[Tombstone]) -> None:
    """Append tombstones to the file beside the database. Raises `OSError` if it cannot be written."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _MODE)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        # ends a line that a crash has cut off
        file.write("".join(f"\n{kind} {row} {at!r}" for kind, row, at in tombstones))
        file.flush()
        os.fsync(file.fileno())


def settle(connection: sqlite3.Connection, words: Words, path: Path) -> bool:
    """Forget what the tombstones list and this copy of the database still has, and return whether there was any.

    What repeats it is forgotten again, too, as the copy may have summaries that were replaced since. Raises `OSError`
    if the file of tombstones cannot be read.
    """
    missing = {each for each in read_tombstones(path) if not _is_known(connection, each)}
    if not missing:
        return False
    connection.executemany("INSERT OR IGNORE INTO tombstone VALUES (?, ?, ?)", missing)
    ids = tuple((kind, row) for kind in KINDS for row in _rows(connection, kind, missing))
    chosen = select(connection, words, Selection(ids, person=..., since=None, before=None, query=None, kinds=KINDS))
    chosen = replace(chosen, records=tuple(_recorded(connection, missing)))
    forget(connection, words, chosen)
    return chosen != Forgotten()


def _is_known(connection: sqlite3.Connection, tombstone: Tombstone) -> bool:
    known = connection.execute("SELECT 1 FROM tombstone WHERE kind = ? AND id = ? AND at = ?", tombstone)
    return known.fetchone() is not None


def _rows(connection: sqlite3.Connection, kind: Kind, missing: set[Tombstone]) -> Iterator[int]:
    for row, origin, at in connection.execute(f"SELECT id, origin, at FROM {kind}").fetchall():
        if Tombstone(kind, row, at) in missing or Tombstone(kind, origin, at) in missing:
            yield row


def _recorded(connection: sqlite3.Connection, missing: set[Tombstone]) -> Iterator[int]:
    for row, at in connection.execute("SELECT row, at FROM turn_record").fetchall():
        if Tombstone(_RECORD, row, at) in missing:
            yield row


def read_tombstones(path: Path) -> frozenset[Tombstone]:
    """Return the tombstones in a file. Raises `OSError` if it cannot be read."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return frozenset()
    return frozenset(tombstone for line in lines for tombstone in _parsed(line))


def _parsed(line: str) -> Iterator[Tombstone]:
    """Yield the tombstone of a line, or nothing if the line is incomplete."""
    kind, _, rest = line.partition(" ")
    row, _, at = rest.partition(" ")
    try:
        yield from (Tombstone(known, int(row), float(at)) for known in (*KINDS, _RECORD) if known == kind)
    except ValueError:
        return
