"""Names that many rows share, each stored once: people, conversations, agents, devices, tools."""

import sqlite3

from .texts import name as checked_name

# The columns of the record of turns that have names.
TURN_NAMES = (
    "agent",
    "conversation",
    "person",
    "device",
    "entity_id",
    "route",
    "reason",
    "outcome",
    "error",
    "answered_by",
)
REQUEST_NAMES = ("agent", "provider", "model", "purpose", "outcome", "error", "finish")
_IN_RECORD = "".join(
    f" UNION SELECT {name} FROM {table} WHERE {name} IS NOT NULL"
    for table, names in (("turn_record", TURN_NAMES), ("request_record", REQUEST_NAMES))
    for name in names
)


def label(connection: sqlite3.Connection, text: str | None) -> int | None:
    """Return the id of a name, which is stored if it is new, or None for None."""
    if text is None:
        return None
    found = find_label(connection, text)
    if found is None:
        found = connection.execute("INSERT INTO label (name) VALUES (?)", (checked_name(text),)).lastrowid
    return found


def find_label(connection: sqlite3.Connection, text: str | None) -> int | None:
    """Return the id of a name, or None if no row has it."""
    found = connection.execute("SELECT id FROM label WHERE name = ?", (text,)).fetchone()
    return found[0] if found else None


def drop_unused_labels(connection: sqlite3.Connection) -> None:
    """Delete the names that no row has any more."""
    connection.execute(f"""
        DELETE FROM label WHERE id NOT IN (
            SELECT person FROM fact WHERE person IS NOT NULL
            UNION SELECT conversation FROM turn
            UNION SELECT person FROM turn WHERE person IS NOT NULL
            UNION SELECT agent FROM turn WHERE agent IS NOT NULL
            UNION SELECT device FROM turn WHERE device IS NOT NULL
            UNION SELECT tools FROM turn WHERE tools IS NOT NULL
            UNION SELECT conversation FROM episode
            UNION SELECT person FROM episode WHERE person IS NOT NULL
            UNION SELECT agent FROM episode WHERE agent IS NOT NULL
            {_IN_RECORD}
        )
    """)
