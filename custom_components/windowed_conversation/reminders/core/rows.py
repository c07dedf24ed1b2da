"""The table of reminders, with one row for each."""

from collections.abc import Iterable
import logging
import sqlite3

from ...store import Schema, checksum_sql
from .reminder import Reminder

_LOGGER = logging.getLogger(__name__)

_CHECKSUM_COLUMNS = {"reminder": ("content",)}
REMINDERS = Schema(
    f"""
    CREATE TABLE IF NOT EXISTS reminder (
        id TEXT PRIMARY KEY, person TEXT, content TEXT NOT NULL,
        sum INTEGER AS ({checksum_sql(_CHECKSUM_COLUMNS["reminder"])}) STORED
    )
    """,
    _CHECKSUM_COLUMNS,
)


def read_reminders(connection: sqlite3.Connection) -> list[Reminder]:
    """Return all reminders that can be read."""
    reminders = []
    for (content,) in connection.execute("SELECT content FROM reminder ORDER BY rowid").fetchall():
        try:
            reminders.append(Reminder.from_json(content))
        except (ValueError, TypeError, KeyError) as err:
            _LOGGER.warning("A reminder cannot be read: %s", type(err).__name__)
    return reminders


def write_reminder(connection: sqlite3.Connection, reminder: Reminder) -> None:
    """Store a reminder, or a change of one."""
    connection.execute(
        "INSERT INTO reminder (id, person, content) VALUES (?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET person = excluded.person, content = excluded.content",
        (reminder.id, reminder.person, reminder.as_json()),
    )


def delete_reminders(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Delete reminders by their ids."""
    connection.executemany("DELETE FROM reminder WHERE id = ?", [(each,) for each in ids])


def delete_of_person(connection: sqlite3.Connection, person: str) -> None:
    """Delete the reminders for a person, given by the user id."""
    connection.execute("DELETE FROM reminder WHERE person = ?", (person,))
