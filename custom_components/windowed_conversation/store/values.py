"""Single values, each with an owner and a name, among them the time until which an unused file is kept."""

from collections.abc import Iterable, Mapping
from contextlib import closing
import json
from pathlib import Path
import sqlite3
from typing import Any

from .database import Database
from .file import Room, connect, delete_file

VALUES = Room(
    """
    CREATE TABLE IF NOT EXISTS value (
        owner TEXT, name TEXT, value TEXT NOT NULL, PRIMARY KEY (owner, name)
    ) WITHOUT ROWID
    """
)


# The owner of the values about the file itself.
_FILE = ""
_DELETION = "deletion"


def read_value(connection: sqlite3.Connection, owner: str, name: str) -> Any:
    """Return a value, or None if there is none that can be read."""
    found = connection.execute("SELECT value FROM value WHERE owner = ? AND name = ?", (owner, name)).fetchone()
    try:
        return json.loads(found[0]) if found else None
    except ValueError, RecursionError:
        return None


def write_value(connection: sqlite3.Connection, owner: str, name: str, value: Any) -> None:
    """Store a value that JSON has."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    connection.execute("INSERT OR REPLACE INTO value VALUES (?, ?, ?)", (owner, name, text))


def owners_of_values(connection: sqlite3.Connection) -> set[str]:
    """Return the owners of the values, without the file itself."""
    owners = {owner for (owner,) in connection.execute("SELECT DISTINCT owner FROM value")}
    return owners - {_FILE}


def delete_values(connection: sqlite3.Connection, owners: Iterable[str]) -> None:
    """Delete all values of some owners."""
    connection.executemany("DELETE FROM value WHERE owner = ?", ((owner,) for owner in owners))


def schedule_deletion(database: Database, until: float, days: Mapping[str, int]) -> None:
    """Delete the file at a time if nobody uses it before. Raises `StoreUnavailable`.

    `days` is the number of days for which the turns of each removed agent are stored.
    """
    with database.write() as connection:
        _write_deletion(connection, until, {**_read_deletion(connection)[1], **days})


def cancel_deletion(database: Database) -> Mapping[str, int]:
    """Keep the file for good, and return the days of the removed agents. Raises `StoreUnavailable`."""
    with database.write() as connection:
        return _cancel_deletion(connection)


def cancel_deletion_of(path: Path) -> None:
    """Keep a closed file for good. Raises `sqlite3.Error`."""
    if path.exists():
        with closing(connect(path)) as connection:
            _cancel_deletion(connection)


def delete_overdue(path: Path, now: float) -> bool:
    """Delete a closed file whose time is over, and its damaged one. Return whether it is deleted."""
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
