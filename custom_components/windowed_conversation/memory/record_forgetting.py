"""Deletion from the record of turns: words that may repeat forgotten ones, words after some days, rows at the end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
import json
import math
import sqlite3
from types import EllipsisType
from typing import Any, NamedTuple

from .records import Forgotten
from .selection import Selection

MOST_TURN_RECORDS = 200_000
MOST_WHOLE = 20_000

_AMONG = "row IN (SELECT value FROM json_each(?))"
# A window passes what was told in it on to others: their turns in it are meant as well.
_HEARD = """
    SELECT row FROM turn_record JOIN record_words ON record_words.turn = row
    WHERE at >= :since AND at < :before AND (
        :everybody OR coalesce(figures ->> 'person', '') IN (SELECT value FROM json_each(:people))
        OR figures ->> 'conversation' IN (SELECT value FROM json_each(:conversations))
        OR figures ->> 'conversation' IN (
            SELECT figures ->> 'conversation' FROM turn_record
            WHERE figures ->> 'person' IN (SELECT value FROM json_each(:people))
        )
    )
"""


class Hearers(NamedTuple):
    """The turns that may have heard something: these people's, None for unknown speakers, and in conversations."""

    people: frozenset[str | None] = frozenset()
    conversations: frozenset[str] = frozenset()
    everybody: bool = False


def with_record(
    connection: sqlite3.Connection,
    forgotten: Forgotten,
    selection: Selection,
    is_repetition: Callable[[str], bool],
) -> Forgotten:
    """Add which rows are forgotten as somebody's own, and which lose their words with what is forgotten.

    How a turn may say the same in other words is not known: each that may have heard it loses its words, also of a time
    before memory has it, because memory does not have the turns that failed.
    """
    since = -math.inf if selection.since is None else selection.since
    before = math.inf if selection.before is None else selection.before
    gone, wordless = set[int](), set[int]()
    if not selection.is_named and "turn" in selection.kinds:
        gone.update(owned(connection, selection.person, selection.agent, since, before))
    if selection.query is not None:
        person = selection.person
        hearers = Hearers(everybody=True) if person is ... else Hearers(frozenset({person, None}))
        wordless.update(heard(connection, hearers, since, before))
    if forgotten.has_any:
        hearers = Hearers(forgotten.people, forgotten.conversations, everybody=None in forgotten.people)
        wordless.update(heard(connection, hearers))
    wordless -= gone
    recorded = 0
    if selection.query is not None:
        texts = connection.execute(
            "SELECT said || char(10) || answer || char(10) || calls FROM record_words "
            "WHERE turn IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(wordless)),),
        )
        recorded = sum(is_repetition(text) for (text,) in texts)
    return replace(forgotten, records=tuple(sorted(gone)), wordless=tuple(sorted(wordless)), recorded=recorded)


def heard(
    connection: sqlite3.Connection, hearers: Hearers, since: float = -math.inf, before: float = math.inf
) -> tuple[int, ...]:
    """Return the rows with words that began between two times and may repeat what was told."""
    return _rows(
        connection,
        _HEARD,
        {
            "since": since,
            "before": before,
            "everybody": hearers.everybody,
            "people": json.dumps([each or "" for each in hearers.people]),
            "conversations": json.dumps([*hearers.conversations]),
        },
    )


def owned(
    connection: sqlite3.Connection, person: str | EllipsisType | None, agent: str | None, since: float, before: float
) -> tuple[int, ...]:
    """Return the rows of a person, or of all for `...`, and of an agent if one is given, between two times."""
    conditions = "at >= :since AND at < :before"
    conditions += " AND figures ->> 'person' = :person" * (person is not ...)
    conditions += " AND figures ->> 'agent' = :agent" * (agent is not None)
    return _rows(
        connection,
        f"SELECT row FROM turn_record WHERE {conditions}",
        {"since": since, "before": before, "person": None if person is ... else person, "agent": agent},
    )


def delete_records(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Delete turns from the record."""
    if not rows:
        return
    chosen = json.dumps(rows)
    delete_words(connection, rows)
    connection.execute(f"DELETE FROM turn_record WHERE {_AMONG}", (chosen,))


def delete_words(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Delete the words of turns, and the texts that no other turn has sent. The figures stay."""
    if not rows:
        return
    chosen = json.dumps(rows)
    for table in ("record_words", "record_sent"):
        connection.execute(f"DELETE FROM {table} WHERE turn IN (SELECT value FROM json_each(?))", (chosen,))
    # a damaged list must not keep what is to be deleted
    connection.execute("""
        DELETE FROM record_content WHERE id NOT IN (
            SELECT system FROM record_sent UNION SELECT tools FROM record_sent
            UNION SELECT value FROM record_sent, json_each(iif(json_valid(messages), messages, '[]'))
        )
    """)


def expire_records(
    connection: sqlite3.Connection, before: Mapping[str, float], others: float, whole_before: float
) -> bool:
    """Delete the turns that began before the time of their agent, or of all other agents, and older words.

    Return whether there was anything to delete.
    """
    rows = connection.execute(
        "SELECT row, at, figures ->> 'agent' FROM turn_record WHERE at < ?",
        (max([others, *before.values()]),),
    )
    expired = tuple(row for row, at, agent in rows if at < before.get(agent, others))
    delete_records(connection, expired)
    wordless = heard(connection, Hearers(everybody=True), before=whole_before)
    delete_words(connection, wordless)
    return bool(expired or wordless)


def make_room(connection: sqlite3.Connection) -> None:
    """Delete the oldest turns, and the oldest words, where there are more than are kept."""
    oldest = "SELECT {row} FROM {table} ORDER BY {row} LIMIT max(0, (SELECT count(*) FROM {table}) - :most)"
    rows = _rows(connection, oldest.format(row="row", table="turn_record"), {"most": MOST_TURN_RECORDS})
    delete_records(connection, rows)
    rows = _rows(connection, oldest.format(row="turn", table="record_words"), {"most": MOST_WHOLE})
    delete_words(connection, rows)


def _rows(connection: sqlite3.Connection, query: str, values: dict[str, Any]) -> tuple[int, ...]:
    return tuple(row for (row,) in connection.execute(query, values))
