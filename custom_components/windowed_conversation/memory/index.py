"""Keeps the index in step with the tables. A row is indexed if its id is above the `unindexed` setting of its kind."""

from contextlib import suppress
import sqlite3

from .database import Database
from .errors import MemoryUnavailable
from .records import KINDS, Kind
from .schema import empty_index, unindexed
from .words import Words

# an id that no row has
_ALL = 2**62

_TEXTS = {
    "fact": "SELECT id, text FROM fact WHERE replaced_by IS NULL AND id {} ?",
    "episode": "SELECT id, text FROM episode WHERE id {} ?",
    "turn": "SELECT id, said || char(10) || answer FROM turn WHERE id {} ?",
}


def add(connection: sqlite3.Connection, words: Words, kind: Kind, row: int) -> None:
    """Add a row to the index, after it was inserted."""
    found = _text(connection, kind, row)
    if found and row > unindexed(connection, kind):
        _insert(connection, words, kind, *found)


def remove(connection: sqlite3.Connection, words: Words, kind: Kind, row: int) -> None:
    """Remove a row from the index, before it is changed or deleted."""
    found = _text(connection, kind, row)
    if found and row > unindexed(connection, kind):
        connection.execute(
            f"INSERT INTO {kind}_words({kind}_words, rowid, words, parts) VALUES ('delete', ?, ?, ?)",
            (row, *_terms(words, kind, found[1])),
        )


def postpone(connection: sqlite3.Connection, kind: Kind) -> None:
    """Empty the index of a kind, and add no row to it until `resume`."""
    empty_index(connection, kind)
    connection.execute("UPDATE setting SET value = ? WHERE name = ?", (_ALL, f"unindexed {kind}"))


def resume(connection: sqlite3.Connection, kind: Kind) -> None:
    """Let `reindex` catch up on the rows since `postpone`."""
    connection.execute(
        f"UPDATE setting SET value = (SELECT coalesce(max(id), 0) FROM {kind}) WHERE name = ? AND value = ?",
        (f"unindexed {kind}", _ALL),
    )


def reindex(connection: sqlite3.Connection, words: Words, most: int) -> bool:
    """Index up to `most` unindexed rows: facts first, newest first. Return whether there are more."""
    for kind in KINDS:
        if highest := unindexed(connection, kind):
            rows = connection.execute(
                f"{_TEXTS[kind].format('<=')} ORDER BY id DESC LIMIT ?", (highest, most)
            ).fetchall()
            for row, text in rows:
                _insert(connection, words, kind, row, text)
            rest = rows[-1][0] - 1 if len(rows) == most else 0
            connection.execute("UPDATE setting SET value = ? WHERE name = ?", (rest, f"unindexed {kind}"))
            return True
    return False


def merge(database: Database) -> None:
    """Merge the segments of the index if possible: a search looks up each word in all of them.

    Writes as much as the index has, unless it is merged already. https://sqlite.org/fts5.html#the_optimize_command
    """
    with suppress(MemoryUnavailable), database.write() as connection:
        for kind in KINDS:
            connection.execute(f"INSERT INTO {kind}_words({kind}_words) VALUES ('optimize')")


def _text(connection: sqlite3.Connection, kind: Kind, row: int) -> tuple[int, str] | None:
    found: tuple[int, str] | None = connection.execute(_TEXTS[kind].format("="), (row,)).fetchone()
    return found


def _insert(connection: sqlite3.Connection, words: Words, kind: Kind, row: int, text: str) -> None:
    connection.execute(
        f"INSERT INTO {kind}_words(rowid, words, parts) VALUES (?, ?, ?)", (row, *_terms(words, kind, text))
    )


def _terms(words: Words, kind: Kind, text: str) -> tuple[str, str]:
    """Return the words and the parts of a text. Facts, few and short, also have beginnings and ends of words."""
    terms = words.terms(text)
    return terms.words, f"{terms.parts} {terms.ends}" if kind == "fact" else terms.parts
