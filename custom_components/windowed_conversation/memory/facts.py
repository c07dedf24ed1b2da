"""Facts: a repeated fact is one row, and an outdated fact points to the one that replaced it."""

from dataclasses import dataclass
import sqlite3

from . import index
from .errors import MemoryFull
from .index import delete
from .records import Fact
from .selection import visible
from .texts import QUOTE_LENGTH, fact_text, moment, name, one_line
from .words import Words, spoken

MOST_FACTS = 5_000
# How many tellings of a fact are kept, the newest.
_MOST_TELLINGS = 100


@dataclass(frozen=True, slots=True)
class ToldFact:
    """A fact to store, as a user stated it or as it was exported."""

    text: str
    person: str | None
    private: bool
    source: str
    quote: str
    at: float
    confirmed: float
    told: int = 1

    def __post_init__(self) -> None:
        """Refuse a private fact without an owner, which nobody could see."""
        if self.private and self.person is None:
            raise ValueError("A private fact is a person's")


def tell(
    connection: sqlite3.Connection,
    words: Words,
    told: ToldFact,
    replaces: int | None,
    *,
    teller: str | None = None,
    conversation: str | None = None,
) -> int:
    """Store a fact, or confirm the equal one, and close the fact that it replaces. Return its id.

    Who told it in which conversation is kept beside it. By default, the teller of a person's fact is its owner.
    """
    if replaces is not None:
        replaces = _current(connection, told.person, replaces)
    row = same_fact(connection, told)
    if row is None:
        row = store_fact(connection, words, told)
    else:
        connection.execute(
            "UPDATE fact SET confirmed = max(confirmed, ?), told = told + 1, private = private OR ? WHERE id = ?",
            (moment(told.confirmed), told.private, row),
        )
    if replaces not in {None, row}:
        close_fact(connection, words, replaces, row)
    connection.execute(
        "INSERT INTO telling VALUES (?, ?, ?, ?)",
        (row, moment(told.confirmed), name(teller or told.person), name(conversation)),
    )
    older = "SELECT rowid FROM telling WHERE fact = ? ORDER BY at DESC LIMIT -1 OFFSET ?"
    connection.execute(f"DELETE FROM telling WHERE rowid IN ({older})", (row, _MOST_TELLINGS))
    return row


def store_fact(
    connection: sqlite3.Connection, words: Words, told: ToldFact, row: int | None = None, origin: int | None = None
) -> int:
    """Store a fact as a new row and return its id."""
    _make_room(connection, words)
    text = fact_text(told.text)
    stored = connection.execute(
        """
        INSERT INTO fact (id, origin, at, person, private, text, spoken, source, quote, confirmed, told)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            row,
            origin,
            moment(told.at),
            name(told.person),
            told.private,
            text,
            spoken(text),
            one_line(told.source, QUOTE_LENGTH),
            one_line(told.quote, QUOTE_LENGTH),
            moment(told.confirmed),
            told.told,
        ),
    ).lastrowid
    assert stored is not None
    index.add(connection, words, "fact", stored)
    return stored


def close_fact(connection: sqlite3.Connection, words: Words, row: int, by: int) -> None:
    """Mark a fact as outdated."""
    index.remove(connection, words, "fact", row)
    connection.execute("UPDATE fact SET replaced_by = ? WHERE id = ?", (by, row))


def same_fact(connection: sqlite3.Connection, told: ToldFact) -> int | None:
    """Return the id of the same owner's current fact in the same words, or None."""
    found = connection.execute(
        """
        SELECT id FROM fact WHERE person IS ? AND spoken = ? AND replaced_by IS NULL
        """,
        (told.person, spoken(fact_text(told.text))),
    ).fetchone()
    return found[0] if found else None


def facts(connection: sqlite3.Connection, person: str | None, *, private: bool) -> list[Fact]:
    """Return the facts that this person may see: those of the home first, each group newest first."""
    rows = connection.execute(
        f"""
        SELECT id, text, at, person, private, source, quote, confirmed, told FROM fact
        WHERE replaced_by IS NULL AND {visible("fact", "fact")}
        ORDER BY person IS NOT NULL, at DESC, id DESC
        """,
        {"person": person, "private": private},
    )
    return [
        Fact(row, text, at, owner, bool(secret), source, quote, confirmed, told)
        for row, text, at, owner, secret, source, quote, confirmed, told in rows
    ]


def _current(connection: sqlite3.Connection, person: str | None, row: int) -> int:
    """Return the current fact that has replaced this one, or itself. Raises `ValueError` if it has another owner."""
    found = connection.execute(
        """
        WITH RECURSIVE later (id, by, person) AS (
            SELECT id, replaced_by, person FROM fact WHERE id = ?
            UNION SELECT fact.id, fact.replaced_by, fact.person FROM fact JOIN later ON fact.id = later.by
        )
        SELECT id, person FROM later WHERE by IS NULL
        """,
        (row,),
    ).fetchone()
    if found is None or found[1] != person:
        raise ValueError("A fact replaces one of the same owner")
    current: int = found[0]
    return current


def _make_room(connection: sqlite3.Connection, words: Words) -> None:
    """Delete the oldest outdated fact if the limit of facts is reached."""
    if connection.execute("SELECT count(*) FROM fact").fetchone()[0] < MOST_FACTS:
        return
    oldest = connection.execute("SELECT id FROM fact WHERE replaced_by IS NOT NULL ORDER BY id LIMIT 1").fetchone()
    if oldest is None:
        raise MemoryFull("There are as many facts as are kept")
    delete(connection, words, "fact", oldest)
