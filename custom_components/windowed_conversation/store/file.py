"""The file on disk: its tables in rooms, how it is opened, damage, and reasons why it cannot be used.

Damage is a row whose text differs from its checksum, or a file of which only a part can be read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
import errno
from functools import partial
import os
from pathlib import Path
import sqlite3
import time
from typing import Any, Literal
import zlib

# Files of a newer version are not opened.
_VERSION = 1
_BUSY_SECONDS = 5.0
# A commit survives a power cut, so that forgotten text cannot return.
_SYNCHRONOUS = "FULL"
# In bytes: the size of a page, and the size of the write-ahead log at which it is moved into the file.
_PAGE = 2_048
_WAL = 4_000_000
_MODE = 0o600
_BESIDE = ("", "-wal", "-shm")

_REASONS: dict[int, Reason] = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_IOERR: "away",
    sqlite3.SQLITE_CANTOPEN: "away",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
}
_REASONS_TO_OPEN: dict[int | None, Reason] = {
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
    errno.ENOSPC: "full",
}

type Reason = Literal[
    "away", "backup", "closed", "damaged", "fault", "full", "index", "locked", "newer", "no_fts5", "read_only"
]


class StoreUnavailable(Exception):
    """The store cannot be used now. The call that raised this has changed nothing.

    - `away`: the file cannot be reached, or was moved or deleted
    - `backup`: a backup is in progress, during which nothing is written
    - `closed`: the store was closed
    - `damaged`: the file is broken or not a database. It was moved to `set_aside`, and the next file takes over its
      readable part
    - `fault`: any other error
    - `full`: the disk is full
    - `index`: an index was broken; it is empty now and will be rebuilt from the tables
    - `locked`: another process has locked the file
    - `newer`: a newer version wrote the file; nothing was changed
    - `no_fts5`: this Python's SQLite has no FTS5, or one that cannot delete securely (before 3.42)
    - `read_only`: the file is read-only
    """

    def __init__(self, reason: Reason, set_aside: Path | None = None) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.set_aside = set_aside


@dataclass(frozen=True, slots=True)
class Room:
    """The tables of one subject, for example memory.

    `script` creates missing tables, and `prepare` runs after it in the same transaction. `texts` contains the columns
    of each table that are covered by its checksum, see `check_sum`. `mend` empties the room's indexes after an index
    was damaged or a row was lost, so that they are rebuilt.
    """

    script: str
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prepare: Callable[[sqlite3.Connection], None] = lambda connection: None
    mend: Callable[[sqlite3.Connection], None] = lambda connection: None


def check_sum(columns: tuple[str, ...]) -> str:
    """Return the SQL expression for the checksum of some columns. SQLite has no checksums of its own."""
    return f"text_sum({', '.join(f'CAST({column} AS BLOB)' for column in columns)})"


def text_sum(*texts: bytes | None) -> int:
    """Return the checksum of the bytes of some texts."""
    return zlib.crc32(b"\0".join([text or b"" for text in texts]))


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run the statements of a script in the current transaction, which `executescript` would commit."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        # a semicolon does not always end a statement: triggers contain semicolons
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


# The readable parts of damaged rows. Their content is unknown, so every request to forget deletes all of them.
SET_ASIDE = Room("CREATE TABLE IF NOT EXISTS set_aside (of TEXT NOT NULL, at REAL NOT NULL, content BLOB)")


def open_file(path: Path, rooms: Sequence[Room]) -> tuple[sqlite3.Connection, sqlite3.Connection, bool]:
    """Open or create the file, readable only by its owner. Raises `StoreUnavailable`.

    Returns a connection for writing, one for reading, and whether the file was created. Damaged rows are set aside. A
    new file takes over the readable part of a damaged file.
    """
    opened: list[sqlite3.Connection] = []
    try:
        _make_private(path)
        opened.append(writer := connect(path))
        is_new = _set_up(writer, path, (SET_ASIDE, *rooms))
        opened.append(reader := connect(path))
        reader.execute("PRAGMA query_only = ON")
    except BaseException as error:
        for connection in opened:
            connection.close()
        _delete_empty(path)
        if (reason := reason_of(error)) is None:
            raise
        raise unavailable(reason, path) from None
    return writer, reader, is_new


def _set_up(connection: sqlite3.Connection, path: Path, rooms: Sequence[Room]) -> bool:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > _VERSION:
        raise StoreUnavailable("newer")
    # small pages, because each page that a turn changes is written completely
    connection.execute(f"PRAGMA page_size = {_PAGE}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL // _PAGE}")
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("BEGIN IMMEDIATE")
    if not is_whole(connection, rooms):
        raise StoreUnavailable("damaged")
    for room in rooms:
        run_script(connection, room.script)
        room.prepare(connection)
    is_new: bool = version == 0
    if is_new and set_aside(path).exists():
        salvage(connection, set_aside(path), rooms)
    for room in rooms:
        set_rows_aside(connection, room)
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")
    return is_new


def reason_of(error: BaseException) -> Reason | None:
    """Return the reason for an error of the file, or None for any other error."""
    if isinstance(error, StoreUnavailable):
        return error.reason
    if isinstance(error, OSError):
        return _REASONS_TO_OPEN.get(error.errno, "away")
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return None
    # FTS5 reports this code for a damaged index, while the tables are intact
    return "index" if code == sqlite3.SQLITE_CORRUPT_VTAB else _REASONS.get(code & 0xFF)


def unavailable(reason: Reason, path: Path) -> StoreUnavailable:
    """Return the error for a reason. Moves a damaged file aside first; it must be closed."""
    if reason != "damaged":
        return StoreUnavailable(reason)
    aside = set_aside(path)
    # no file of an earlier damaged database may remain, because it would not belong to this one
    delete_set_aside(path)
    for end in _BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").replace(f"{aside}{end}")
    return StoreUnavailable(reason, aside)


def set_aside(path: Path) -> Path:
    """Return the path to which a damaged file is moved."""
    return path.with_name(f"{path.name}.damaged")


def delete_set_aside(path: Path) -> bool:
    """Delete the damaged file completely, as single rows cannot be deleted from it. Return whether that succeeded."""
    aside = set_aside(path)
    try:
        for end in _BESIDE:
            Path(f"{aside}{end}").unlink(missing_ok=True)
    except OSError:
        return False
    return True


def delete_file(path: Path) -> bool:
    """Delete a closed file, and the damaged file that was set aside. Return whether no file remains."""
    files = [Path(f"{path}{end}") for end in _BESIDE]
    for file in files:
        with suppress(OSError):
            file.unlink()
    return delete_set_aside(path) and not any(file.exists() for file in files)


def size(path: Path) -> int:
    """Return the size on disk in bytes, including the write-ahead log."""
    return sum([file.stat().st_size for end in _BESIDE if (file := Path(f"{path}{end}")).exists()])


def _delete_empty(path: Path) -> None:
    """Delete an empty file, which was just created and could not be set up."""
    with suppress(OSError):
        if not path.stat().st_size:
            path.unlink()


def _make_private(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        os.fchmod(descriptor, _MODE)
    finally:
        os.close(descriptor)


def connect(path: Path) -> sqlite3.Connection:
    """Return an autocommit connection that any thread can use, but only one at a time."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    # an invalid byte does not raise an error, whose message would quote the text around it
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    connection.create_function("text_sum", -1, text_sum, deterministic=True)
    return connection


def is_whole(connection: sqlite3.Connection, rooms: Sequence[Room]) -> bool:
    """Return whether the structure of the file is intact, if necessary after its indexes have been emptied.

    Runs in the caller's transaction.
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
    """Move each row whose text differs from its checksum to `set_aside`, in the caller's transaction."""
    found = False
    for table, columns in room.texts.items():
        damaged = connection.execute(f"SELECT rowid FROM {table} WHERE sum IS NOT {check_sum(columns)}").fetchall()
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
    """Copy the readable rows of a damaged file, table by table, in the caller's transaction."""
    with closing(sqlite3.connect(damaged)) as old:
        old.text_factory = bytes
        old.create_function("text_sum", -1, text_sum, deterministic=True)
        # this comes first, while the new tables are empty, so that no id is used again
        _copy(connection, old, "sqlite_sequence", {})
        for room in rooms:
            for table in _tables(connection, room):
                _copy(connection, old, table, room.texts)
            room.mend(connection)


def _tables(connection: sqlite3.Connection, room: Room) -> list[str]:
    """Return the tables of a room without `setting`, which describes only the file that contains it."""
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
    whole = f" WHERE sum IS {check_sum(texts[table])}" if table in texts else ""
    for row in _rows(old, f"SELECT {names} FROM {table}{whole}", last_first):
        connection.execute(insert, [_value(value, kind) for value, kind in zip(row, kinds, strict=True)])


def _rows(old: sqlite3.Connection, selected: str, last_first: str) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows: from the first row up to the damage, then from the last row back to the damage."""
    for query in (selected, f"{selected} ORDER BY {last_first}"):
        try:
            yield from old.execute(query)
        except sqlite3.Error:
            continue
        return


def _value(value: object, kind: str) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) and kind != "BLOB" else value
