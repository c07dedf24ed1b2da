"""Single values, each with an owner and a name: totals of agents, what is known of models and servers."""

from collections.abc import Iterable
import json
import sqlite3
from typing import Any

from .room import Room

VALUES = Room(
    """
    CREATE TABLE IF NOT EXISTS value (
        owner TEXT, name TEXT, value TEXT NOT NULL, PRIMARY KEY (owner, name)
    ) WITHOUT ROWID
    """
)


# The owner of what the file says of itself.
OF_THE_FILE = ""


def read_value(connection: sqlite3.Connection, owner: str, name: str) -> Any:
    """Return a value, or None if there is none that can be read."""
    found = connection.execute("SELECT value FROM value WHERE owner = ? AND name = ?", (owner, name)).fetchone()
    try:
        return json.loads(found[0]) if found else None
    except ValueError, RecursionError:
        return None


def write_value(connection: sqlite3.Connection, owner: str, name: str, value: str | None) -> None:
    """Store a value, which is JSON, or delete it if it is None."""
    connection.execute("DELETE FROM value WHERE owner = ? AND name = ?", (owner, name))
    if value is not None:
        connection.execute("INSERT INTO value VALUES (?, ?, ?)", (owner, name, value))


def owners_of_values(connection: sqlite3.Connection) -> set[str]:
    """Return the owners of the values, without the file itself."""
    owners = {owner for (owner,) in connection.execute("SELECT DISTINCT owner FROM value")}
    return owners - {OF_THE_FILE}


def delete_values(connection: sqlite3.Connection, owners: Iterable[str]) -> None:
    """Delete all values of some owners."""
    connection.executemany("DELETE FROM value WHERE owner = ?", ((owner,) for owner in owners))
