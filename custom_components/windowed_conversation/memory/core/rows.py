"""The rows of facts, turns and summaries. A repeated fact has one row; an outdated fact refers to its replacement."""

from collections.abc import Mapping
from dataclasses import replace
import sqlite3
from typing import Any

from . import index
from .records import Fact, FactStatement, MemoryFull, MemoryKind, PastSummary, PastTurn, Summary
from .words import (
    MAX_ANSWER_CHARS,
    MAX_ID_BYTES,
    MAX_QUOTE_CHARS,
    MAX_SEARCH_WORDS_CHARS,
    MAX_SUMMARY_CHARS,
    MAX_USER_TEXT_CHARS,
    Words,
    clean_fact,
    clean_text,
    join_lines,
    validate_id,
    validate_timestamp,
)

MAX_FACTS = 5_000
MAX_ROWS_BY_KIND: Mapping[MemoryKind, int] = {"turn": 200_000, "summary": 20_000}
# How many of the newest statements of a fact are stored.
_MAX_STATEMENTS = 100
# The limits are checked only after this many rows, because counting rows is slow.
_ROWS_PER_LIMIT_CHECK = 500

_OWNER_CONDITION = "conversation = :conversation AND agent IS :agent AND person IS :person"


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
        replaces = _find_current_fact(connection, fact.person, replaces)
    row = find_equal_fact(connection, fact)
    if row is None:
        row = insert_record(connection, words, fact)
    else:
        connection.execute(
            "UPDATE fact SET confirmed = max(confirmed, ?), told = told + 1, private = private OR ?, turn = ? "
            "WHERE id = ?",
            (validate_timestamp(fact.confirmed), fact.private, fact.turn, row),
        )
        if fact.search_words:
            set_search_words(connection, words, row, fact.search_words)
    if replaces not in {None, row}:
        mark_fact_replaced(connection, words, replaces, row)
    if fact.turn is None:
        mentioned = "SELECT id FROM fact WHERE turn IS NOT NULL AND person IS ? AND spoken = ?"
        spoken = clean_text(clean_fact(fact.text))
        index.delete_rows(connection, words, "fact", index.select_ids(connection, mentioned, (teller, spoken)))
    connection.execute(
        "INSERT INTO telling VALUES (?, ?, ?, ?)",
        (row, validate_timestamp(fact.confirmed), validate_id(teller or fact.person), validate_id(conversation)),
    )
    older = "SELECT rowid FROM telling WHERE fact = ? ORDER BY at DESC LIMIT -1 OFFSET ?"
    connection.execute(f"DELETE FROM telling WHERE rowid IN ({older})", (row, _MAX_STATEMENTS))
    return row


def set_search_words(connection: sqlite3.Connection, words: Words, row: int, search_words: str) -> None:
    """Set the search words of a fact, if it still exists."""
    index.index_row(connection, words, "fact", row, "delete")
    connection.execute("UPDATE fact SET search_words = ? WHERE id = ?", (_clean_search_words(search_words), row))
    index.index_row(connection, words, "fact", row)


def mark_fact_replaced(connection: sqlite3.Connection, words: Words, row: int, by: int) -> None:
    """Mark a fact as replaced by another one."""
    index.index_row(connection, words, "fact", row, "delete")
    connection.execute("UPDATE fact SET replaced_by = ? WHERE id = ?", (by, row))


def find_equal_fact(connection: sqlite3.Connection, fact: FactStatement) -> int | None:
    """Return the id of a current fact with the same owner and the same words, or None."""
    found = connection.execute(
        "SELECT id FROM fact WHERE person IS :person AND spoken = :spoken AND replaced_by IS NULL", build_row(fact)[1]
    ).fetchone()
    return found[0] if found else None


def select_facts(connection: sqlite3.Connection) -> tuple[Fact, ...]:
    """Return the current facts of everybody: first the home's, each newest first."""
    rows = connection.execute(
        """
        SELECT private, text, person, source, quote, at, confirmed, told, search_words, turn, id FROM fact
        WHERE replaced_by IS NULL ORDER BY person IS NOT NULL, at DESC, id DESC
        """
    )
    return tuple([Fact(text, owner, bool(secret), *rest, id=row) for secret, text, owner, *rest, row in rows])


def insert_record(
    connection: sqlite3.Connection,
    words: Words,
    record: FactStatement | PastTurn | PastSummary,
    row: int | None = None,
    origin: int | None = None,
) -> int:
    """Insert a record and return the id of the row. A turn is added at the end of its conversation."""
    kind, values = build_row(record)
    if kind == "fact":
        _make_room_for_fact(connection, words)
    elif kind == "turn":
        last = "SELECT coalesce(max(place) + 1, 0) FROM turn WHERE conversation = ?"
        values["place"] = connection.execute(last, (values["conversation"],)).fetchone()[0]
    values |= {"id": row, "origin": origin}
    places = ", ".join([f":{column}" for column in values])
    stored = connection.execute(f"INSERT INTO {kind} ({', '.join(values)}) VALUES ({places})", values).lastrowid
    assert stored is not None
    index.index_row(connection, words, kind, stored)
    if isinstance(record, PastTurn) and record.unread_language:
        connection.execute("INSERT INTO unread VALUES (?, ?)", (stored, record.unread_language))
    if kind in MAX_ROWS_BY_KIND and stored % _ROWS_PER_LIMIT_CHECK == 0:
        oldest = f"SELECT id FROM {kind} ORDER BY at, id LIMIT max(0, (SELECT count(*) FROM {kind}) - ?)"
        index.delete_rows(connection, words, kind, index.select_ids(connection, oldest, (MAX_ROWS_BY_KIND[kind],)))
    return stored


def build_row(record: FactStatement | PastTurn | PastSummary) -> tuple[MemoryKind, dict[str, Any]]:
    """Return the table of a record and its column values, cut to their limits. Raises `ValueError` for a bad one."""
    match record:
        case FactStatement():
            if record.private and record.person is None:
                raise ValueError("A private fact is a person's, because nobody else could see it")
            if record.turn is not None and not record.private:
                raise ValueError("A suggestion is private")
            text = clean_fact(record.text)
            return "fact", {
                "at": validate_timestamp(record.at),
                "person": validate_id(record.person),
                "private": record.private,
                "text": text,
                "spoken": clean_text(text),
                "source": join_lines(record.source, MAX_QUOTE_CHARS),
                "quote": join_lines(record.quote, MAX_QUOTE_CHARS),
                "search_words": record.search_words and _clean_search_words(record.search_words),
                "confirmed": validate_timestamp(record.confirmed),
                "told": record.tellings,
                "turn": record.turn,
            }
        case PastTurn():
            if not (join_lines(record.said, MAX_USER_TEXT_CHARS) or join_lines(record.answer, MAX_ANSWER_CHARS)):
                raise ValueError("A turn needs words")
            tools = " ".join(dict.fromkeys(record.tools))
            return "turn", {
                **_build_context_values(record),
                "device": validate_id(record.device),
                # cut to the maximum length of a name
                "tools": tools.encode()[:MAX_ID_BYTES].decode(errors="ignore") or None,
                "said": join_lines(record.said, MAX_USER_TEXT_CHARS),
                "answer": join_lines(record.answer, MAX_ANSWER_CHARS),
            }
        case PastSummary():
            text = join_lines(record.text, MAX_SUMMARY_CHARS)
            if not text:
                raise ValueError("A summary needs words")
            return "summary", {**_build_context_values(record), "since": validate_timestamp(record.since), "text": text}


def _clean_search_words(text: str) -> str:
    return join_lines(text, MAX_SEARCH_WORDS_CHARS, removes_brackets=True)


def _build_context_values(record: PastTurn | PastSummary) -> dict[str, Any]:
    return {
        "at": validate_timestamp(record.at),
        "conversation": validate_id(record.conversation),
        "person": validate_id(record.person),
        "agent": validate_id(record.agent),
    }


def store_summary(connection: sqlite3.Connection, words: Words, summary: Summary) -> int | None:
    """Store a summary, replacing the earlier one that it continues, and return its id.

    Returns None if any of its turns is not stored for this person: texts that were forgotten, have expired or must not
    be stored must not return in the words of a summary.
    """
    whose = {"conversation": summary.conversation, "agent": summary.agent, "person": summary.person}
    since, at, earlier = summary.since, summary.at, None
    if summary.earlier_text:
        earlier = connection.execute(
            f"SELECT id, since, at FROM summary WHERE {_OWNER_CONDITION} AND text = :text ORDER BY id DESC",
            {**whose, "text": join_lines(summary.earlier_text, MAX_SUMMARY_CHARS)},
        ).fetchone()
        if earlier is None:
            return None
        since, at = min(since, earlier[1]), max(at, earlier[2])
    times = _turn_times(connection, whose, summary)
    if times is None or not (earlier or times):
        return None
    if earlier:
        index.delete_rows(connection, words, "summary", [earlier[0]])
    return insert_record(connection, words, replace(summary, since=min([since, *times]), at=max([at, *times])))


def _turn_times(connection: sqlite3.Connection, whose: dict[str, str | None], summary: Summary) -> list[float] | None:
    """Return the times of the turns of a summary, or None if one of the turns is not stored."""
    wanted = {join_lines(said, MAX_USER_TEXT_CHARS) for said in summary.user_texts}
    rows = connection.execute(
        f"SELECT said, at FROM turn WHERE {_OWNER_CONDITION} AND at >= :since", {**whose, "since": summary.since}
    )
    found = [(said, at) for said, at in rows if said in wanted]
    return None if wanted - {said for said, _ in found} else [at for _, at in found]


def _find_current_fact(connection: sqlite3.Connection, person: str | None, row: int) -> int:
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
    """Delete the oldest outdated fact if the limit of facts is reached, or else the oldest suggestion.

    Raises `MemoryFull` if there is none of either.
    """
    if connection.execute("SELECT count(*) FROM fact").fetchone()[0] < MAX_FACTS:
        return
    outdated = """
        SELECT id FROM fact WHERE replaced_by IS NOT NULL OR turn IS NOT NULL ORDER BY replaced_by IS NULL, id LIMIT 1
    """
    oldest = connection.execute(outdated).fetchone()
    if oldest is None:
        raise MemoryFull("There are as many facts as memory can have")
    index.delete_rows(connection, words, "fact", oldest)
