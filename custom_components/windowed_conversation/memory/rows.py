"""The rows of facts, turns and episodes. A repeated fact has one row; an outdated fact refers to its replacement."""

from collections.abc import Mapping
from dataclasses import dataclass
import sqlite3
from typing import Any

from . import index
from .records import Episode, Fact, Kind, MemoryFull, PastTurn, Summary
from .search import visible
from .words import (
    ANSWER_LENGTH,
    EPISODE_LENGTH,
    NAME_LENGTH,
    QUOTE_LENGTH,
    SAID_LENGTH,
    Words,
    fact_text,
    moment,
    name,
    one_line,
    spoken,
)

MOST_FACTS = 5_000
MOST_ROWS: Mapping[Kind, int] = {"turn": 200_000, "episode": 20_000}
# How many of the newest statements of a fact are stored.
_MOST_TELLINGS = 100
# The limits are checked only after this many rows, because counting rows is slow.
_EVERY = 500

_WHOSE = "conversation = :conversation AND agent IS :agent AND person IS :person"


@dataclass(frozen=True, slots=True)
class FactStatement:
    """A fact to store, either stated by a user or exported; `tellings` is how often it was stated."""

    text: str
    person: str | None
    private: bool
    source: str
    quote: str
    at: float
    confirmed: float
    tellings: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError for a private fact without an owner, which nobody could see."""
        if self.private and self.person is None:
            raise ValueError("A private fact is a person's")


def store_fact(
    connection: sqlite3.Connection,
    words: Words,
    fact: FactStatement,
    replaces: int | None,
    *,
    teller: str | None = None,
    conversation: str | None = None,
) -> int:
    """Store a fact, or confirm an equal one, and close the fact that it replaces. Return the id of the fact.

    `teller` is the person who stated it, by default its owner; it is stored together with the conversation.
    """
    if replaces is not None:
        replaces = _current(connection, fact.person, replaces)
    row = equal_fact(connection, fact)
    if row is None:
        row = insert(connection, words, fact)
    else:
        connection.execute(
            "UPDATE fact SET confirmed = max(confirmed, ?), told = told + 1, private = private OR ? WHERE id = ?",
            (moment(fact.confirmed), fact.private, row),
        )
    if replaces not in {None, row}:
        close_fact(connection, words, replaces, row)
    connection.execute(
        "INSERT INTO telling VALUES (?, ?, ?, ?)",
        (row, moment(fact.confirmed), name(teller or fact.person), name(conversation)),
    )
    older = "SELECT rowid FROM telling WHERE fact = ? ORDER BY at DESC LIMIT -1 OFFSET ?"
    connection.execute(f"DELETE FROM telling WHERE rowid IN ({older})", (row, _MOST_TELLINGS))
    return row


def close_fact(connection: sqlite3.Connection, words: Words, row: int, by: int) -> None:
    """Mark a fact as replaced by another one."""
    index.remove(connection, words, "fact", row)
    connection.execute("UPDATE fact SET replaced_by = ? WHERE id = ?", (by, row))


def equal_fact(connection: sqlite3.Connection, fact: FactStatement) -> int | None:
    """Return the id of a current fact with the same owner and the same words, or None."""
    found = connection.execute(
        "SELECT id FROM fact WHERE person IS ? AND spoken = ? AND replaced_by IS NULL",
        (fact.person, spoken(fact_text(fact.text))),
    ).fetchone()
    return found[0] if found else None


def facts(connection: sqlite3.Connection, person: str | None, *, private: bool) -> list[Fact]:
    """Return the facts that this person may see: first the home's, then the person's, each newest first."""
    rows = connection.execute(
        f"""
        SELECT id, text, at, person, private, source, quote, confirmed, told FROM fact
        WHERE replaced_by IS NULL AND {visible("fact", "fact")}
        ORDER BY person IS NOT NULL, at DESC, id DESC
        """,
        {"person": person, "private": private},
    )
    return [Fact(row, text, at, owner, bool(secret), *rest) for row, text, at, owner, secret, *rest in rows]


def insert(
    connection: sqlite3.Connection,
    words: Words,
    record: FactStatement | PastTurn | Episode,
    row: int | None = None,
    origin: int | None = None,
) -> int:
    """Insert a record and return the id of the row. A turn is added at the end of its conversation."""
    kind, values = row_values(record)
    if kind == "fact":
        _make_room_for_fact(connection, words)
    elif kind == "turn":
        last = "SELECT coalesce(max(place) + 1, 0) FROM turn WHERE conversation = ?"
        values["place"] = connection.execute(last, (values["conversation"],)).fetchone()[0]
    values |= {"id": row, "origin": origin}
    places = ", ".join([f":{column}" for column in values])
    stored = connection.execute(f"INSERT INTO {kind} ({', '.join(values)}) VALUES ({places})", values).lastrowid
    assert stored is not None
    index.add(connection, words, kind, stored)
    if kind in MOST_ROWS and stored % _EVERY == 0:
        index.delete_oldest(connection, words, kind, MOST_ROWS[kind])
    return stored


def row_values(record: FactStatement | PastTurn | Episode) -> tuple[Kind, dict[str, Any]]:
    """Return the table of a record and its column values, cut to their limits. Raises `ValueError` without a text."""
    match record:
        case FactStatement():
            text = fact_text(record.text)
            return "fact", {
                "at": moment(record.at),
                "person": name(record.person),
                "private": record.private,
                "text": text,
                "spoken": spoken(text),
                "source": one_line(record.source, QUOTE_LENGTH),
                "quote": one_line(record.quote, QUOTE_LENGTH),
                "confirmed": moment(record.confirmed),
                "told": record.tellings,
            }
        case PastTurn():
            if not (one_line(record.said, SAID_LENGTH) or one_line(record.answer, ANSWER_LENGTH)):
                raise ValueError("A turn needs words")
            tools = " ".join(dict.fromkeys(record.tools))
            return "turn", {
                **_context_values(record),
                "device": name(record.device),
                # cut to the maximum length of a name
                "tools": tools.encode()[:NAME_LENGTH].decode(errors="ignore") or None,
                "said": one_line(record.said, SAID_LENGTH),
                "answer": one_line(record.answer, ANSWER_LENGTH),
            }
        case Episode():
            text = one_line(record.text, EPISODE_LENGTH)
            if not text:
                raise ValueError("An episode needs words")
            return "episode", {**_context_values(record), "since": moment(record.since), "text": text}


def _context_values(record: PastTurn | Episode) -> dict[str, Any]:
    return {
        "at": moment(record.at),
        "conversation": name(record.conversation),
        "person": name(record.person),
        "agent": name(record.agent),
    }


def store_summary(connection: sqlite3.Connection, words: Words, summary: Summary) -> int | None:
    """Store a summary as an episode, replacing the episode of the earlier summary, and return its id.

    Returns None if any of its turns is not stored for this person: texts that were forgotten, have expired or must not
    be stored must not return in the words of a summary.
    """
    whose = {"conversation": summary.conversation, "agent": summary.agent, "person": summary.person}
    since, at, earlier = summary.since, summary.until, None
    if summary.earlier:
        earlier = connection.execute(
            f"SELECT id, since, at FROM episode WHERE {_WHOSE} AND text = :text ORDER BY id DESC",
            {**whose, "text": one_line(summary.earlier, EPISODE_LENGTH)},
        ).fetchone()
        if earlier is None:
            return None
        since, at = min(since, earlier[1]), max(at, earlier[2])
    times = _times(connection, whose, summary)
    if times is None or not (earlier or times):
        return None
    if earlier:
        index.delete(connection, words, "episode", [earlier[0]])
    since, at = min([since, *times]), max([at, *times])
    episode = Episode(summary.conversation, since, at, summary.text, summary.agent, summary.person)
    return insert(connection, words, episode)


def _times(connection: sqlite3.Connection, whose: dict[str, str | None], summary: Summary) -> list[float] | None:
    """Return the times of the turns of a summary, or None if one of the turns is not stored."""
    wanted = {one_line(said, SAID_LENGTH) for said in summary.said}
    rows = connection.execute(
        f"SELECT said, at FROM turn WHERE {_WHOSE} AND at >= :since", {**whose, "since": summary.since}
    )
    found = [(said, at) for said, at in rows if said in wanted]
    return None if wanted - {said for said, _ in found} else [at for _, at in found]


def _current(connection: sqlite3.Connection, person: str | None, row: int) -> int:
    """Return the id of the fact at the end of a fact's chain of replacements. Raises `ValueError` for another owner."""
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


def _make_room_for_fact(connection: sqlite3.Connection, words: Words) -> None:
    """Delete the oldest outdated fact if the limit of facts is reached.

    Raises `MemoryFull` if there is no outdated fact.
    """
    if connection.execute("SELECT count(*) FROM fact").fetchone()[0] < MOST_FACTS:
        return
    oldest = connection.execute("SELECT id FROM fact WHERE replaced_by IS NOT NULL ORDER BY id LIMIT 1").fetchone()
    if oldest is None:
        raise MemoryFull("There are as many facts as memory can have")
    index.delete(connection, words, "fact", oldest)
