"""The tables of memory, and the full-text index.

A row is indexed if its id is above the `unindexed_id` setting of its kind.
"""

from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
import sqlite3
from typing import TYPE_CHECKING, Any

from .records import KINDS, MemoryKind
from .words import Words

# also works if this package is imported on its own
if TYPE_CHECKING or __package__ != "memory.core":
    from ... import store as store  # noqa: PLC0414 - for the other modules of this package
else:
    store = import_module("store")

MemoryUnavailable = store.StoreUnavailable

_COLUMNS_BY_TABLE = {
    "fact": ("text", "spoken", "quote", "search_words"),
    "turn": ("said", "answer"),
    "summary": ("text",),
}

_INDEX_SCRIPT = """
    DROP TABLE IF EXISTS {kind}_terms;
    DROP TABLE IF EXISTS {kind}_words;
    CREATE VIRTUAL TABLE {kind}_words USING fts5(words, parts, search_words, content='', tokenize='ascii');
    INSERT INTO {kind}_words({kind}_words, rank) VALUES ('secure-delete', 1);
    CREATE VIRTUAL TABLE {kind}_terms USING fts5vocab({kind}_words, 'row');
    INSERT OR REPLACE INTO setting VALUES ('unindexed {kind}', (SELECT coalesce(max(id), 0) FROM {kind}));
"""
_PROBE_STATEMENTS = (
    "CREATE VIRTUAL TABLE temp.probe USING fts5(words, content='')",
    "INSERT INTO temp.probe(probe, rank) VALUES ('secure-delete', 1)",
    "DROP TABLE temp.probe",
)

# Number of pages that one merge processes; other writes wait until it ends.
_PAGES_PER_MERGE = 200

# If more rows than this are deleted, the index may be rebuilt instead.
_REBUILD = 1_000

_REINDEX_BATCH_SIZE = 1_000

_SELECT_TEXT_BY_KIND = {
    "fact": "SELECT id, text, coalesce(search_words, '') FROM fact WHERE replaced_by IS NULL AND id {} ?",
    "summary": "SELECT id, text, '' FROM summary WHERE id {} ?",
    "turn": "SELECT id, said || char(10) || answer, '' FROM turn WHERE id {} ?",
}


def _build_checksum_sql(table: str) -> str:
    return store.checksum_sql(_COLUMNS_BY_TABLE[table])


_SCHEMA_SCRIPT = f"""
    CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS fact (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, person TEXT,
        private INTEGER NOT NULL, text TEXT NOT NULL, spoken TEXT NOT NULL, source TEXT NOT NULL, quote TEXT NOT NULL,
        search_words TEXT, confirmed REAL NOT NULL, told INTEGER NOT NULL, replaced_by INTEGER, turn INTEGER,
        sum INTEGER AS ({_build_checksum_sql("fact")}) STORED
    );
    CREATE INDEX IF NOT EXISTS fact_replaced ON fact (replaced_by) WHERE replaced_by IS NOT NULL;
    CREATE INDEX IF NOT EXISTS fact_turn ON fact (turn) WHERE turn IS NOT NULL;
    CREATE TABLE IF NOT EXISTS telling (fact INTEGER NOT NULL, at REAL NOT NULL, person TEXT, conversation TEXT);
    CREATE INDEX IF NOT EXISTS telling_fact ON telling (fact);
    CREATE TABLE IF NOT EXISTS turn (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, conversation TEXT NOT NULL,
        place INTEGER NOT NULL, person TEXT, agent TEXT, device TEXT, tools TEXT,
        said TEXT NOT NULL, answer TEXT NOT NULL, sum INTEGER AS ({_build_checksum_sql("turn")}) STORED
    );
    CREATE INDEX IF NOT EXISTS turn_place ON turn (conversation, place);
    CREATE TABLE IF NOT EXISTS unread (turn INTEGER PRIMARY KEY, language TEXT NOT NULL);
    CREATE TRIGGER IF NOT EXISTS turn_deleted AFTER DELETE ON turn
    BEGIN DELETE FROM unread WHERE turn = OLD.id; END;
    CREATE TABLE IF NOT EXISTS summary (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, since REAL NOT NULL,
        conversation TEXT NOT NULL, person TEXT, agent TEXT, text TEXT NOT NULL,
        sum INTEGER AS ({_build_checksum_sql("summary")}) STORED
    );
    CREATE INDEX IF NOT EXISTS summary_conversation ON summary (conversation);
    CREATE TABLE IF NOT EXISTS tombstone (
        kind TEXT, id INTEGER, at REAL, asked_for INTEGER NOT NULL, PRIMARY KEY (kind, id, at)
    ) WITHOUT ROWID;
    CREATE TRIGGER IF NOT EXISTS fact_deleted AFTER DELETE ON fact
    BEGIN DELETE FROM telling WHERE fact = OLD.id; END;
"""


def build_memory_schema(words: str) -> store.Schema:
    """Return the room of memory; `words` is the version of the word splitting in the index."""

    def prepare(connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT value FROM setting WHERE name = 'words'").fetchone() != (words,):
            _clear_indexes(connection)
            connection.execute("INSERT OR REPLACE INTO setting VALUES ('words', ?)", (words,))

    return store.Schema(_SCHEMA_SCRIPT, _COLUMNS_BY_TABLE, _probe_fts5, prepare, _clear_indexes)


def _probe_fts5() -> None:
    """Raise `MemoryUnavailable` if this SQLite does not support the index that memory needs."""
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            for statement in _PROBE_STATEMENTS:
                connection.execute(statement)
    except sqlite3.OperationalError as error:
        raise MemoryUnavailable("no_fts5") from error


def _clear_indexes(connection: sqlite3.Connection) -> None:
    for kind in KINDS:
        clear_index(connection, kind)


def clear_index(connection: sqlite3.Connection, kind: MemoryKind) -> None:
    """Recreate the index of a kind as an empty index; `index_pending` fills it."""
    store.run_script(connection, _INDEX_SCRIPT.format(kind=kind))


def unindexed_id(connection: sqlite3.Connection, kind: MemoryKind) -> int:
    """Return the id up to which rows are not indexed yet, or 0 if all are indexed."""
    query = "SELECT value FROM setting WHERE name = ?"
    highest: int = connection.execute(query, (f"unindexed {kind}",)).fetchone()[0]
    return highest


def index_row(
    connection: sqlite3.Connection, words: Words, kind: MemoryKind, row: int, command: str | None = None
) -> None:
    """Add a row to the index, or with "delete" remove it, before it is changed or deleted.

    A row above those that are indexed is left alone.
    """
    query = f"{_SELECT_TEXT_BY_KIND[kind].format('=')} AND id > (SELECT value FROM setting WHERE name = ?)"
    if found := connection.execute(query, (row, f"unindexed {kind}")).fetchone():
        _write_index_entry(connection, words, kind, found, command)


def index_pending(connection: sqlite3.Connection, words: Words, most: int) -> bool:
    """Index up to `most` unindexed rows, facts first, newest first. Return whether there may be more."""
    for kind in KINDS:
        if highest := unindexed_id(connection, kind):
            rows = connection.execute(
                f"{_SELECT_TEXT_BY_KIND[kind].format('<=')} ORDER BY id DESC LIMIT ?", (highest, most)
            ).fetchall()
            for row in rows:
                _write_index_entry(connection, words, kind, row)
            rest = rows[-1][0] - 1 if len(rows) == most else 0
            connection.execute("UPDATE setting SET value = ? WHERE name = ?", (rest, f"unindexed {kind}"))
            return True
    return False


def merge_segments(connection: sqlite3.Connection, *, anew: bool) -> bool:
    """Merge some index segments, since a search reads all of them. Return whether there may be more to merge.

    The first call of a series needs `anew=True`. https://sqlite.org/fts5.html#the_merge_command
    """
    pages = -_PAGES_PER_MERGE if anew else _PAGES_PER_MERGE
    before = connection.total_changes
    for kind in KINDS:
        connection.execute(f"INSERT INTO {kind}_words({kind}_words, rank) VALUES ('merge', ?)", (pages,))
    # SQLite counts at most one change for a command that had nothing to merge
    return connection.total_changes - before > len(KINDS)


def delete_rows(
    connection: sqlite3.Connection, words: Words, kind: MemoryKind, rows: Sequence[int], *, is_requested: bool = False
) -> None:
    """Delete rows, and record their ids and original ids as tombstones, so that no import restores them.

    The suggestions that stand on a turn go with it. `is_requested` is True if a person requested this: then no copy of
    a conversation restores them either.
    """
    # after a large deletion, rebuilding the index is faster than removing each row from it
    anew = len(rows) > _REBUILD and len(rows) * 4 > connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0]
    if anew:
        clear_index(connection, kind)
    for row in rows:
        index_row(connection, words, kind, row, "delete")
        connection.execute(
            f"""
            INSERT OR IGNORE INTO tombstone
            SELECT ?1, id, at, ?3 FROM {kind} WHERE id = ?2
            UNION SELECT ?1, origin, at, ?3 FROM {kind} WHERE id = ?2 AND origin IS NOT NULL
            """,
            (kind, row, is_requested),
        )
        connection.execute(f"DELETE FROM {kind} WHERE id = ?", (row,))
        if kind == "turn" and (suggested := select_ids(connection, "SELECT id FROM fact WHERE turn = ?", (row,))):
            delete_rows(connection, words, "fact", suggested, is_requested=is_requested)
    while anew and index_pending(connection, words, _REINDEX_BATCH_SIZE):
        pass


def select_ids(connection: sqlite3.Connection, query: str, parameters: Any) -> list[int]:
    """Return the ids that a query selects."""
    return [row for (row,) in connection.execute(query, parameters)]


def _write_index_entry(
    connection: sqlite3.Connection,
    words: Words,
    kind: MemoryKind,
    entry: tuple[int, str, str],
    command: str | None = None,
) -> None:
    """Add an id, its text and its search words to the index, or apply an FTS5 command such as "delete" to them."""
    row, text, search_words = entry
    terms = words.build_index_terms(text)
    # facts are few and short, so the beginnings and ends of their words are indexed as well
    parts = f"{terms.word_parts} {terms.word_edges}" if kind == "fact" else terms.word_parts
    connection.execute(
        f"INSERT INTO {kind}_words({kind}_words, rowid, words, parts, search_words) VALUES (?, ?, ?, ?, ?)",
        (command, row, terms.words, parts, words.build_index_terms(search_words).words),
    )
