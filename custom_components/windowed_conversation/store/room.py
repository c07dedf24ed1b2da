"""A room: the tables of one subject, and the checksums of the texts in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
import sqlite3
import zlib


@dataclass(frozen=True, slots=True)
class Room:
    """The tables of one subject.

    `script` creates those that are missing, and `prepare` follows it in the same transaction. `texts` has the columns
    of each table with checked texts, see `check_sum`. `mend` empties the room's indexes after one was damaged or a row
    was lost, so that they are made anew.
    """

    script: str
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prepare: Callable[[sqlite3.Connection], None] = lambda connection: None
    mend: Callable[[sqlite3.Connection], None] = lambda connection: None


def check_sum(columns: tuple[str, ...]) -> str:
    """Return the SQL expression for the checksum of some columns. SQLite itself has no checksums."""
    return f"text_sum({', '.join(f'CAST({column} AS BLOB)' for column in columns)})"


def text_sum(*texts: bytes | None) -> int:
    """Return the checksum of the bytes of some texts."""
    return zlib.crc32(b"\0".join(text or b"" for text in texts))


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run the statements of a script in the present transaction, which `executescript` would commit."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        # a trigger contains semicolons
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
