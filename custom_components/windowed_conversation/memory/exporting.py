"""Exports memory as JSON lines. What was forgotten is exported as lines without words."""

import json
import sqlite3

from .labels import find_label
from .records import Kind
from .visibility import visible

_NAMES = """
    LEFT JOIN label AS owner ON owner.id = {row}.person
    LEFT JOIN label AS by ON by.id = {row}.agent
    JOIN label AS within ON within.id = {row}.conversation
"""
_COLUMNS: dict[Kind, str] = {
    "fact": """
        owner.name AS person, private, text, source, quote, confirmed, told, replaced_by
        FROM fact LEFT JOIN label AS owner ON owner.id = fact.person
    """,
    "turn": f"""
        within.name AS conversation, owner.name AS person, by.name AS agent, place.name AS device, used.name AS tools,
        said, answer
        FROM turn {_NAMES.format(row="turn")}
        LEFT JOIN label AS place ON place.id = turn.device LEFT JOIN label AS used ON used.id = turn.tools
    """,
    "episode": f"""
        since, within.name AS conversation, owner.name AS person, by.name AS agent, text
        FROM episode {_NAMES.format(row="episode")}
    """,
}


def export_rows(
    connection: sqlite3.Connection, kind: Kind, person: str | None, after: int, most: int
) -> list[tuple[int, str]]:
    """Return the next rows after an id with their lines, limited to what this person may see unless None."""
    rows = connection.execute(
        f"""
        SELECT :kind AS kind, {kind}.id, at, {_COLUMNS[kind]}
        WHERE {kind}.id > :after AND (:all OR {visible(kind, kind)}) ORDER BY {kind}.id LIMIT :most
        """,
        {
            "kind": kind,
            "after": after,
            "all": person is None,
            "person": find_label(connection, person),
            "private": True,
            "most": most,
        },
    )
    names = [column[0] for column in rows.description]
    return [(row[1], _line(dict(zip(names, row, strict=True)))) for row in rows]


def export_forgotten(connection: sqlite3.Connection) -> list[str]:
    """Return a line for each item that has to stay forgotten."""
    return [
        _line({"kind": "forgotten", "of": kind, "id": row, "at": at})
        for kind, row, at in connection.execute(
            "SELECT kind, id, at FROM tombstone WHERE kind <> 'record' ORDER BY kind, id, at"
        )
    ]


def _line(fields: dict[str, object]) -> str:
    said = {name: value for name, value in fields.items() if value is not None}
    if "private" in said:
        said["private"] = bool(said["private"])
    return json.dumps(said, ensure_ascii=False)
