"""The tables of memory and of the record of turns, and their index, by the version of the words in it."""

import sqlite3

from .records import KINDS, Kind
from .storage import MemoryUnavailable, store

_TEXTS = {
    "fact": ("text", "spoken", "quote"),
    "turn": ("said", "answer"),
    "episode": ("text",),
    "turn_record": ("figures",),
    "record_content": ("text",),
    "record_words": ("said", "answer", "calls"),
}


def _sum(table: str) -> str:
    return store.check_sum(_TEXTS[table])


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


def memory_room(words: str) -> store.Room:
    """Return the room of memory and the record of turns; `words` is the version of the words in the index."""

    def prepare(connection: sqlite3.Connection) -> None:
        _probe(connection)
        if connection.execute("SELECT value FROM setting WHERE name = 'words'").fetchone() != (words,):
            _empty_indexes(connection)
            connection.execute("INSERT OR REPLACE INTO setting VALUES ('words', ?)", (words,))

    return store.Room(_SCRIPT, _TEXTS, prepare, _empty_indexes)


def _probe(connection: sqlite3.Connection) -> None:
    """Raise `MemoryUnavailable` if this SQLite lacks the index that memory needs."""
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
    """Recreate the index of a kind, empty; `reindex` fills it."""
    store.run_script(connection, _INDEX.format(kind=kind))


def unindexed(connection: sqlite3.Connection, kind: Kind) -> int:
    """Return the id up to which rows are not indexed yet, or 0 if all are."""
    value: int = connection.execute("SELECT value FROM setting WHERE name = ?", (f"unindexed {kind}",)).fetchone()[0]
    return value


def fact_changes(connection: sqlite3.Connection) -> int:
    """Return the number of times that any process added, changed or deleted facts."""
    changes: int = connection.execute("SELECT value FROM setting WHERE name = 'fact changes'").fetchone()[0]
    return changes
