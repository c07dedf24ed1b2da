"""Suggestions, which are facts that a person only mentioned, and the turns that are still to be read for them."""

from dataclasses import replace
import sqlite3
import time

from .erasure import mark_unerased
from .index import delete_rows, select_ids
from .memory import Memory
from .records import FactStatement, PastTurn
from .rows import find_equal_fact, mark_fact_replaced, store_fact
from .words import clean_fact, clean_text

_UNREAD_TURNS = "unread JOIN turn ON turn.id = unread.turn"
_OWN_SUGGESTION = "fact WHERE id = ? AND person = ? AND turn IS NOT NULL AND replaced_by IS NULL"


def take_ended_turns(memory: Memory, agent: str, before: float) -> dict[int, PastTurn]:
    """Return the unread turns of one person in a conversation whose last turn was before a time, by id, oldest first.

    They do not count as unread any more. A conversation of a single turn waits for another one. Returns nothing if no
    conversation has ended.
    """
    with memory.database.write_transaction() as connection:
        found = connection.execute(
            f"SELECT agent, conversation, person FROM {_UNREAD_TURNS} WHERE agent = ? GROUP BY conversation, person "
            "HAVING count(*) > 1 AND max(at) < ? ORDER BY max(at) LIMIT 1",
            (agent, before),
        ).fetchone()
        if found is None:
            return {}
        rows = connection.execute(
            f"SELECT turn.id, language, conversation, at, said, answer, agent, person, device FROM {_UNREAD_TURNS} "
            "WHERE agent = ? AND conversation = ? AND person IS ? ORDER BY at, turn.id",
            found,
        ).fetchall()
        connection.executemany("DELETE FROM unread WHERE turn = ?", [row[:1] for row in rows])
    return {row: replace(PastTurn(*values), unread_language=language) for row, language, *values in rows}


def take_talk_back(memory: Memory, whose: tuple[str, str | None], now: float, quiet: float, *, deletes: bool) -> None:
    """Let nobody read the turns of a person in a conversation since it was last quiet for some seconds.

    `whose` are the conversation and the person. With `deletes`, the turns and their summaries are deleted, too.
    """
    query = "SELECT id FROM {} WHERE conversation = ? AND person IS ? AND at >= ?"
    with memory.change_facts() as connection:
        since = _find_talk_start(connection, whose, now, quiet)
        turns, summaries = [select_ids(connection, query.format(kind), (*whose, since)) for kind in ("turn", "summary")]
        connection.executemany("DELETE FROM unread WHERE turn = ?", [(row,) for row in turns])
        if deletes:
            delete_rows(connection, memory.words, "summary", summaries, is_requested=True)
            delete_rows(connection, memory.words, "turn", turns, is_requested=True)
            mark_unerased(connection)
    if deletes:
        memory.erase()


def _find_talk_start(connection: sqlite3.Connection, whose: tuple[str, str | None], now: float, quiet: float) -> float:
    """Return when a person began to speak in a conversation after it was quiet for some seconds, or `now`."""
    start = now
    query = "SELECT at FROM turn WHERE conversation = ? AND person IS ? AND at <= ? ORDER BY at DESC"
    for (at,) in connection.execute(query, (*whose, now)):
        if start - at > quiet:
            break
        start = at
    return start


def add_suggestion(memory: Memory, fact: FactStatement, conversation: str) -> None:
    """Store a suggestion from a conversation, unless its turn was forgotten, or somebody told its owner the fact."""
    with memory.change_facts() as connection:
        told_row = connection.execute(
            "SELECT 1 FROM fact "
            "WHERE spoken = ?1 AND replaced_by IS NULL AND turn IS NULL AND coalesce(person, ?2) = ?2",
            (clean_text(clean_fact(fact.text)), fact.person),
        ).fetchone()
        if told_row is None and connection.execute("SELECT 1 FROM turn WHERE id = ?", (fact.turn,)).fetchone():
            store_fact(connection, memory.words, fact, None, conversation=conversation)


def confirm_suggestion(
    memory: Memory, row: int, person: str, *, for_all: bool, replaces: int | None = None
) -> int | None:
    """Turn a person's suggestion into a private fact, or into one of the home. Return its id, or None if it is gone.

    `replaces` is the id of the fact of the same owner that it corrects.
    """
    now = time.time()
    with memory.change_facts() as connection:
        found = connection.execute(
            f"SELECT text, quote, at, search_words FROM {_OWN_SUGGESTION}", (row, person)
        ).fetchone()
        if found is None:
            return None
        text, quote, at, search_words = found
        owner = None if for_all else person
        fact = FactStatement(text, owner, not for_all, "learned", quote, at, now, search_words=search_words)
        if (equal := find_equal_fact(connection, fact)) not in {None, row}:
            # the same words were told to everybody
            delete_rows(connection, memory.words, "fact", [row])
            row = equal or row
        else:
            connection.execute(
                "UPDATE fact SET person = ?, private = ?, turn = NULL, confirmed = ? WHERE id = ?",
                (owner, not for_all, now, row),
            )
        if replaces not in {None, row}:
            mark_fact_replaced(connection, memory.words, replaces, row)
    return row


def delete_suggestion(memory: Memory, row: int, person: str) -> bool:
    """Delete a person's suggestion, and nothing that was said. Return whether there was one."""
    with memory.change_facts() as connection:
        found = select_ids(connection, f"SELECT id FROM {_OWN_SUGGESTION}", (row, person))
        delete_rows(connection, memory.words, "fact", found, is_requested=True)
    return bool(found)
