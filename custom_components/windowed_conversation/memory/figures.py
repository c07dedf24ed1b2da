"""How much is stored in a file."""

from pathlib import Path
import sqlite3

from . import file
from .records import KINDS, Figures
from .schema import unindexed


def figures(connection: sqlite3.Connection, path: Path) -> Figures:
    """Return how much is stored in the file at a path."""
    return Figures(
        facts=_count(connection, "fact WHERE replaced_by IS NULL"),
        turns=_count(connection, "turn"),
        episodes=_count(connection, "episode"),
        size=file.size(path),
        unindexed=sum(_count(connection, f"{kind} WHERE id <= {unindexed(connection, kind)}") for kind in KINDS),
    )


def _count(connection: sqlite3.Connection, what: str) -> int:
    count: int = connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0]
    return count
