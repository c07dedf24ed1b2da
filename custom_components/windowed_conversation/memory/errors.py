"""Errors of memory."""

from pathlib import Path
from typing import Literal

type Reason = Literal["away", "closed", "damaged", "fault", "full", "index", "locked", "newer", "no_fts5", "read_only"]


class MemoryUnavailable(Exception):
    """Memory cannot be used now. The call that raised this has changed nothing.

    - `away`: the file cannot be reached, or was moved or deleted
    - `closed`: the memory was closed
    - `damaged`: the file is no database, or a broken one; it was moved to `set_aside`, and the next memory starts empty
    - `fault`: something else went wrong
    - `full`: the disk is full
    - `index`: the index was broken; it is empty now, and `reindex` rebuilds it from what is stored
    - `locked`: another process has locked the file
    - `newer`: a newer version wrote the file; nothing was changed
    - `no_fts5`: this Python's SQLite has no FTS5, or one that cannot delete securely (before 3.42)
    - `read_only`: the file cannot be written
    """

    def __init__(self, reason: Reason, set_aside: Path | None = None) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.set_aside = set_aside


class MemoryFull(ValueError):
    """The limit of facts is reached. Nothing was added, and no current fact is dropped for a new one."""


class BadLine(ValueError):
    """A line that cannot be loaded; nothing was loaded. `line` is counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is not one that memory exports")
        self.line = line
