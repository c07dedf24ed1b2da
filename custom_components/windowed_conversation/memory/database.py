"""One file for many threads: one thread writes at a time, and one reads beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import sqlite3
from threading import Lock

from .errors import MemoryUnavailable
from .file import open_file, reason_of, unavailable
from .records import KINDS
from .schema import empty_index


class Database:
    """The open file. Errors about the file are raised as `MemoryUnavailable`."""

    def __init__(self, path: Path, words: str) -> None:
        self.path = path
        self._writing, self._reading = Lock(), Lock()
        self._closed = False
        self._writer, self._reader = open_file(path, words)
        self._inode = path.stat().st_ino

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Hold a transaction, which is committed at the end, or rolled back after an error."""
        with self._translated(), self._writing:
            self._refuse_closed()
            self._refuse_moved()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            finally:
                _roll_back(self._writer)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Hold a snapshot of the file, which concurrent writes do not change."""
        with self._translated(), self._reading:
            self._refuse_closed()
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                _roll_back(self._reader)

    def checkpoint(self) -> bool:
        """Move everything into the file itself. Return whether nothing is left beside it."""
        with self._translated(), self._writing, self._reading:
            self._refuse_closed()
            busy: int = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not busy

    def rewrite(self) -> None:
        """Rewrite the whole file, as pages from which rows were moved may still hold deleted text."""
        with self._translated(), self._writing:
            self._refuse_closed()
            self._writer.execute("VACUUM")

    def close(self) -> None:
        """Close the file for good."""
        with self._writing, self._reading:
            self._closed = True
            self._reader.close()
            self._writer.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if (reason := reason_of(error)) is None:
                raise
            if reason == "index" and not self._mends_index():
                reason = "damaged"
            if reason == "damaged":
                self.close()
            raise unavailable(reason, self.path) from error

    def _mends_index(self) -> bool:
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                for kind in KINDS:
                    empty_index(self._writer, kind)
                self._writer.execute("COMMIT")
            except sqlite3.Error:
                return False
            finally:
                _roll_back(self._writer)
        return True

    def _refuse_closed(self) -> None:
        if self._closed:
            raise MemoryUnavailable("closed")

    def _refuse_moved(self) -> None:
        # SQLite would keep using a deleted file
        try:
            moved = self.path.stat().st_ino != self._inode
        except OSError:
            moved = True
        if moved:
            raise MemoryUnavailable("away")


def _roll_back(connection: sqlite3.Connection) -> None:
    # after some errors, SQLite has rolled back by itself
    if connection.in_transaction:
        connection.execute("ROLLBACK")
