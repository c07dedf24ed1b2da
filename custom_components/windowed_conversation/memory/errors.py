"""Why memory cannot be used."""

from pathlib import Path
from typing import Literal

type Reason = Literal["away", "closed", "damaged", "fault", "full", "index", "locked", "newer", "no_fts5", "read_only"]


class MemoryUnavailable(Exception):
    """Memory cannot be used now. What was asked for has not happened.

    - `away`: the file cannot be reached, or is no longer where it was
    - `closed`: the memory was closed
    - `damaged`: the file is no database, or a broken one; it was moved to `set_aside`, and the next memory starts empty
    - `fault`: something else went wrong
    - `full`: the disk is full
    - `index`: the index was broken; it is empty now, and `reindex` makes it anew from what is stored
    - `locked`: another process keeps the file locked
    - `newer`: a newer version wrote the file; nothing was changed
    - `no_fts5`: this Python's SQLite has no FTS5, or one that cannot delete securely (before 3.42)
    - `read_only`: the file cannot be written
    """

    def __init__(self, reason: Reason, set_aside: Path | None = None) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.set_aside = set_aside


class MemoryFull(ValueError):
    """There are as many facts as are kept; none was added, and none is dropped for another."""


class BadLine(ValueError):
    """A line cannot be loaded, and nothing was. It is counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is not one that memory exports")
        self.line = line
