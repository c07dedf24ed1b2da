"""Forgetting: an `Erasure` decides once what memory, the record of turns and the stored conversations lose."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
import json
import math
import sqlite3
from typing import Any, NamedTuple

from .index import delete, select_ids
from .record import AMONG, delete_records, delete_words
from .records import KINDS, Forgotten, Kind, Selection
from .search import visible
from .words import QuestionTerms, Words, spoken

# A text repeats another one if it contains at least this share of the other text's words.
_SHARE = 0.6
# Texts of unknown speakers with fewer words are not looked for elsewhere: a single word occurs in too many other texts.
_FEWEST_WORDS = 2

_TEXTS: dict[Kind, str] = {"turn": "said || char(10) || answer", "episode": "text"}
_FACTS, _TURNS, _EPISODES = (AMONG.format("id", each) for each in (":facts", ":turns", ":episodes"))
_OF_FACTS = AMONG.format("fact", ":facts")

_REPLACED = f"""
    WITH RECURSIVE earlier (id) AS (
        SELECT id FROM fact WHERE {_FACTS} UNION SELECT fact.id FROM fact JOIN earlier ON fact.replaced_by = earlier.id
    )
    SELECT id FROM earlier
"""
# An episode that covers the time at which a person stated a fact may repeat that fact in other words.
_COVERING = f"""
    SELECT episode.id FROM telling JOIN episode USING (conversation)
    WHERE {_OF_FACTS} AND telling.at BETWEEN episode.since AND episode.at
    AND (episode.person IS NULL OR episode.person IS telling.person)
"""
_SUMMARIZING = f"""
    SELECT episode.id FROM turn JOIN episode USING (conversation)
    WHERE {AMONG.format("turn.id", ":turns")} AND turn.at BETWEEN episode.since AND episode.at
    AND episode.agent IS turn.agent AND episode.person IS turn.person
"""
# The people who alone could see the rows, and the conversations that the rows come from.
_SEEN = f"""
    SELECT CASE WHEN private THEN fact.person END, conversation
    FROM fact LEFT JOIN telling ON telling.fact = id WHERE {_FACTS}
    UNION SELECT person, conversation FROM turn WHERE {_TURNS}
    UNION SELECT person, conversation FROM episode WHERE {_EPISODES}
"""
_SINCE = f"""
    SELECT person, min(at) FROM (
        SELECT person, at FROM fact WHERE {_FACTS} UNION ALL SELECT person, at FROM telling WHERE {_OF_FACTS}
        UNION ALL SELECT person, at FROM turn WHERE {AMONG.format("id", ":own_turns")}
        UNION ALL SELECT person, since FROM episode WHERE {AMONG.format("id", ":own_episodes")}
    ) WHERE person IS NOT NULL GROUP BY person
"""
_MOMENTS = f"""
    SELECT conversation, at FROM turn WHERE {_TURNS}
    UNION SELECT conversation, at FROM telling WHERE {_OF_FACTS} AND conversation IS NOT NULL ORDER BY at
"""
_ROW_TEXTS = f"""
    SELECT 'fact', id, text FROM fact WHERE {_FACTS}
    UNION ALL SELECT 'turn', id, {_TEXTS["turn"]} FROM turn WHERE {_TURNS}
    UNION ALL SELECT 'episode', id, text FROM episode WHERE {_EPISODES}
"""
_BY_UNKNOWN = f"""
    SELECT said FROM turn WHERE :named AND person IS NULL AND {AMONG.format("id", ":own_turns")}
    UNION SELECT text FROM episode WHERE :named AND person IS NULL AND {_EPISODES}
"""

# A shared window passes one person's input on to others, so other people's turns in the same conversation count too.
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
_OWNED = """
    SELECT row FROM turn_record WHERE at >= :since AND at < :before
    AND (:anybody OR figures ->> 'person' = :person) AND (:agent IS NULL OR figures ->> 'agent' = :agent)
"""
_RECORDED = f"""
    SELECT said || char(10) || answer || char(10) || calls FROM record_words WHERE {AMONG.format("turn", ":rows")}
"""


class ExchangeOwner(NamedTuple):
    """The owner of an exchange: an agent, a conversation, and the person who owns the window, None if it is shared."""

    agent: str
    person: str | None
    conversation: str


class ExchangeText(NamedTuple):
    """The text of an exchange, and the forgotten texts that memory recalled for it.

    `is_readable` is False for a summary that only its provider can read, so that its text is unknown.
    """

    said: str
    answer: str
    recalled: tuple[str, ...] = ()
    is_summary: bool = False
    is_readable: bool = True


class _Wording:
    """The words of one text. Another text repeats it if it contains `enough` of the `wanted` words."""

    def __init__(self, words: Words, text: str) -> None:
        self.wanted = frozenset(words.question(text).words)
        self.enough = math.ceil(_SHARE * len(self.wanted))

    def is_repeated_in(self, terms: AbstractSet[str]) -> bool:
        return len(self.wanted & terms) >= self.enough > 0


class _Wordings:
    """Finds texts that repeat most words of any of the given texts."""

    def __init__(self, words: Words, texts: Iterable[str]) -> None:
        self._wordings: dict[str, list[_Wording]] = {}
        for text in texts:
            wording = _Wording(words, text)
            for word in wording.wanted:
                self._wordings.setdefault(word, []).append(wording)

    def are_in(self, terms: Iterable[str]) -> bool:
        counts = Counter(each for term in terms for each in self._wordings.get(term, ()))
        return any(count >= each.enough for each, count in counts.items())


@dataclass(frozen=True, slots=True)
class Erasure:
    """Everything that a request to forget deletes. Only one thread at a time may use it.

    Memory loses the rows in `forgotten`:

    - the facts, turns and episodes that the selection matches, and the facts that these facts replaced
    - turns and episodes with a fact's quote or most of its words; for a person's fact, only those of the person and the
      home
    - episodes that cover the time at which a person stated a fact in their conversation, or that summarize a deleted
      turn

    The record of turns loses all rows of a person or an agent of whom everything is forgotten. It also loses the text
    of every turn whose person or conversation may have received the facts and turns. Windows, stored conversations and
    their summaries call `keeps` for each exchange.

    - `since`: for each person, the time from which they may have repeated their own statements in other words
    - `people`: the people who alone could see the rows; None in it means everybody
    - `conversations`: the conversations that the rows come from; `moments` has the sorted times of the rows in each
    - `texts`: the forgotten texts by kind and id
    """

    selection: Selection
    forgotten: Forgotten
    since: Mapping[str, float]
    people: AbstractSet[str | None]
    conversations: AbstractSet[str]
    moments: Mapping[str, Sequence[float]]
    texts: Mapping[tuple[Kind, int], str]
    _words: Words
    _wordings: _Wordings
    _query: _Wordings

    def keeps(self, text: ExchangeText, began: float | None, ended: float, owner: ExchangeOwner) -> bool:
        """Return whether an exchange is kept, judging by its text, its times and its owner.

        If an agent is forgotten, exactly the exchanges of that agent are deleted. Otherwise an exchange is deleted if

        - it repeats most words of a forgotten text, or of the query if the person may change the window
        - its answer contains words that can only come from a forgotten text
        - it may contain a forgotten text in other words: it is from a person's window since that person first stated
          that text, it was in progress at that moment, or it is an unreadable summary of that person or conversation
        - everything of its owner in this time span is forgotten
        """
        if self.selection.agent is not None:
            # facts that this agent received are kept in the exchanges of other agents
            return self.selection.agent != owner.agent
        return not (self._may_have_heard(text, began, ended, owner) or self._is_repeated_in(text, owner.person))

    def _may_have_heard(self, text: ExchangeText, began: float | None, ended: float, owner: ExchangeOwner) -> bool:
        since = self.since.get(owner.person or "")
        if not text.is_readable and (since is not None or owner.conversation in self.conversations):
            return True
        if since is not None and ended >= since:
            return True
        moments = () if began is None or text.is_summary else self.moments.get(owner.conversation, ())
        if moments and any_between(moments, began or 0.0, ended):
            return True
        start, before = self.selection.span
        return self._has_all_of(owner.person) and ended >= start and (began or -math.inf) < before

    def _has_all_of(self, person: str | None) -> bool:
        if self.selection.is_named or "turn" not in self.selection.kinds:
            return False
        return self.selection.person is ... or (person is not None and person == self.selection.person)

    def repeats_query(self, text: str) -> bool:
        """Return whether a text contains most words of the query."""
        return self._query.are_in(self._words.term_set(text))

    def _is_repeated_in(self, text: ExchangeText, person: str | None) -> bool:
        terms = self._words.term_set(f"{text.said}\n{text.answer}")
        may_change = self.selection.person is ... or person in {None, self.selection.person}
        if self._wordings.are_in(terms) or (may_change and self._query.are_in(terms)):
            return True
        return any(self._lent(each, text) for each in text.recalled)

    def _lent(self, recalled: str, text: ExchangeText) -> bool:
        """Return whether an answer contains a word that the user did not say and that is in the recalled text.

        The second line of a recalled turn is its answer. Models often begin an answer with the same words, so a single
        common word is not enough there: most of that line must be repeated.
        """
        first, _, second = recalled.partition("\n")
        lent = self._words.term_set(text.answer) - self._words.term_set(text.said)
        is_from_first = not lent.isdisjoint(self._words.question(first).words)
        return is_from_first or _Wording(self._words, second).is_repeated_in(lent)


# Deletes the copies that another room has, in the same transaction, and returns the number of affected exchanges. In a
# dry run (the last argument), it only counts them.
type Companion = Callable[[sqlite3.Connection, Erasure, bool], int]


def any_between(times: Sequence[float], first: float, last: float) -> bool:
    """Return whether any of these sorted times is within the span."""
    place = bisect_left(times, first)
    return place < len(times) and times[place] <= last


def decide(connection: sqlite3.Connection, words: Words, selection: Selection) -> Erasure:
    """Return the erasure of everything that meets the conditions. Raises `ValueError` if there are no conditions."""
    if not selection.is_asked_for and selection.before is None:
        raise ValueError("Forgetting needs a condition")
    rows, own = _select_rows(connection, words, selection)
    values: dict[str, Any] = {f"{kind}s": json.dumps([*each]) for kind, each in rows.items()}
    values |= {f"own_{kind}s": json.dumps([*each]) for kind, each in own.items()} | {"named": selection.is_named}

    def read(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query, values).fetchall()

    seen = read(_SEEN)
    moments: dict[str, list[float]] = {}
    for conversation, at in read(_MOMENTS):
        moments.setdefault(conversation, []).append(at)
    unknown = [text for (text,) in read(_BY_UNKNOWN) if len(words.question(text).words) >= _FEWEST_WORDS]
    stated = [text for each in read(f"SELECT text, quote FROM fact WHERE {_FACTS}") for text in each]
    # a separate instance, because stemmers are not thread-safe and another thread uses those in `words`
    matching = Words(words.languages)
    erasure = Erasure(
        selection=selection,
        forgotten=Forgotten(tuple(sorted(rows["fact"])), tuple(sorted(rows["turn"])), tuple(sorted(rows["episode"]))),
        since=dict(read(_SINCE)),
        people={person for person, _ in seen},
        conversations={conversation for _, conversation in seen if conversation is not None},
        moments=moments,
        texts={(kind, row): text for kind, row, text in read(_ROW_TEXTS)},
        _words=matching,
        _wordings=_Wordings(matching, {*stated, *unknown}),
        _query=_Wordings(matching, [selection.query or ""]),
    )
    return replace(erasure, forgotten=_with_record(connection, erasure))


def _select_rows(
    connection: sqlite3.Connection, words: Words, selection: Selection
) -> tuple[dict[Kind, set[int]], dict[Kind, set[int]]]:
    """Return the rows of each kind, and the subset without those that only repeat a fact of the home."""
    question = None if selection.query is None else words.question(selection.query)
    rows: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    for kind in selection.kinds:
        rows[kind] = _matching_conditions(connection, kind, selection)
        if question is not None:
            rows[kind].intersection_update(_matching_words(connection, words, kind, question))

    def linked(query: str, kind: Kind) -> set[int]:
        return set(select_ids(connection, query, {f"{kind}s": json.dumps([*rows[kind]])}))

    rows["fact"] = linked(_REPLACED, "fact")
    own = {kind: set(rows[kind]) for kind in _TEXTS}
    rows["episode"] |= linked(_COVERING, "fact")
    for fact in rows["fact"]:
        for kind in _TEXTS:
            is_owned, repeating = _repeating(connection, words, fact, kind)
            rows[kind] |= repeating
            own[kind] |= repeating if is_owned else set()
    rows["episode"] |= linked(_SUMMARIZING, "turn")
    return rows, own


def _matching_conditions(connection: sqlite3.Connection, kind: Kind, selection: Selection) -> set[int]:
    whose = "true"
    if selection.person is not ...:
        whose = visible(kind, kind) if selection.is_named else "person = :person"
    if selection.agent is not None:
        whose += " AND agent = :agent" if kind in _TEXTS else " AND false"
    among = "true" if selection.ids is None else AMONG.format("id", ":ids")
    since, before = selection.span
    values = {
        "ids": json.dumps([row for of, row in selection.ids or () if of == kind]),
        "since": since,
        "before": before,
        "person": None if selection.person is ... else selection.person,
        "agent": selection.agent,
        "private": selection.private,
    }
    query = f"SELECT id FROM {kind} WHERE {among} AND at >= :since AND at < :before AND {whose}"
    return set(select_ids(connection, query, values))


def _matching_words(connection: sqlite3.Connection, words: Words, kind: Kind, question: QuestionTerms) -> Iterator[int]:
    """Yield the rows that contain all words of a query, outdated facts included."""
    terms = [f'"{word}"' for word in question.words] + [f'"{beginning}" *' for beginning in question.beginnings]
    yield from _indexed(connection, kind, " AND ".join(terms))
    if kind == "fact":
        for row, text in connection.execute("SELECT id, text FROM fact WHERE replaced_by IS NOT NULL"):
            if words.has_all_of(text, question):
                yield row


def _repeating(connection: sqlite3.Connection, words: Words, fact: int, kind: Kind) -> tuple[bool, set[int]]:
    """Return whether a fact has an owner, and the ids of the turns or episodes that repeat it.

    For a person's fact, these are turns or episodes of the owner and of the home; for a fact of the home, of anyone.
    """
    person, text, quote = connection.execute("SELECT person, text, quote FROM fact WHERE id = ?", (fact,)).fetchone()
    quote_spoken, quote_words = spoken(quote), words.question(quote).words
    wording = _Wording(words, text)
    # any text with enough of the words contains at least one of these
    some = sorted(wording.wanted)[max(0, wording.enough - 1) :]
    candidates = {
        *_indexed(connection, kind, " AND ".join([f'"{word}"' for word in quote_words])),
        *_indexed(connection, kind, " OR ".join([f'"{word}"' for word in some])),
    }
    texts = connection.execute(
        f"SELECT id, {_TEXTS[kind]} FROM {kind} WHERE {AMONG.format('id', '?1')} "
        "AND (?2 IS NULL OR person IS NULL OR person = ?2)",
        (json.dumps([*candidates]), person),
    )
    repeating = {
        row
        for row, each in texts
        if (quote_words and quote_spoken in spoken(each)) or wording.is_repeated_in(words.term_set(each))
    }
    return person is not None, repeating


def _indexed(connection: sqlite3.Connection, kind: Kind, match: str) -> list[int]:
    if not match:
        return []
    return select_ids(connection, f"SELECT rowid FROM {kind}_words WHERE {kind}_words MATCH ?", (f"words : ({match})",))


def _with_record(connection: sqlite3.Connection, erasure: Erasure) -> Forgotten:
    """Return the forgotten rows, extended by rows of the record: those to delete, and those that lose only their text.

    A turn may repeat a forgotten text in words that cannot be recognized. Therefore, every turn that may have received
    it loses its text, even from before the first forgotten row, because memory does not store failed turns.
    """
    selection, forgotten = erasure.selection, erasure.forgotten
    person, (since, before) = selection.person, selection.span
    rows, wordless = set[int](), set[int]()
    if not selection.is_named and "turn" in selection.kinds:
        owner = {"anybody": person is ..., "person": None if person is ... else person, "agent": selection.agent}
        rows = set(select_ids(connection, _OWNED, {"since": since, "before": before, **owner}))
    if selection.query is not None:
        wordless |= _heard(connection, None if person is ... else {person, None}, selection.span)
    if forgotten.has_any:
        people = None if None in erasure.people else erasure.people
        wordless |= _heard(connection, people, (-math.inf, math.inf), erasure.conversations)
    wordless -= rows
    recorded = 0
    if selection.query is not None:
        texts = connection.execute(_RECORDED, {"rows": json.dumps([*wordless])})
        recorded = sum([erasure.repeats_query(text) for (text,) in texts])
    return replace(forgotten, records=tuple(sorted(rows)), wordless=tuple(sorted(wordless)), recorded=recorded)


def _heard(
    connection: sqlite3.Connection,
    people: AbstractSet[str | None] | None,
    span: tuple[float, float],
    conversations: AbstractSet[str] = frozenset(),
) -> set[int]:
    """Return the record's rows with text in a time span that these people (None: everybody) may have received."""
    since, before = span
    values = {
        "since": since,
        "before": before,
        "everybody": people is None,
        "people": json.dumps([each or "" for each in people or ()]),
        "conversations": json.dumps([*conversations]),
    }
    return set(select_ids(connection, _HEARD, values))


def select_expired(connection: sqlite3.Connection, before: Mapping[str, float], others: float) -> Forgotten:
    """Return turns that ended before their agent's time (`others` for other agents), and the episodes of such turns."""
    rows: dict[Kind, set[int]] = {}
    for kind in _TEXTS:
        old = connection.execute(f"SELECT id, at, agent FROM {kind} WHERE at < ?", (max([others, *before.values()]),))
        rows[kind] = {row for row, at, agent in old if at < before.get(agent, others)}
    turns = {"turns": json.dumps([*rows["turn"]])}
    episodes = rows["episode"].union(select_ids(connection, _SUMMARIZING, turns))
    return Forgotten(turns=tuple(sorted(rows["turn"])), episodes=tuple(sorted(episodes)))


def delete_forgotten(
    connection: sqlite3.Connection, words: Words, forgotten: Forgotten, *, is_asked_for: bool = False
) -> None:
    """Delete the forgotten rows, and mark the file as still containing their bytes."""
    delete(connection, words, "fact", forgotten.facts, is_asked_for=is_asked_for)
    delete(connection, words, "turn", forgotten.turns, is_asked_for=is_asked_for)
    delete(connection, words, "episode", forgotten.episodes, is_asked_for=is_asked_for)
    delete_records(connection, forgotten.records)
    delete_words(connection, forgotten.wordless)
    if forgotten != Forgotten():
        set_unerased(connection)


def delete_teller(connection: sqlite3.Connection, selection: Selection) -> None:
    """Delete a person's statements of other people's facts if everything of this person is forgotten."""
    if selection.is_named or selection.person in {..., None} or selection.agent is not None:
        return
    telling = connection.execute(
        "DELETE FROM telling WHERE person = ? AND at >= ? AND at < ?", (selection.person, *selection.span)
    )
    if telling.rowcount:
        set_unerased(connection)


def set_unerased(connection: sqlite3.Connection) -> None:
    """Mark the file as possibly containing bytes of deleted rows."""
    connection.execute("INSERT OR REPLACE INTO setting VALUES ('unerased', 1)")


def is_unerased(connection: sqlite3.Connection) -> bool:
    """Return whether the file may still contain bytes of deleted rows."""
    return connection.execute("SELECT 1 FROM setting WHERE name = 'unerased'").fetchone() is not None
