"""The database that all rooms share, and values that it stores by owner and name."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
import json
from pathlib import Path
import sqlite3
from threading import Lock
from typing import Any

from .file import (
    FILE_ERRORS,
    Schema,
    StoreUnavailable,
    build_store_error,
    connect,
    delete_file,
    find_reason,
    is_schema_damaged,
    open_file,
)

VALUE_TABLE = Schema(
    """
    CREATE TABLE IF NOT EXISTS value (
        owner TEXT, name TEXT, value TEXT NOT NULL, PRIMARY KEY (owner, name)
    ) WITHOUT ROWID
    """
)

# The owner of values about the file itself.
_FILE_OWNER = ""
_DELETION_NAME = "deletion"


def read_value(connection: sqlite3.Connection, owner: str, name: str) -> Any:
    """Return a value, or None if there is none or it cannot be read."""
    found = connection.execute("SELECT value FROM value WHERE owner = ? AND name = ?", (owner, name)).fetchone()
    try:
        return json.loads(found[0]) if found else None
    except ValueError, RecursionError:
        return None


def write_value(connection: sqlite3.Connection, owner: str, name: str, value: Any) -> None:
    """Store a value that can be represented in JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    connection.execute("INSERT OR REPLACE INTO value VALUES (?, ?, ?)", (owner, name, text))


def list_value_owners(connection: sqlite3.Connection) -> set[str]:
    """Return the owners of all values, except the file itself."""
    return {owner for (owner,) in connection.execute("SELECT DISTINCT owner FROM value")} - {_FILE_OWNER}


def delete_values(connection: sqlite3.Connection, owners: Iterable[str]) -> None:
    """Delete all values of the given owners."""
    connection.executemany("DELETE FROM value WHERE owner = ?", ((owner,) for owner in owners))


def schedule_deletion(database: Database, until: float | None) -> None:
    """Schedule the deletion of the file for `until`, in seconds since the epoch, or cancel it if that is None.

    Raises `StoreUnavailable`.
    """
    with database.write_transaction() as connection:
        delete_values(connection, (_FILE_OWNER,))
        if until is not None:
            write_value(connection, _FILE_OWNER, _DELETION_NAME, until)


def delete_overdue(path: Path, now: float) -> bool:
    """Delete a closed file whose deletion is due, and its damaged copy. Return whether it was deleted."""
    with suppress(*FILE_ERRORS):
        if path.exists():
            with closing(connect(path)) as connection:
                until = read_value(connection, _FILE_OWNER, _DELETION_NAME)
            return isinstance(until, float) and until <= now and delete_file(path)
    return False


class Database:
    """The open file. Raises all errors of the file as `StoreUnavailable`, without quoting stored text.

    `is_new`: whether opening created the file.
    """

    def __init__(self, path: Path, rooms: Sequence[Schema]) -> None:
        """Open or create the file. Raises `StoreUnavailable`."""
        self.path = path
        self._schemas = rooms
        self._write_lock, self._read_lock = Lock(), Lock()
        self._is_closed = False
        self._write_connection, self._read_connection, self.is_new = open_file(path, rooms)
        self._inode = path.stat().st_ino

    @contextmanager
    def write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction, which is committed at the end, or rolled back after an error."""
        with self._guard_with_locks(self._write_lock):
            # SQLite would continue to use a file that was deleted or moved
            is_there = False
            with suppress(OSError):
                is_there = self.path.stat().st_ino == self._inode
            if not is_there:
                raise StoreUnavailable("away")
            with self._transaction():
                yield self._write_connection

    @contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection to a snapshot of the file, which concurrent writes do not change."""
        with self._guard_with_locks(self._read_lock):
            self._read_connection.execute("BEGIN")
            try:
                yield self._read_connection
            finally:
                self._read_connection.rollback()

    def checkpoint(self) -> bool:
        """Move all data from the write-ahead log into the file. Return whether the log is empty now."""
        with self._guard_with_locks(self._write_lock, self._read_lock):
            busy: int = self._write_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not busy

    def vacuum(self) -> None:
        """Rewrite the complete file, because pages from which rows were moved may still contain deleted text."""
        with self._guard_with_locks(self._write_lock):
            self._write_connection.execute("VACUUM")

    def close(self) -> bool:
        """Close the file permanently. Return whether it was open."""
        with self._write_lock, self._read_lock:
            was_open, self._is_closed = not self._is_closed, True
            self._read_connection.close()
            self._write_connection.close()
        return was_open

    @contextmanager
    def _guard_with_locks(self, *locks: Lock) -> Iterator[None]:
        """Hold the locks of the open file, and raise its errors as `StoreUnavailable`."""
        try:
            with ExitStack() as stack:
                for lock in locks:
                    stack.enter_context(lock)
                if self._is_closed:
                    raise StoreUnavailable("closed")
                yield
        except FILE_ERRORS as error:
            reason = find_reason(error) or ("damaged" if self._is_schema_damaged() else "fault")
            if reason == "index" and not self._clear_indexes():
                reason = "damaged"
            if reason == "damaged" and not self.close():
                # another thread has already set the damaged file aside, and a new file may exist at its path
                reason = "closed"
            # no cause is attached, because its message may quote stored text
            raise build_store_error(reason, self.path) from None

    def _is_schema_damaged(self) -> bool:
        # a flipped letter in a name does not prevent opening, but statements are refused
        with self._write_lock, suppress(*FILE_ERRORS):
            return is_schema_damaged(self._write_connection, self._schemas)
        return False

    def _clear_indexes(self) -> bool:
        with self._write_lock, suppress(*FILE_ERRORS):
            with self._transaction():
                for room in self._schemas:
                    room.mend(self._write_connection)
            return True
        return False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._write_connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._write_connection.execute("COMMIT")
        finally:
            # does nothing if SQLite has already rolled back by itself, as it does after some errors
            self._write_connection.rollback()
