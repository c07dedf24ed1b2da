"""Why the store cannot be used."""

from pathlib import Path
from typing import Literal

type Reason = Literal[
    "away", "backup", "closed", "damaged", "fault", "full", "index", "locked", "newer", "no_fts5", "read_only"
]


class StoreUnavailable(Exception):
    """The store cannot be used now. The call that raised this has changed nothing.

    - `away`: the file cannot be reached, or was moved or deleted
    - `backup`: a backup is being made, and nothing is written meanwhile
    - `closed`: the store was closed
    - `damaged`: the file is no database, or a broken one; it was moved to `set_aside`, and the next one takes over what
      can be read of it
    - `fault`: something else went wrong
    - `full`: the disk is full
    - `index`: an index was broken; it is empty now, and is rebuilt from what is stored
    - `locked`: another process has locked the file
    - `newer`: a newer version wrote the file; nothing was changed
    - `no_fts5`: this Python's SQLite has no FTS5, or one that cannot delete securely (before 3.42)
    - `read_only`: the file cannot be written
    """

    def __init__(self, reason: Reason, set_aside: Path | None = None) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.set_aside = set_aside
