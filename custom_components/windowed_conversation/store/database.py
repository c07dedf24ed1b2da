"""One file for many threads: one thread writes at a time, and one reads beside it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
import sqlite3
from threading import Lock

from .file import Room, StoreUnavailable, open_file, reason_of, unavailable


class Database:
    """The open file. Errors about it are raised as `StoreUnavailable`, and none of them quotes stored text.

    `is_new`: whether the file was created now.
    """

    def __init__(self, path: Path, rooms: Sequence[Room]) -> None:
        """Open the file, or create it. Raises `StoreUnavailable`."""
        self.path = path
        self._rooms = rooms
        self._writing, self._reading = Lock(), Lock()
        self._closed = False
        self._writer, self._reader, self.is_new = open_file(path, rooms)
        self._inode = path.stat().st_ino

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Hold a transaction, which is committed at the end, or rolled back after an error."""
        with self._using(self._writing):
            self._refuse_moved()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            finally:
                # after some errors, SQLite has rolled back by itself
                self._writer.rollback()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Hold a snapshot of the file, which concurrent writes do not change."""
        with self._using(self._reading):
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                self._reader.rollback()

    def checkpoint(self) -> bool:
        """Move everything into the file itself. Return whether nothing is left beside it."""
        with self._using(self._writing, self._reading):
            busy: int = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not busy

    def rewrite(self) -> None:
        """Rewrite the whole file, as pages from which rows were moved may still hold deleted text."""
        with self._using(self._writing):
            self._writer.execute("VACUUM")

    def close(self) -> bool:
        """Close the file for good. Return whether it was open."""
        with self._writing, self._reading:
            was_open, self._closed = not self._closed, True
            self._reader.close()
            self._writer.close()
        return was_open

    @contextmanager
    def _using(self, *locks: Lock) -> Iterator[None]:
        """Hold locks of the open file, and translate its errors."""
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
                # another thread has set it aside, and the one in its place is a new one
                reason = "closed"
            # without its cause, whose text may quote stored text
            raise unavailable(reason, self.path) from None

    def _mends_indexes(self) -> bool:
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                for room in self._rooms:
                    room.mend(self._writer)
                self._writer.execute("COMMIT")
            except sqlite3.Error:
                return False
            finally:
                # after some errors, SQLite has rolled back by itself
                self._writer.rollback()
        return True

    def _refuse_moved(self) -> None:
        # SQLite would keep using a deleted file
        try:
            moved = self.path.stat().st_ino != self._inode
        except OSError:
            moved = True
        if moved:
            raise StoreUnavailable("away")
