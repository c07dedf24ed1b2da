"""The file on disk: opening it, setting a damaged one aside, and what SQLite's errors say about it."""

from collections.abc import Sequence
from contextlib import suppress
import errno
import os
from pathlib import Path
import sqlite3
from typing import NamedTuple

from .damage import SET_ASIDE, is_whole, salvage, set_rows_aside
from .errors import Reason, StoreUnavailable
from .room import Room, run_script, text_sum

# A file of another version is not read.
_VERSION = 1
_BUSY_SECONDS = 5.0
# What was committed survives a power cut: what was forgotten must not come back.
_SYNCHRONOUS = "FULL"
# In bytes: the size of a page, and of the log before it is moved into the file.
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


class Opened(NamedTuple):
    """An open file: a connection to write, one to read, and whether the file was created now."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection
    is_new: bool


def open_file(path: Path, rooms: Sequence[Room]) -> Opened:
    """Open the file, or create it, readable by its owner only. Raises `StoreUnavailable`.

    Damaged rows are set aside. A new file takes over what can be read of a damaged one.
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
    return Opened(writer, reader, is_new)


def _set_up(connection: sqlite3.Connection, path: Path, rooms: Sequence[Room]) -> bool:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > _VERSION:
        raise StoreUnavailable("newer")
    # each page that a turn changes is written whole
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
    """Return the reason for an error of the file, or None if the error is about something else."""
    if isinstance(error, StoreUnavailable):
        return error.reason
    if isinstance(error, OSError):
        return _REASONS_TO_OPEN.get(error.errno, "away")
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return None
    # FTS5 has found this: the tables are intact
    return "index" if code == sqlite3.SQLITE_CORRUPT_VTAB else _REASONS.get(code & 0xFF)


def unavailable(reason: Reason, path: Path) -> StoreUnavailable:
    """Return the error for a reason. A damaged file, which must be closed, is moved aside first."""
    if reason != "damaged":
        return StoreUnavailable(reason)
    aside = set_aside(path)
    # what is beside an earlier one does not fit this one
    delete_set_aside(path)
    for end in _BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").replace(f"{aside}{end}")
    return StoreUnavailable(reason, aside)


def set_aside(path: Path) -> Path:
    """Return the path of the damaged file that was set aside last."""
    return path.with_name(f"{path.name}.damaged")


def delete_set_aside(path: Path) -> bool:
    """Delete the damaged file, as nothing inside it can be deleted. Return whether that succeeded."""
    try:
        for end in _BESIDE:
            Path(f"{set_aside(path)}{end}").unlink(missing_ok=True)
    except OSError:
        return False
    return True


def delete_file(path: Path) -> bool:
    """Delete a closed file, and the damaged one that was set aside. Return whether nothing is left."""
    files = [Path(f"{path}{end}") for end in _BESIDE]
    for file in files:
        with suppress(OSError):
            file.unlink()
    return delete_set_aside(path) and not any(file.exists() for file in files)


def size(path: Path) -> int:
    """Return the size on disk in bytes."""
    return sum(file.stat().st_size for end in _BESIDE if (file := Path(f"{path}{end}")).exists())


def _delete_empty(path: Path) -> None:
    """Delete a file that was created now and could not be set up."""
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
    """Return a connection to a file for any thread, by one at a time. Each statement is a transaction by itself."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    # a rotten byte stops nothing, and no error quotes the text that it is in
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    connection.create_function("text_sum", -1, text_sum, deterministic=True)
    return connection
