"""The database that all rooms share, and values that it stores by owner and name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
import json
from pathlib import Path
import sqlite3
from threading import Lock
from typing import Any

from .file import Room, StoreUnavailable, connect, delete_file, open_file, reason_of, unavailable

VALUES = Room(
    """
    CREATE TABLE IF NOT EXISTS value (
        owner TEXT, name TEXT, value TEXT NOT NULL, PRIMARY KEY (owner, name)
    ) WITHOUT ROWID
    """
)

# The owner of values about the file itself.
_FILE = ""
_DELETION = "deletion"


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


def owners_of_values(connection: sqlite3.Connection) -> set[str]:
    """Return the owners of all values, except the file itself."""
    return {owner for (owner,) in connection.execute("SELECT DISTINCT owner FROM value")} - {_FILE}


def delete_values(connection: sqlite3.Connection, owners: Iterable[str]) -> None:
    """Delete all values of the given owners."""
    connection.executemany("DELETE FROM value WHERE owner = ?", ((owner,) for owner in owners))


def schedule_deletion(database: Database, until: float, days: Mapping[str, int]) -> None:
    """Schedule the deletion of the file unless it is used before `until`. Raises `StoreUnavailable`.

    `days` is the number of days for which the turns of each removed agent are stored.
    """
    with database.write() as connection:
        _write_deletion(connection, until, {**_read_deletion(connection)[1], **days})


def cancel_deletion(database: Database) -> Mapping[str, int]:
    """Cancel the deletion of the file, and return the days of the removed agents. Raises `StoreUnavailable`."""
    with database.write() as connection:
        return _cancel_deletion(connection)


def cancel_deletion_of(path: Path) -> None:
    """Cancel the deletion of a closed file. Raises `sqlite3.Error`."""
    if path.exists():
        with closing(connect(path)) as connection:
            _cancel_deletion(connection)


def delete_overdue(path: Path, now: float) -> bool:
    """Delete a closed file whose deletion is due, and its damaged copy. Return whether it was deleted."""
    if not path.exists():
        return False
    try:
        with closing(connect(path)) as connection:
            until, _ = _read_deletion(connection)
    except sqlite3.Error:
        return False
    if until is None or until > now:
        return False
    delete_file(path)
    return True


def _cancel_deletion(connection: sqlite3.Connection) -> Mapping[str, int]:
    until, days = _read_deletion(connection)
    if until is not None:
        _write_deletion(connection, None, days)
    return days


def _read_deletion(connection: sqlite3.Connection) -> tuple[float | None, Mapping[str, int]]:
    match read_value(connection, _FILE, _DELETION):
        case {"until": float() | None as until, "days": dict() as days}:
            return until, days
    return None, {}


def _write_deletion(connection: sqlite3.Connection, until: float | None, days: Mapping[str, int]) -> None:
    write_value(connection, _FILE, _DELETION, {"until": until, "days": days})


class Database:
    """The open file. Raises all errors of the file as `StoreUnavailable`, without quoting stored text.

    `is_new`: whether opening created the file.
    """

    def __init__(self, path: Path, rooms: Sequence[Room]) -> None:
        """Open or create the file. Raises `StoreUnavailable`."""
        self.path = path
        self._rooms = rooms
        self._writing, self._reading = Lock(), Lock()
        self._closed = False
        self._writer, self._reader, self.is_new = open_file(path, rooms)
        self._inode = path.stat().st_ino

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction, which is committed at the end, or rolled back after an error."""
        with self._using(self._writing):
            self._refuse_moved()
            with self._transaction():
                yield self._writer

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection to a snapshot of the file, which concurrent writes do not change."""
        with self._using(self._reading):
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                self._reader.rollback()

    def checkpoint(self) -> bool:
        """Move all data from the write-ahead log into the file. Return whether the log is empty now."""
        with self._using(self._writing, self._reading):
            busy: int = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not busy

    def rewrite(self) -> None:
        """Rewrite the complete file, because pages from which rows were moved may still contain deleted text."""
        with self._using(self._writing):
            self._writer.execute("VACUUM")

    def close(self) -> bool:
        """Close the file permanently. Return whether it was open."""
        with self._writing, self._reading:
            was_open, self._closed = not self._closed, True
            self._reader.close()
            self._writer.close()
        return was_open

    @contextmanager
    def _using(self, *locks: Lock) -> Iterator[None]:
        """Hold the locks of the open file, and raise its errors as `StoreUnavailable`."""
        try:
            with ExitStack() as stack:
                for lock in locks:
                    stack.enter_context(lock)
                if self._closed:
                    raise StoreUnavailable("closed")
                yield
        except sqlite3.Error as error:
            reason = reason_of(error) or "fault"
            if reason == "index" and not self._mends_indexes():
                reason = "damaged"
            if reason == "damaged" and not self.close():
                # another thread has already set the damaged file aside, and a new file may exist at its path
                reason = "closed"
            # no cause is attached, because its message may quote stored text
            raise unavailable(reason, self.path) from None

    def _mends_indexes(self) -> bool:
        with self._writing, suppress(sqlite3.Error):
            with self._transaction():
                for room in self._rooms:
                    room.mend(self._writer)
            return True
        return False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        finally:
            # does nothing if SQLite has already rolled back by itself, as it does after some errors
            self._writer.rollback()

    def _refuse_moved(self) -> None:
        # SQLite would continue to use a file that was deleted or moved
        try:
            moved = self.path.stat().st_ino != self._inode
        except OSError:
            moved = True
        if moved:
            raise StoreUnavailable("away")
