"""Deletes rows together with their index entries. What remains is a tombstone without words."""

from collections.abc import Sequence
import sqlite3

from . import index
from .records import Kind
from .schema import empty_index
from .words import Words

_MANY = 1_000
_STEP = 1_000


def delete(connection: sqlite3.Connection, words: Words, kind: Kind, rows: Sequence[int]) -> None:
    """Delete rows so that no import restores them, under this id or the id in the file they came from."""
    # after a large deletion, rebuilding the index is faster than removing each row from it
    anew = len(rows) > _MANY and len(rows) * 4 > connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0]
    if anew:
        empty_index(connection, kind)
    for row in rows:
        _delete(connection, words, kind, row)
    while anew and index.reindex(connection, words, _STEP):
        pass


def delete_oldest(connection: sqlite3.Connection, words: Words, kind: Kind, most: int) -> None:
    """Delete the oldest rows of a kind that exceeds its limit."""
    rows = connection.execute(
        f"SELECT id FROM {kind} ORDER BY at, id LIMIT max(0, (SELECT count(*) FROM {kind}) - ?)", (most,)
    ).fetchall()
    delete(connection, words, kind, [row for (row,) in rows])


def _delete(connection: sqlite3.Connection, words: Words, kind: Kind, row: int) -> None:
    index.remove(connection, words, kind, row)
    connection.execute(
        f"""
        INSERT OR IGNORE INTO tombstone
        SELECT ?1, id, at FROM {kind} WHERE id = ?2
        UNION SELECT ?1, origin, at FROM {kind} WHERE id = ?2 AND origin IS NOT NULL
        """,
        (kind, row),
    )
    connection.execute(f"DELETE FROM {kind} WHERE id = ?", (row,))
