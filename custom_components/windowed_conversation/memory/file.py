"""The file on disk: opening it, setting a damaged one aside, and what SQLite's errors say about it."""

from contextlib import suppress
import errno
import os
from pathlib import Path
import sqlite3

from .errors import MemoryUnavailable, Reason
from .schema import migrate, probe, refuse_newer

_BUSY_SECONDS = 5.0
# if the machine crashes, the last commits may be lost; if the process crashes, none is
_SYNCHRONOUS = "NORMAL"
_MODE = 0o600
_BESIDE = ("", "-wal", "-shm")
_FORGOTTEN = ".forgotten"

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


def open_file(path: Path, words: str) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Return a writing and a reading connection. Creates a missing file, readable by its owner only."""
    opened: list[sqlite3.Connection] = []
    try:
        _make_private(path)
        opened.append(writer := _connect(path))
        _set_up(writer)
        probe(writer)
        refuse_newer(writer)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA secure_delete = ON")
        writer.execute("BEGIN IMMEDIATE")
        migrate(writer, words)
        writer.execute("COMMIT")
        opened.append(reader := _connect(path))
        _set_up(reader)
        reader.execute("PRAGMA query_only = ON")
    except BaseException as error:
        for connection in opened:
            connection.close()
        if (reason := reason_of(error)) is None:
            raise
        raise unavailable(reason, path) from error
    return writer, reader


def reason_of(error: BaseException) -> Reason | None:
    """Return what an error says about the file, or None if it is about something else."""
    if isinstance(error, OSError):
        return _REASONS_TO_OPEN.get(error.errno, "away")
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return None
    # FTS5 has found this: the tables are intact
    return "index" if code == sqlite3.SQLITE_CORRUPT_VTAB else _REASONS.get(code & 0xFF)


def unavailable(reason: Reason, path: Path) -> MemoryUnavailable:
    """Return the error for a reason. A damaged file, which must be closed, is moved aside first."""
    if reason != "damaged":
        return MemoryUnavailable(reason)
    aside = set_aside(path)
    for end in _BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").replace(f"{aside}{end}")
    return MemoryUnavailable(reason, aside)


def set_aside(path: Path) -> Path:
    """Return the path of the damaged file that was set aside last."""
    return path.with_name(f"{path.name}.damaged")


def forgotten(path: Path) -> Path:
    """Return the path of the tombstones, which keep an older copy of the file from bringing back what was forgotten."""
    return path.with_name(f"{path.name}{_FORGOTTEN}")


def delete_set_aside(path: Path) -> bool:
    """Delete the damaged file, as nothing inside it can be deleted. Return whether that succeeded."""
    try:
        for end in _BESIDE:
            Path(f"{set_aside(path)}{end}").unlink(missing_ok=True)
    except OSError:
        return False
    return True


def delete_file(path: Path) -> None:
    """Delete a closed file, the damaged one that was set aside, and the tombstones."""
    for end in (*_BESIDE, _FORGOTTEN):
        with suppress(OSError):
            Path(f"{path}{end}").unlink()
    delete_set_aside(path)


def size(path: Path) -> int:
    """Return the size on disk in bytes."""
    return sum(file.stat().st_size for end in _BESIDE if (file := Path(f"{path}{end}")).exists())


def _make_private(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        os.fchmod(descriptor, _MODE)
    finally:
        os.close(descriptor)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
