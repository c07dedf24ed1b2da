"""Forgetting: what a request selects, and what else repeats it.

A fact takes with it the facts that it replaced, the turns it was said in, all turns and episodes that contain most of
its words, and the episodes of the conversation in which it was told. A turn takes the episodes that summarize it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from dataclasses import replace
from itertools import chain
import json
import math
import sqlite3
from typing import Any

from .index import delete
from .record_forgetting import delete_records, delete_words, with_record
from .records import KINDS, Forgotten, Kind
from .selection import Selection, visible
from .words import Question, Words, spoken

# The share of a text's words that a repetition of it has.
_SHARE = 0.6
# Of what an unknown speaker said, a single word occurs in too many texts.
_FEWEST_WORDS = 2

_TEXTS: dict[Kind, str] = {"turn": "said || char(10) || answer", "episode": "text"}
_STOOD_FOR = """
    SELECT episode.id FROM turn JOIN episode USING (conversation)
    WHERE turn.id = ? AND turn.at BETWEEN episode.since AND episode.at
    AND episode.agent IS turn.agent AND episode.person IS turn.person
"""

# An episode may have a fact in other words if it covers the time at which that was told.
_COVERING = """
    SELECT episode.id FROM telling JOIN episode USING (conversation)
    WHERE telling.fact = ? AND telling.at BETWEEN episode.since AND episode.at
    AND (episode.person IS NULL OR episode.person IS telling.person)
"""

_AMONG = "{} IN (SELECT value FROM json_each({}))"
_FACTS, _TURNS, _EPISODES = (_AMONG.format("id", each) for each in (":facts", ":turns", ":episodes"))
_TOLD = _AMONG.format("fact", ":facts")
# To whom alone and where something was to be seen.
_SEEN = f"""
    SELECT CASE WHEN private THEN fact.person END, conversation
    FROM fact LEFT JOIN telling ON telling.fact = id WHERE {_FACTS}
    UNION SELECT person, conversation FROM turn WHERE {_TURNS}
    UNION SELECT person, conversation FROM episode WHERE {_EPISODES}
"""
_SINCE = f"""
    SELECT person, min(at) FROM (
        SELECT person, at FROM fact WHERE {_FACTS} UNION ALL SELECT person, at FROM telling WHERE {_TOLD}
        UNION ALL SELECT person, at FROM turn WHERE {_AMONG.format("id", ":said_turns")}
        UNION ALL SELECT person, since FROM episode WHERE {_AMONG.format("id", ":said_episodes")}
    ) WHERE person IS NOT NULL GROUP BY person
"""
_MOMENTS = f"""
    SELECT conversation, at FROM turn WHERE {_TURNS}
    UNION SELECT conversation, at FROM telling WHERE {_TOLD} AND conversation IS NOT NULL ORDER BY at
"""
_ITEMS = f"""
    SELECT 'fact', id, text FROM fact WHERE {_FACTS}
    UNION ALL SELECT 'turn', id, {_TEXTS["turn"]} FROM turn WHERE {_TURNS}
    UNION ALL SELECT 'episode', id, text FROM episode WHERE {_EPISODES}
"""
_SAID_BY_UNKNOWN = f"""
    SELECT said FROM turn WHERE :named AND person IS NULL AND {_AMONG.format("id", ":said_turns")}
    UNION SELECT text FROM episode WHERE :named AND person IS NULL AND {_EPISODES}
"""


class _Told:
    """The words of one text. Another text repeats it if it has `enough` of those `wanted`."""

    def __init__(self, words: Words, text: str) -> None:
        self.wanted = frozenset(words.question(text).words)
        self.enough = math.ceil(_SHARE * len(self.wanted))

    def is_repeated_in(self, held: AbstractSet[str]) -> bool:
        """Return whether a text with these terms repeats it, see `Words.held`."""
        return len(self.wanted & held) >= self.enough > 0


class Repetitions:
    """Finds the texts that repeat most words of any of those in `told`. One thread at a time may use it."""

    def __init__(self, languages: tuple[str, ...], told: Iterable[str]) -> None:
        self._words = Words(languages)
        self._told: dict[str, list[_Told]] = {}
        for each in (_Told(self._words, text) for text in told):
            for word in each.wanted:
                self._told.setdefault(word, []).append(each)

    def are_in(self, text: str) -> bool:
        """Return whether a text repeats any of them."""
        if not self._told:
            return False
        found = Counter(told for word in self._words.held(text) for told in self._told.get(word, ()))
        return any(count >= told.enough for told, count in found.items())

    def lend(self, text: str, said: str, answer: str) -> bool:
        """Return whether an answer has a word of a text that is not in what the user said, so that it is from there.

        If a turn is the text, models often begin an answer as its answer, on the second line: that has to be repeated.
        """
        first, _, second = text.partition("\n")
        lent = self._words.held(answer) - self._words.held(said)
        return not lent.isdisjoint(self._words.question(first).words) or _Told(self._words, second).is_repeated_in(lent)


def select(connection: sqlite3.Connection, words: Words, selection: Selection) -> Forgotten:
    """Return the memories that will be forgotten. Raises `ValueError` if there is no condition."""
    if not selection.is_asked_for and selection.before is None:
        raise ValueError("Forgetting needs a condition")
    question = None if selection.query is None else words.question(selection.query)
    chosen: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    for kind in selection.kinds:
        chosen[kind] = _chosen(connection, words, kind, selection, question)
    chosen["fact"] = set(_with_replaced(connection, chosen["fact"]))
    said = {kind: set(chosen[kind]) for kind in _TEXTS}
    for row in chosen["fact"]:
        chosen["episode"].update(episode for (episode,) in connection.execute(_COVERING, (row,)))
        for kind in _TEXTS:
            is_owned, telling = _telling(connection, words, row, kind)
            chosen[kind] |= telling
            said[kind] |= telling if is_owned else set()
    forgotten = _described(connection, words, _with_summaries(connection, chosen), said, is_named=selection.is_named)
    told = _Told(words, selection.query or "")
    return with_record(connection, forgotten, selection, lambda text: told.is_repeated_in(words.held(text)))


def select_expired(connection: sqlite3.Connection, before: Mapping[str, float], others: float) -> Forgotten:
    """Return the turns that ended before the time given for their agent, or `others`, and their episodes."""
    expired: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    for kind in _TEXTS:
        rows = connection.execute(
            f"SELECT id, at, agent FROM {kind} WHERE at < ?",
            (max([others, *before.values()]),),
        )
        expired[kind] = {row for row, at, agent in rows if at < before.get(agent, others)}
    return _with_summaries(connection, expired)


def _with_summaries(connection: sqlite3.Connection, chosen: dict[Kind, set[int]]) -> Forgotten:
    """Return the selected memories, with the episodes that summarize the turns among them."""
    for row in chosen["turn"]:
        chosen["episode"].update(episode for (episode,) in connection.execute(_STOOD_FOR, (row,)))
    return Forgotten(
        facts=tuple(sorted(chosen["fact"])),
        turns=tuple(sorted(chosen["turn"])),
        episodes=tuple(sorted(chosen["episode"])),
    )


def _described(
    connection: sqlite3.Connection, words: Words, chosen: Forgotten, said: Mapping[Kind, set[int]], *, is_named: bool
) -> Forgotten:
    """Return the selected memories, with the details by which others find their own copies of them.

    `said` are the turns and episodes among them that were not selected only because they repeat a fact of the home.
    """
    rows: dict[str, Any] = {f"{kind}s": json.dumps(ids) for kind, ids in chosen.ids.items()}
    rows |= {f"said_{kind}s": json.dumps([*ids]) for kind, ids in said.items()} | {"named": is_named}

    def read(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query, rows).fetchall()

    seen = read(_SEEN)
    unknown = (text for (text,) in read(_SAID_BY_UNKNOWN) if len(words.question(text).words) >= _FEWEST_WORDS)
    told = chain(*read(f"SELECT text, quote FROM fact WHERE {_FACTS}"), unknown)
    moments: dict[str, list[float]] = {}
    for conversation, at in read(_MOMENTS):
        moments.setdefault(conversation, []).append(at)
    return replace(
        chosen,
        since=dict(read(_SINCE)),
        people=frozenset(person for person, _ in seen),
        conversations=frozenset(conversation for _, conversation in seen if conversation is not None),
        moments=moments,
        told=tuple(sorted({*filter(None, told)})),
        texts={(kind, row): text for kind, row, text in read(_ITEMS)},
    )


def forget(connection: sqlite3.Connection, words: Words, chosen: Forgotten, *, is_asked_for: bool = False) -> None:
    """Delete what was selected. Record that its bytes are not erased yet."""
    for kind, rows in chosen.ids.items():
        delete(connection, words, kind, rows, is_asked_for=is_asked_for)
    delete_records(connection, chosen.records)
    delete_words(connection, chosen.wordless)
    if chosen != Forgotten():
        set_unerased(connection)


def forget_teller(connection: sqlite3.Connection, selection: Selection) -> None:
    """Forget that somebody of whom everything is forgotten has told facts of others."""
    if selection.is_named or selection.person in {..., None} or selection.agent is not None:
        return
    gone = connection.execute(
        "DELETE FROM telling WHERE person = ?1 AND (?2 IS NULL OR at >= ?2) AND (?3 IS NULL OR at < ?3)",
        (selection.person, selection.since, selection.before),
    )
    if gone.rowcount:
        set_unerased(connection)


def set_unerased(connection: sqlite3.Connection) -> None:
    """Note that the file may have bytes of what was deleted."""
    connection.execute("INSERT OR REPLACE INTO setting VALUES ('unerased', 1)")


def is_unerased(connection: sqlite3.Connection) -> bool:
    """Return whether bytes of deleted rows may still be in the file."""
    return connection.execute("SELECT 1 FROM setting WHERE name = 'unerased'").fetchone() is not None


def set_erased(connection: sqlite3.Connection) -> None:
    """Record that no byte of deleted rows is left in the file."""
    connection.execute("DELETE FROM setting WHERE name = 'unerased'")


def _chosen(
    connection: sqlite3.Connection, words: Words, kind: Kind, selection: Selection, question: Question | None
) -> set[int]:
    whose = "true"
    if selection.person is not ...:
        whose = visible(kind, kind) if selection.is_named else "person = :person"
    if selection.agent is not None:
        whose += " AND agent = :agent" if kind in _TEXTS else " AND false"
    named = "true" if selection.ids is None else "id IN (SELECT value FROM json_each(:ids))"
    rows = connection.execute(
        f"SELECT id FROM {kind} WHERE {named} AND at >= :since AND at < :before AND {whose}",
        {
            "ids": json.dumps([row for of, row in selection.ids or () if of == kind]),
            "since": -math.inf if selection.since is None else selection.since,
            "before": math.inf if selection.before is None else selection.before,
            "person": None if selection.person is ... else selection.person,
            "agent": selection.agent,
            "private": selection.private,
        },
    )
    chosen = {row for (row,) in rows}
    return chosen if question is None else chosen.intersection(_matching(connection, words, kind, question))


def _matching(connection: sqlite3.Connection, words: Words, kind: Kind, question: Question) -> Iterator[int]:
    """Yield the rows that contain all words of a question, outdated facts included."""
    terms = [_terms(" AND ", question.words), *(f'"{beginning}" *' for beginning in question.beginnings)]
    yield from _rows(connection, kind, " AND ".join(filter(None, terms)))
    if kind == "fact":
        for row, text in connection.execute("SELECT id, text FROM fact WHERE replaced_by IS NOT NULL"):
            if words.holds(text, question):
                yield row


def _with_replaced(connection: sqlite3.Connection, rows: Iterable[int]) -> Iterator[int]:
    for row in rows:
        earlier = connection.execute(
            """
            WITH RECURSIVE earlier (id) AS (
                SELECT ?1 UNION SELECT fact.id FROM fact JOIN earlier ON fact.replaced_by = earlier.id
            )
            SELECT id FROM earlier
            """,
            (row,),
        )
        yield from (each for (each,) in earlier)


def _telling(connection: sqlite3.Connection, words: Words, fact: int, kind: Kind) -> tuple[bool, set[int]]:
    """Return whether a fact has an owner, and the turns or episodes that repeat it.

    Those are its owner's and the home's, or anyone's if it is the home's.
    """
    person, text, quote = connection.execute("SELECT person, text, quote FROM fact WHERE id = ?", (fact,)).fetchone()
    said, quoted = spoken(quote), words.question(quote).words
    told = _Told(words, text)
    candidates = set(_rows(connection, kind, _terms(" AND ", quoted)))
    # a text with enough of the words has at least one of these
    candidates.update(_rows(connection, kind, _terms(" OR ", sorted(told.wanted)[max(0, told.enough - 1) :])))
    telling = set[int]()
    for row in candidates:
        found = connection.execute(
            f"SELECT {_TEXTS[kind]} FROM {kind} WHERE id = ? AND (?2 IS NULL OR person IS NULL OR person = ?2)",
            (row, person),
        ).fetchone()
        if found and ((quoted and said in spoken(found[0])) or told.is_repeated_in(words.held(found[0]))):
            telling.add(row)
    return person is not None, telling


def _terms(between: str, words: Iterable[str]) -> str:
    return between.join(f'"{word}"' for word in words)


def _rows(connection: sqlite3.Connection, kind: Kind, match: str) -> Iterator[int]:
    if match:
        found = connection.execute(
            f"SELECT rowid FROM {kind}_words WHERE {kind}_words MATCH ?", (f"words : ({match})",)
        )
        yield from (row for (row,) in found)
