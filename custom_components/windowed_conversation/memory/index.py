"""The tables of memory and of the record of turns, and the full-text index.

A row is indexed if its id is above the `unindexed` setting of its kind.
"""

from collections.abc import Sequence
from importlib import import_module
import sqlite3
from typing import TYPE_CHECKING, Any

from .records import KINDS, Kind
from .words import Words

# also works if this package is imported on its own
if TYPE_CHECKING or "." in __package__:
    from .. import store as store  # noqa: PLC0414 - for the other modules of this package
else:
    store = import_module("store")

MemoryUnavailable = store.StoreUnavailable

_CHECKED = {
    "fact": ("text", "spoken", "quote"),
    "turn": ("said", "answer"),
    "episode": ("text",),
    "turn_record": ("figures",),
    "record_content": ("text",),
    "record_words": ("said", "answer", "calls"),
}

_INDEX = """
    DROP TABLE IF EXISTS {kind}_terms;
    DROP TABLE IF EXISTS {kind}_words;
    CREATE VIRTUAL TABLE {kind}_words USING fts5(words, parts, content='', tokenize='ascii');
    INSERT INTO {kind}_words({kind}_words, rank) VALUES ('secure-delete', 1);
    CREATE VIRTUAL TABLE {kind}_terms USING fts5vocab({kind}_words, 'row');
    INSERT OR REPLACE INTO setting VALUES ('unindexed {kind}', (SELECT coalesce(max(id), 0) FROM {kind}));
"""
_PROBE = (
    "CREATE VIRTUAL TABLE temp.probe USING fts5(words, content='')",
    "INSERT INTO temp.probe(probe, rank) VALUES ('secure-delete', 1)",
    "DROP TABLE temp.probe",
)

# Number of pages that one merge processes; other writes wait until it ends.
_MERGED_PAGES = 200

# If more rows than this are deleted, the index may be rebuilt instead.
_MANY = 1_000

_STEP = 1_000

# higher than any row id
_ALL = 2**62

_INDEXED = {
    "fact": "SELECT id, text FROM fact WHERE replaced_by IS NULL AND id {} ?",
    "episode": "SELECT id, text FROM episode WHERE id {} ?",
    "turn": "SELECT id, said || char(10) || answer FROM turn WHERE id {} ?",
}


def _sum(table: str) -> str:
    return store.check_sum(_CHECKED[table])


_SCRIPT = f"""
    CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    INSERT OR IGNORE INTO setting VALUES ('fact changes', 0);
    CREATE TABLE IF NOT EXISTS fact (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, person TEXT,
        private INTEGER NOT NULL, text TEXT NOT NULL, spoken TEXT NOT NULL, source TEXT NOT NULL, quote TEXT NOT NULL,
        confirmed REAL NOT NULL, told INTEGER NOT NULL, replaced_by INTEGER, sum INTEGER AS ({_sum("fact")}) STORED
    );
    CREATE INDEX IF NOT EXISTS fact_replaced ON fact (replaced_by) WHERE replaced_by IS NOT NULL;
    CREATE TABLE IF NOT EXISTS telling (fact INTEGER NOT NULL, at REAL NOT NULL, person TEXT, conversation TEXT);
    CREATE INDEX IF NOT EXISTS telling_fact ON telling (fact);
    CREATE TABLE IF NOT EXISTS turn (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, conversation TEXT NOT NULL,
        place INTEGER NOT NULL, person TEXT, agent TEXT, device TEXT, tools TEXT,
        said TEXT NOT NULL, answer TEXT NOT NULL, sum INTEGER AS ({_sum("turn")}) STORED
    );
    CREATE INDEX IF NOT EXISTS turn_place ON turn (conversation, place);
    CREATE TABLE IF NOT EXISTS episode (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, since REAL NOT NULL,
        conversation TEXT NOT NULL, person TEXT, agent TEXT, text TEXT NOT NULL,
        sum INTEGER AS ({_sum("episode")}) STORED
    );
    CREATE INDEX IF NOT EXISTS episode_conversation ON episode (conversation);
    CREATE TABLE IF NOT EXISTS tombstone (
        kind TEXT, id INTEGER, at REAL, asked_for INTEGER NOT NULL, PRIMARY KEY (kind, id, at)
    ) WITHOUT ROWID;
    CREATE TRIGGER IF NOT EXISTS fact_added AFTER INSERT ON fact
    BEGIN UPDATE setting SET value = value + 1 WHERE name = 'fact changes'; END;
    CREATE TRIGGER IF NOT EXISTS fact_updated AFTER UPDATE ON fact
    BEGIN UPDATE setting SET value = value + 1 WHERE name = 'fact changes'; END;
    CREATE TRIGGER IF NOT EXISTS fact_deleted AFTER DELETE ON fact
    BEGIN
        UPDATE setting SET value = value + 1 WHERE name = 'fact changes';
        DELETE FROM telling WHERE fact = OLD.id;
    END;
    CREATE TABLE IF NOT EXISTS turn_record (
        row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, figures TEXT NOT NULL,
        sum INTEGER AS ({_sum("turn_record")}) STORED
    );
    CREATE TABLE IF NOT EXISTS record_content (
        id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE, text TEXT NOT NULL,
        sum INTEGER AS ({_sum("record_content")}) STORED
    );
    CREATE TABLE IF NOT EXISTS record_words (
        turn INTEGER PRIMARY KEY, said TEXT NOT NULL, answer TEXT NOT NULL, calls TEXT NOT NULL,
        sum INTEGER AS ({_sum("record_words")}) STORED
    );
    CREATE TABLE IF NOT EXISTS record_sent (
        turn INTEGER NOT NULL, number INTEGER NOT NULL, system INTEGER NOT NULL, tools INTEGER NOT NULL,
        messages TEXT NOT NULL, PRIMARY KEY (turn, number)
    ) WITHOUT ROWID;
"""


def memory_room(words: str) -> store.Room:
    """Return the room of memory and the record of turns; `words` is the version of the word splitting in the index."""

    def prepare(connection: sqlite3.Connection) -> None:
        _probe(connection)
        if connection.execute("SELECT value FROM setting WHERE name = 'words'").fetchone() != (words,):
            _empty_indexes(connection)
            connection.execute("INSERT OR REPLACE INTO setting VALUES ('words', ?)", (words,))

    return store.Room(_SCRIPT, _CHECKED, prepare, _empty_indexes)


def _probe(connection: sqlite3.Connection) -> None:
    """Raise `MemoryUnavailable` if this SQLite does not support the index that memory needs."""
    try:
        for statement in _PROBE:
            connection.execute(statement)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        raise MemoryUnavailable("no_fts5") from error


def _empty_indexes(connection: sqlite3.Connection) -> None:
    for kind in KINDS:
        empty_index(connection, kind)


def empty_index(connection: sqlite3.Connection, kind: Kind) -> None:
    """Recreate the index of a kind as an empty index; `reindex` fills it."""
    store.run_script(connection, _INDEX.format(kind=kind))


def unindexed(connection: sqlite3.Connection, kind: Kind) -> int:
    """Return the id up to which rows are not indexed yet, or 0 if all are indexed."""
    query = "SELECT value FROM setting WHERE name = ?"
    highest: int = connection.execute(query, (f"unindexed {kind}",)).fetchone()[0]
    return highest


def add(connection: sqlite3.Connection, words: Words, kind: Kind, row: int) -> None:
    """Add an inserted row to the index."""
    if (text := _text_in_index(connection, kind, row)) is not None:
        _put_entry(connection, words, kind, row, text)


def remove(connection: sqlite3.Connection, words: Words, kind: Kind, row: int) -> None:
    """Remove a row from the index. Call this before the row is changed or deleted."""
    if (text := _text_in_index(connection, kind, row)) is not None:
        _put_entry(connection, words, kind, row, text, command="delete")


def postpone(connection: sqlite3.Connection, kind: Kind) -> None:
    """Empty the index of a kind, and add no rows to it until `resume` is called."""
    empty_index(connection, kind)
    connection.execute("UPDATE setting SET value = ? WHERE name = ?", (_ALL, f"unindexed {kind}"))


def resume(connection: sqlite3.Connection, kind: Kind) -> None:
    """Let `reindex` index the rows that were added since `postpone`."""
    connection.execute(
        f"UPDATE setting SET value = (SELECT coalesce(max(id), 0) FROM {kind}) WHERE name = ? AND value = ?",
        (f"unindexed {kind}", _ALL),
    )


def reindex(connection: sqlite3.Connection, words: Words, most: int) -> bool:
    """Index up to `most` unindexed rows, facts first, newest first. Return whether there may be more."""
    for kind in KINDS:
        if highest := unindexed(connection, kind):
            rows = connection.execute(
                f"{_INDEXED[kind].format('<=')} ORDER BY id DESC LIMIT ?", (highest, most)
            ).fetchall()
            for row, text in rows:
                _put_entry(connection, words, kind, row, text)
            rest = rows[-1][0] - 1 if len(rows) == most else 0
            connection.execute("UPDATE setting SET value = ? WHERE name = ?", (rest, f"unindexed {kind}"))
            return True
    return False


def merge(connection: sqlite3.Connection, *, anew: bool) -> bool:
    """Merge some index segments, since a search reads all of them. Return whether there may be more to merge.

    The first call of a series needs `anew=True`. https://sqlite.org/fts5.html#the_merge_command
    """
    pages = -_MERGED_PAGES if anew else _MERGED_PAGES
    before = connection.total_changes
    for kind in KINDS:
        connection.execute(f"INSERT INTO {kind}_words({kind}_words, rank) VALUES ('merge', ?)", (pages,))
    # SQLite counts at most one change for a command that had nothing to merge
    return connection.total_changes - before > len(KINDS)


def delete(
    connection: sqlite3.Connection, words: Words, kind: Kind, rows: Sequence[int], *, is_asked_for: bool = False
) -> None:
    """Delete rows, and record their ids and original ids as tombstones, so that no import restores them.

    `is_asked_for` is True if a person requested this: then no copy of a conversation restores them either.
    """
    # after a large deletion, rebuilding the index is faster than removing each row from it
    anew = len(rows) > _MANY and len(rows) * 4 > connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0]
    if anew:
        empty_index(connection, kind)
    for row in rows:
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
    while anew and reindex(connection, words, _STEP):
        pass


def delete_oldest(connection: sqlite3.Connection, words: Words, kind: Kind, most: int) -> None:
    """Delete the oldest rows of a kind that exceed its limit `most`."""
    oldest = f"SELECT id FROM {kind} ORDER BY at, id LIMIT max(0, (SELECT count(*) FROM {kind}) - ?)"
    delete(connection, words, kind, select_ids(connection, oldest, (most,)))


def select_ids(connection: sqlite3.Connection, query: str, parameters: Any) -> list[int]:
    """Return the ids that a query selects."""
    return [row for (row,) in connection.execute(query, parameters)]


def _text_in_index(connection: sqlite3.Connection, kind: Kind, row: int) -> str | None:
    """Return the text of a row, or None if it is not in the index."""
    query = f"{_INDEXED[kind].format('=')} AND id > (SELECT value FROM setting WHERE name = ?)"
    found = connection.execute(query, (row, f"unindexed {kind}")).fetchone()
    return found[1] if found else None


def _put_entry(
    connection: sqlite3.Connection, words: Words, kind: Kind, row: int, text: str, *, command: str | None = None
) -> None:
    """Add the entry of a row to the index, or apply an FTS5 command such as `delete` to it."""
    terms = words.terms(text)
    # facts are few and short, so the beginnings and ends of their words are indexed as well
    parts = f"{terms.parts} {terms.ends}" if kind == "fact" else terms.parts
    connection.execute(
        f"INSERT INTO {kind}_words({kind}_words, rowid, words, parts) VALUES (?, ?, ?, ?)",
        (command, row, terms.words, parts),
    )
