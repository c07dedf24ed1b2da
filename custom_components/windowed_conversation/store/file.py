"""The file on disk: its tables, how it is opened, damage, and the reasons why it cannot be used.

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
_FORMAT_VERSION = 1
_LOCK_TIMEOUT_SECONDS = 5.0
# A commit survives a power cut, so that forgotten text cannot return.
_SYNCHRONOUS = "FULL"
# In bytes: the size of a page, and the size of the write-ahead log at which it is moved into the file.
_PAGE_BYTES = 2_048
_MAX_WAL_BYTES = 4_000_000
_FILE_MODE = 0o600
# The byte of SQLite's header with the version that is needed to write the file, and its values without and with a WAL.
_WRITE_VERSION_OFFSET = 18
_WRITE_VERSIONS = (1, 2)
_FILE_SUFFIXES = ("", "-wal", "-shm")

# Python raises `UnicodeDecodeError` where SQLite's message quotes invalid bytes of the file.
FILE_ERRORS = (sqlite3.Error, UnicodeDecodeError)

# FTS5 reports the first code for a damaged index while the tables are intact, and the second one, which tables report
# only with more detail, for a row that the index has already.
_INDEX_CODES = (sqlite3.SQLITE_CORRUPT_VTAB, sqlite3.SQLITE_CONSTRAINT)
_REASON_BY_SQLITE_CODE: dict[int, UnavailableReason] = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_IOERR: "away",
    sqlite3.SQLITE_CANTOPEN: "away",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
}
_REASON_BY_ERRNO: dict[int | None, UnavailableReason] = {
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
    errno.ENOSPC: "full",
}

type UnavailableReason = Literal[
    "away", "backup", "closed", "damaged", "fault", "full", "index", "locked", "newer", "no_fts5", "read_only"
]


class StoreUnavailable(Exception):
    """The store cannot be used now. The call that raised this has changed nothing.

    - `away`: the file cannot be reached, or was moved or deleted - `backup`: a backup is in progress, during which
    nothing is written - `closed`: the store was closed - `damaged`: the file is broken or not a database. It was moved
    to `damaged_path`, and the next file takes over its readable part - `fault`: any other error - `full`: the disk is
    full - `index`: an index was broken; it is empty now and will be rebuilt from the tables - `locked`: another process
    has locked the file - `newer`: a newer version wrote the file; nothing was changed - `no_fts5`: this Python's SQLite
    has no FTS5, or one that cannot delete securely (before 3.42) - `read_only`: the file is read-only
    """

    def __init__(self, reason: UnavailableReason, set_aside: Path | None = None) -> None:
        super().__init__(reason)
        self.reason: UnavailableReason = reason
        self.damaged_path = set_aside


def do_nothing(*_arguments: object) -> None:
    """Do nothing, where a callback is not needed."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of one subject, for example memory."""

    # Creates missing tables.
    script: str
    # The columns of each table that are covered by its checksum, see `checksum_sql`.
    checksum_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Raises `StoreUnavailable` if this SQLite lacks a feature that the tables need. Runs before the file is read.
    probe: Callable[[], None] = do_nothing
    # Runs after the script, in the same transaction.
    prepare: Callable[[sqlite3.Connection], None] = do_nothing
    # Empties the room's indexes after an index was damaged or a row was lost, so that they are rebuilt.
    mend: Callable[[sqlite3.Connection], None] = do_nothing


def checksum_sql(columns: tuple[str, ...]) -> str:
    """Return the SQL expression for the checksum of some columns. SQLite has no checksums of its own."""
    return f"text_sum({', '.join(f'CAST({column} AS BLOB)' for column in columns)})"


def calculate_checksum(*texts: bytes | None) -> int:
    """Return the checksum of the bytes of some texts."""
    return zlib.crc32(b"\0".join([text or b"" for text in texts]))


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run the statements of a script in the current transaction.

    `sqlite3.Connection.executescript` would commit it.
    """
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        # a semicolon does not always end a statement: triggers contain semicolons
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


# The readable parts of damaged rows. Their content is unknown, so every request to forget deletes all of them.
DAMAGED_ROWS_SCHEMA = Schema("CREATE TABLE IF NOT EXISTS set_aside (of TEXT NOT NULL, at REAL NOT NULL, content BLOB)")


def open_file(path: Path, rooms: Sequence[Schema]) -> tuple[sqlite3.Connection, sqlite3.Connection, bool]:
    """Open or create the file, readable only by its owner. Raises `StoreUnavailable`.

    Returns a connection for writing, one for reading, and whether the file was created. Damaged rows are set aside. A
    new file takes over the readable part of a damaged file.
    """
    opened: list[sqlite3.Connection] = []
    try:
        _create_private_file(path)
        opened.append(writer := connect(path))
        is_new = _initialize_file(writer, path, (DAMAGED_ROWS_SCHEMA, *rooms))
        opened.append(reader := connect(path))
        reader.execute("PRAGMA query_only = ON")
    except BaseException as error:
        reason = find_reason(error)
        if opened and isinstance(error, sqlite3.Error) and _is_refused_by_damage(reason, opened[0], path, rooms):
            reason = "damaged"
        for connection in opened:
            connection.close()
        _delete_if_empty(path)
        if reason is None:
            raise
        raise build_store_error(reason, path) from None
    return writer, reader, is_new


def _is_refused_by_damage(
    reason: UnavailableReason | None, connection: sqlite3.Connection, path: Path, rooms: Sequence[Schema]
) -> bool:
    if reason == "read_only":
        # a write version in the header that no SQLite writes makes SQLite open the file read-only
        with suppress(OSError, IndexError), path.open("rb") as opened:
            return opened.read(_WRITE_VERSION_OFFSET + 1)[_WRITE_VERSION_OFFSET] not in _WRITE_VERSIONS
    return reason is None and is_schema_damaged(connection, rooms)


def _initialize_file(connection: sqlite3.Connection, path: Path, rooms: Sequence[Schema]) -> bool:
    for room in rooms:
        room.probe()
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > _FORMAT_VERSION:
        raise StoreUnavailable("newer")
    # small pages, because each page that a turn changes is written completely
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_MAX_WAL_BYTES // _PAGE_BYTES}")
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("BEGIN IMMEDIATE")
    if not is_file_intact(connection, rooms):
        raise StoreUnavailable("damaged")
    _create_tables(connection, rooms)
    is_new: bool = version == 0
    if is_new and get_damaged_path(path).exists():
        salvage_rows(connection, get_damaged_path(path), rooms)
    for room in rooms:
        move_damaged_rows(connection, room)
    connection.execute(f"PRAGMA user_version = {_FORMAT_VERSION}")
    connection.execute("COMMIT")
    return is_new


def _create_tables(connection: sqlite3.Connection, rooms: Sequence[Schema]) -> None:
    for room in rooms:
        run_script(connection, room.script)
        room.prepare(connection)


def is_schema_damaged(connection: sqlite3.Connection, rooms: Sequence[Schema]) -> bool:
    """Return whether a table, index or trigger of the rooms is missing in the file, or is not as it was created.

    A damaged name does not prevent a file from opening, but statements are refused.
    """
    try:
        with closing(connect(":memory:")) as new:
            _create_tables(new, rooms)
            expected = _read_schema(new)
    except sqlite3.Error:
        # the scripts are wrong, and not the file
        return False
    try:
        return not _read_schema(connection) >= expected
    except FILE_ERRORS:
        return True


def _read_schema(connection: sqlite3.Connection) -> set[tuple[str, str | None]]:
    return set(connection.execute("SELECT name, sql FROM sqlite_schema"))


def find_reason(error: BaseException) -> UnavailableReason | None:
    """Return the reason for an error of the file, or None for any other error."""
    if isinstance(error, StoreUnavailable):
        return error.reason
    if isinstance(error, UnicodeDecodeError):
        return "damaged"
    if isinstance(error, OSError):
        return _REASON_BY_ERRNO.get(error.errno, "away")
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return None
    return "index" if code in _INDEX_CODES else _REASON_BY_SQLITE_CODE.get(code & 0xFF)


def build_store_error(reason: UnavailableReason, path: Path) -> StoreUnavailable:
    """Return the error for a reason. Moves a damaged file aside first; it must be closed."""
    if reason != "damaged":
        return StoreUnavailable(reason)
    aside = get_damaged_path(path)
    # no file of an earlier damaged database may remain, because it would not belong to this one
    delete_damaged_file(path)
    for end in _FILE_SUFFIXES:
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").replace(f"{aside}{end}")
    return StoreUnavailable(reason, aside)


def get_damaged_path(path: Path) -> Path:
    """Return the path to which a damaged file is moved."""
    return path.with_name(f"{path.name}.damaged")


def delete_damaged_file(path: Path) -> bool:
    """Delete the damaged file completely, as single rows cannot be deleted from it. Return whether that succeeded."""
    aside = get_damaged_path(path)
    try:
        for end in _FILE_SUFFIXES:
            Path(f"{aside}{end}").unlink(missing_ok=True)
    except OSError:
        return False
    return True


def keep_damaged_file(path: Path) -> bool:
    """Rename the damaged file, so that nothing reads or deletes it any more. Return whether that succeeded."""
    damaged = get_damaged_path(path)
    kept_name = f"{damaged}.kept-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        damaged.replace(kept_name)
        for end in _FILE_SUFFIXES:
            with suppress(FileNotFoundError):
                Path(f"{damaged}{end}").replace(f"{kept_name}{end}")
    except OSError:
        return False
    return True


def delete_file(path: Path) -> bool:
    """Delete a closed file, and the damaged file that was set aside. Return whether no file remains."""
    files = [Path(f"{path}{end}") for end in _FILE_SUFFIXES]
    for file in files:
        with suppress(OSError):
            file.unlink()
    return delete_damaged_file(path) and not any(file.exists() for file in files)


def get_disk_bytes(path: Path) -> int:
    """Return the size on disk in bytes, including the write-ahead log."""
    return sum([file.stat().st_size for end in _FILE_SUFFIXES if (file := Path(f"{path}{end}")).exists()])


def _delete_if_empty(path: Path) -> None:
    """Delete an empty file, which was just created and could not be set up."""
    with suppress(OSError):
        if not path.stat().st_size:
            path.unlink()


def _create_private_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    try:
        os.fchmod(descriptor, _FILE_MODE)
    finally:
        os.close(descriptor)


def connect(path: Path | str) -> sqlite3.Connection:
    """Return an autocommit connection that any thread can use, but only one at a time."""
    connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False)
    # an invalid byte does not raise an error, whose message would quote the text around it
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    connection.create_function("text_sum", -1, calculate_checksum, deterministic=True)
    return connection


def is_file_intact(connection: sqlite3.Connection, rooms: Sequence[Schema]) -> bool:
    """Return whether the structure of the file is intact, after emptying its indexes if necessary.

    Runs in the caller's transaction.
    """
    if _passes_quick_check(connection):
        return True
    try:
        for room in rooms:
            room.mend(connection)
    except FILE_ERRORS:
        return False
    return _passes_quick_check(connection)


def _passes_quick_check(connection: sqlite3.Connection) -> bool:
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except FILE_ERRORS as error:
        if find_reason(error) not in (None, "damaged", "index"):
            raise
        return False


def move_damaged_rows(connection: sqlite3.Connection, room: Schema) -> None:
    """Move each row whose text differs from its checksum to `set_aside`, in the caller's transaction."""
    found = False
    for table, columns in room.checksum_columns.items():
        damaged = connection.execute(f"SELECT rowid FROM {table} WHERE sum IS NOT {checksum_sql(columns)}").fetchall()
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


def salvage_rows(connection: sqlite3.Connection, damaged: Path, rooms: Sequence[Schema]) -> None:
    """Copy the readable rows of a damaged file, table by table, in the caller's transaction."""
    with closing(sqlite3.connect(damaged)) as old:
        old.text_factory = bytes
        old.create_function("text_sum", -1, calculate_checksum, deterministic=True)
        # this comes first, while the new tables are empty, so that no id is used again
        _copy_table(connection, old, "sqlite_sequence", {})
        # `setting` describes only the file that contains it
        found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'setting'")
        tables = [name for (name,) in found.fetchall()]
        for room in rooms:
            for table in [each for each in tables if f" {each} (" in room.script]:
                _copy_table(connection, old, table, room.checksum_columns)
            room.mend(connection)


def _copy_table(
    connection: sqlite3.Connection, old: sqlite3.Connection, table: str, texts: Mapping[str, tuple[str, ...]]
) -> None:
    columns = [each for each in connection.execute(f"PRAGMA table_xinfo({table})") if not each[6]]
    names = ", ".join(name for _, name, *_ in columns)
    kinds = [kind for _, _, kind, *_ in columns]
    last_first = ", ".join(f"{name} DESC" for _, name, _, _, _, key, _ in columns if key) or "rowid DESC"
    insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    whole = f" WHERE sum IS {checksum_sql(texts[table])}" if table in texts else ""
    for row in _iter_readable_rows(old, f"SELECT {names} FROM {table}{whole}", last_first):
        connection.execute(insert, [_decode_value(value, kind) for value, kind in zip(row, kinds, strict=True)])


def _iter_readable_rows(old: sqlite3.Connection, selected: str, last_first: str) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows: from the first row up to the damage, then from the last row back to the damage."""
    for query in (selected, f"{selected} ORDER BY {last_first}"):
        try:
            yield from old.execute(query)
        except FILE_ERRORS:
            continue
        return


def _decode_value(value: object, kind: str) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) and kind != "BLOB" else value
