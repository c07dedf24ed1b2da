"""The index of words, kept in step with the tables, and the deletion of rows with what the index has of them.

A row is indexed if its id is above the `unindexed` setting of its kind.
"""

from collections.abc import Sequence
import sqlite3

from .records import KINDS, Kind
from .schema import empty_index, unindexed
from .words import Words

# How much is merged at once: what is to be written meanwhile waits for it.
_MERGED_PAGES = 200
# From how many deleted rows on the index is made anew, and how many rows it then takes in at once.
_MANY = 1_000
_STEP = 1_000
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


def merge(connection: sqlite3.Connection, *, anew: bool) -> bool:
    """Merge some segments of the index: a search looks up each word in all of them. Return whether there may be more.

    Begin `anew` first. https://sqlite.org/fts5.html#the_merge_command
    """
    pages = -_MERGED_PAGES if anew else _MERGED_PAGES
    before = connection.total_changes
    for kind in KINDS:
        connection.execute(f"INSERT INTO {kind}_words({kind}_words, rank) VALUES ('merge', ?)", (pages,))
    # a command that merges nothing counts as one change or none
    return connection.total_changes - before > len(KINDS)


def delete(
    connection: sqlite3.Connection, words: Words, kind: Kind, rows: Sequence[int], *, is_asked_for: bool = False
) -> None:
    """Delete rows so that no import restores them, under this id or the id in the file they came from.

    `is_asked_for`: a person wants them forgotten, so that no copy of a conversation brings them back either.
    """
    # after a large deletion, rebuilding the index is faster than removing each row from it
    anew = len(rows) > _MANY and len(rows) * 4 > connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0]
    if anew:
        empty_index(connection, kind)
    for row in rows:
        _delete(connection, words, kind, row, is_asked_for=is_asked_for)
    while anew and reindex(connection, words, _STEP):
        pass


def delete_oldest(connection: sqlite3.Connection, words: Words, kind: Kind, most: int) -> None:
    """Delete the oldest rows of a kind that exceeds its limit."""
    rows = connection.execute(
        f"SELECT id FROM {kind} ORDER BY at, id LIMIT max(0, (SELECT count(*) FROM {kind}) - ?)", (most,)
    ).fetchall()
    delete(connection, words, kind, [row for (row,) in rows])


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


def _delete(connection: sqlite3.Connection, words: Words, kind: Kind, row: int, *, is_asked_for: bool) -> None:
    remove(connection, words, kind, row)
    connection.execute(
        f"""
        INSERT OR IGNORE INTO tombstone
        SELECT ?1, id, at, ?3 FROM {kind} WHERE id = ?2
        UNION SELECT ?1, origin, at, ?3 FROM {kind} WHERE id = ?2 AND origin IS NOT NULL
        """,
        (kind, row, is_asked_for),
    )
    connection.execute(f"DELETE FROM {kind} WHERE id = ?", (row,))
