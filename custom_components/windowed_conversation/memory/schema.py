"""The tables, by schema version, and their index, by the version of the words in it."""

import sqlite3

from .errors import MemoryUnavailable
from .records import KINDS, Kind

# A later version appends a script that upgrades the tables of the one before.
SCRIPTS = (
    """
    CREATE TABLE setting (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE label (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE fact (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, person INTEGER,
        private INTEGER NOT NULL, text TEXT NOT NULL, spoken TEXT NOT NULL, source TEXT NOT NULL, quote TEXT NOT NULL,
        confirmed REAL NOT NULL, told INTEGER NOT NULL, replaced_by INTEGER
    );
    CREATE INDEX fact_replaced ON fact (replaced_by) WHERE replaced_by IS NOT NULL;
    CREATE TABLE turn (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, conversation INTEGER NOT NULL,
        place INTEGER NOT NULL, person INTEGER, agent INTEGER, device INTEGER, tools INTEGER,
        said TEXT NOT NULL, answer TEXT NOT NULL
    );
    CREATE INDEX turn_place ON turn (conversation, place);
    CREATE TABLE episode (
        id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER, at REAL NOT NULL, since REAL NOT NULL,
        conversation INTEGER NOT NULL, person INTEGER, agent INTEGER, text TEXT NOT NULL
    );
    CREATE INDEX episode_conversation ON episode (conversation);
    CREATE TABLE tombstone (kind TEXT, id INTEGER, at REAL, PRIMARY KEY (kind, id, at)) WITHOUT ROWID;
    """,
    """
    INSERT INTO setting VALUES ('fact changes', 0);
    CREATE TRIGGER fact_added AFTER INSERT ON fact
    BEGIN UPDATE setting SET value = value + 1 WHERE name = 'fact changes'; END;
    CREATE TRIGGER fact_updated AFTER UPDATE ON fact
    BEGIN UPDATE setting SET value = value + 1 WHERE name = 'fact changes'; END;
    CREATE TRIGGER fact_deleted AFTER DELETE ON fact
    BEGIN UPDATE setting SET value = value + 1 WHERE name = 'fact changes'; END;
    """,
    """
    CREATE TABLE turn_record (
        row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at REAL NOT NULL,
        agent INTEGER NOT NULL, conversation INTEGER, person INTEGER, device INTEGER, entity_id INTEGER,
        route INTEGER NOT NULL, reason INTEGER, outcome INTEGER NOT NULL, error INTEGER, message TEXT,
        answered_by INTEGER, failures TEXT, first_token REAL, duration REAL NOT NULL, tools TEXT,
        failed_tool_calls INTEGER NOT NULL, cost TEXT, cause TEXT
    );
    CREATE INDEX turn_record_at ON turn_record (at);
    CREATE TABLE request_record (
        turn INTEGER NOT NULL, number INTEGER NOT NULL, agent INTEGER NOT NULL, provider INTEGER NOT NULL,
        model INTEGER NOT NULL, purpose INTEGER NOT NULL, parameters TEXT NOT NULL, outcome INTEGER NOT NULL,
        error INTEGER, finish INTEGER, prompt BLOB, tools BLOB, called TEXT, began REAL NOT NULL,
        duration REAL NOT NULL, first_token REAL, usage TEXT, PRIMARY KEY (turn, number)
    ) WITHOUT ROWID;
    CREATE TABLE record_content (id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE, text TEXT NOT NULL);
    CREATE TABLE record_words (turn INTEGER PRIMARY KEY, said TEXT NOT NULL, answer TEXT NOT NULL, calls TEXT NOT NULL);
    CREATE TABLE record_sent (
        turn INTEGER NOT NULL, number INTEGER NOT NULL, system INTEGER NOT NULL, tools INTEGER NOT NULL,
        messages TEXT NOT NULL, PRIMARY KEY (turn, number)
    ) WITHOUT ROWID;
    """,
)

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


def probe(connection: sqlite3.Connection) -> None:
    """Raise `MemoryUnavailable` if this SQLite lacks the index that memory needs."""
    try:
        for statement in _PROBE:
            connection.execute(statement)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        raise MemoryUnavailable("no_fts5") from error


def refuse_newer(connection: sqlite3.Connection) -> None:
    """Raise `MemoryUnavailable` if a newer version wrote the file. Call it before anything is written."""
    if _version(connection) > len(SCRIPTS):
        raise MemoryUnavailable("newer")


def migrate(connection: sqlite3.Connection, words: str) -> None:
    """Upgrade tables and index to the newest versions, inside the caller's transaction."""
    for script in SCRIPTS[_version(connection) :]:
        _run(connection, script)
    connection.execute(f"PRAGMA user_version = {len(SCRIPTS)}")
    indexed = connection.execute("SELECT value FROM setting WHERE name = 'words'").fetchone()
    if indexed != (words,):
        for kind in KINDS:
            empty_index(connection, kind)
        connection.execute("INSERT OR REPLACE INTO setting VALUES ('words', ?)", (words,))


def empty_index(connection: sqlite3.Connection, kind: Kind) -> None:
    """Recreate the index of a kind, empty; `reindex` fills it."""
    _run(connection, _INDEX.format(kind=kind))


def unindexed(connection: sqlite3.Connection, kind: Kind) -> int:
    """Return the id up to which rows are not indexed yet, or 0 if all are."""
    value: int = connection.execute("SELECT value FROM setting WHERE name = ?", (f"unindexed {kind}",)).fetchone()[0]
    return value


def fact_changes(connection: sqlite3.Connection) -> int:
    """Return how often facts were added, changed or deleted, by any process."""
    changes: int = connection.execute("SELECT value FROM setting WHERE name = 'fact changes'").fetchone()[0]
    return changes


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _run(connection: sqlite3.Connection, script: str) -> None:
    # executescript would commit first; a trigger contains semicolons
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
