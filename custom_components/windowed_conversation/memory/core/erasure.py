"""Forgetting: an `Erasure` decides once which rows memory and the other rooms of the file lose."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
import json
import math
import sqlite3
from typing import Any, NamedTuple

from .index import delete_rows, select_ids
from .records import KINDS, ForgetConditions, LostRows, MemoryKind
from .search import build_visibility_condition
from .words import SearchTerms, Words, clean_text

# A text repeats another one if it contains at least this share of the other text's words.
_MIN_REPEATED_SHARE = 0.6
# Texts of unknown speakers with fewer words are not looked for elsewhere: a single word occurs in too many other texts.
_MIN_UNKNOWN_SPEAKER_WORDS = 2

_IN_LIST_CONDITION = "{} IN (SELECT value FROM json_each({}))"
_TEXT_SQL_BY_KIND: dict[MemoryKind, str] = {"turn": "said || char(10) || answer", "summary": "text"}
_FACT_IDS_CONDITION, _TURN_IDS_CONDITION, _SUMMARY_IDS_CONDITION = (
    _IN_LIST_CONDITION.format("id", each) for each in (":fact_ids", ":turn_ids", ":summary_ids")
)
_SELECT_SUGGESTIONS = f"SELECT id FROM fact WHERE {_IN_LIST_CONDITION.format('turn', ':turn_ids')}"
_STATED_FACT_CONDITION = _IN_LIST_CONDITION.format("fact", ":fact_ids")

_SELECT_REPLACED_FACTS = f"""
    WITH RECURSIVE earlier (id) AS (
        SELECT id FROM fact WHERE {_FACT_IDS_CONDITION} UNION SELECT fact.id FROM fact
        JOIN earlier ON fact.replaced_by = earlier.id
    )
    SELECT id FROM earlier
"""
# A summary that covers the time at which a person stated a fact may repeat that fact in other words.
_SELECT_COVERING_SUMMARIES = f"""
    SELECT summary.id FROM telling JOIN summary USING (conversation)
    WHERE {_STATED_FACT_CONDITION} AND telling.at BETWEEN summary.since AND summary.at
    AND (summary.person IS NULL OR summary.person IS telling.person)
"""
_SELECT_SUMMARIZING_SUMMARIES = f"""
    SELECT summary.id FROM turn JOIN summary USING (conversation)
    WHERE {_IN_LIST_CONDITION.format("turn.id", ":turn_ids")} AND turn.at BETWEEN summary.since AND summary.at
    AND summary.agent IS turn.agent AND summary.person IS turn.person
"""
# The people who alone could see the rows, and the conversations that the rows come from.
_SELECT_AUDIENCE = f"""
    SELECT CASE WHEN private THEN fact.person END, conversation
    FROM fact LEFT JOIN telling ON telling.fact = id WHERE {_FACT_IDS_CONDITION}
    UNION SELECT person, conversation FROM turn WHERE {_TURN_IDS_CONDITION}
    UNION SELECT person, conversation FROM summary WHERE {_SUMMARY_IDS_CONDITION}
"""
_SELECT_FIRST_TIMES = f"""
    SELECT person, min(at) FROM (
        SELECT person, at FROM fact WHERE {_FACT_IDS_CONDITION} UNION ALL SELECT person, at FROM telling
        WHERE {_STATED_FACT_CONDITION}
        UNION ALL SELECT person, at FROM turn WHERE {_IN_LIST_CONDITION.format("id", ":own_turn_ids")}
        UNION ALL SELECT person, since FROM summary WHERE {_IN_LIST_CONDITION.format("id", ":own_summary_ids")}
    ) WHERE person IS NOT NULL GROUP BY person
"""
_SELECT_ROW_TIMES = f"""
    SELECT conversation, at FROM turn WHERE {_TURN_IDS_CONDITION}
    UNION SELECT conversation, at FROM telling WHERE {_STATED_FACT_CONDITION} AND conversation IS NOT NULL ORDER BY at
"""
_SELECT_ROW_TEXTS = f"""
    SELECT 'fact', id, text FROM fact WHERE {_FACT_IDS_CONDITION}
    UNION ALL SELECT 'turn', id, {_TEXT_SQL_BY_KIND["turn"]} FROM turn WHERE {_TURN_IDS_CONDITION}
    UNION ALL SELECT 'summary', id, text FROM summary WHERE {_SUMMARY_IDS_CONDITION}
"""
_UNKNOWN_SPEAKERS = f"""
    SELECT said FROM turn WHERE :named AND person IS NULL AND {_IN_LIST_CONDITION.format("id", ":own_turn_ids")}
    UNION SELECT text FROM summary WHERE :named AND person IS NULL AND {_SUMMARY_IDS_CONDITION}
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

    user_text: str
    answer: str
    recalled_texts: tuple[str, ...] = ()
    is_summary: bool = False
    is_readable: bool = True


class _RepetitionFinder:
    """Finds texts that repeat most words of any of the given texts."""

    def __init__(self, words: Words, texts: Iterable[str]) -> None:
        self._texts_by_term: dict[str, list[AbstractSet[str]]] = {}
        for terms in {frozenset(words.search_terms(text).words) for text in texts}:
            for term in terms:
                self._texts_by_term.setdefault(term, []).append(terms)

    def has_repetition(self, terms: Iterable[str]) -> bool:
        counts = Counter(each for term in terms for each in self._texts_by_term.get(term, ()))
        return any(count >= _count_repeated(each) for each, count in counts.items())


def _count_repeated(terms: Collection[str]) -> int:
    """Return the number of words of a text that another one has to contain to repeat it."""
    return math.ceil(_MIN_REPEATED_SHARE * len(terms))


@dataclass(frozen=True, slots=True)
class Erasure:
    """Everything that a request to forget deletes. Only one thread at a time may use it.

    Memory loses these rows:

    - the facts, turns and summaries that the selection matches, and the facts that these facts replaced
    - turns and summaries with a fact's quote or most of its words; for a person's fact, only those of the person
      and the home
    - summaries that cover the time at which a person stated a fact in their conversation, or that summarize a
      deleted turn

    Windows, stored conversations and their summaries call `keeps_exchange` for each exchange.
    """

    conditions: ForgetConditions
    # The rows that memory loses.
    forgotten: LostRows
    # For each person, the time since when they may have repeated statements in other words.
    first_time_by_person: Mapping[str, float]
    # The people who alone could see the rows. None in it means everybody.
    people: AbstractSet[str | None]
    # The conversations of the rows.
    conversations: AbstractSet[str]
    # The sorted times of the rows in each conversation.
    times_by_conversation: Mapping[str, Sequence[float]]
    # The forgotten texts by kind and id.
    text_by_source: Mapping[tuple[MemoryKind, int], str]
    _splitter: Words
    _forgotten_finder: _RepetitionFinder
    _query_finder: _RepetitionFinder

    def keeps_exchange(self, text: ExchangeText, began: float | None, ended: float, owner: ExchangeOwner) -> bool:
        """Return whether an exchange is kept, judging by its text, its times and its owner.

        If an agent is forgotten, exactly the exchanges of that agent are deleted. Otherwise an exchange is deleted if

        - it repeats most words of a forgotten text, or of the query if the person may change the window
        - its answer contains words that can only come from a forgotten text
        - it may contain a forgotten text in other words: it is from a person's window since that person first stated
          that text, it was in progress at that moment, or it is an unreadable summary of that person or conversation
        - everything of its owner in this time span is forgotten
        """
        if self.conditions.agent is not None:
            # facts that this agent received are kept in the exchanges of other agents
            return self.conditions.agent != owner.agent
        return not (self._may_know_forgotten(text, began, ended, owner) or self._repeats_forgotten(text, owner.person))

    def _may_know_forgotten(self, text: ExchangeText, began: float | None, ended: float, owner: ExchangeOwner) -> bool:
        since = self.first_time_by_person.get(owner.person or "")
        if not text.is_readable and (since is not None or owner.conversation in self.conversations):
            return True
        if since is not None and ended >= since:
            return True
        moments = () if began is None or text.is_summary else self.times_by_conversation.get(owner.conversation, ())
        if moments and has_time_between(moments, began or 0.0, ended):
            return True
        forgotten, (start, before) = self.conditions, self.conditions.time_span
        if forgotten.is_explicit or "turn" not in forgotten.kinds or forgotten.person not in (..., owner.person or ""):
            return False
        return ended >= start and (began or -math.inf) < before

    def repeats_query(self, text: str) -> bool:
        """Return whether a text contains most words of the query."""
        return self._query_finder.has_repetition(self._splitter.build_term_set(text))

    def _repeats_forgotten(self, text: ExchangeText, person: str | None) -> bool:
        terms = self._splitter.build_term_set(f"{text.user_text}\n{text.answer}")
        may_change = self.conditions.person is ... or person in {None, self.conditions.person}
        if self._forgotten_finder.has_repetition(terms) or (may_change and self._query_finder.has_repetition(terms)):
            return True
        return any(self._answer_repeats_recalled(each, text) for each in text.recalled_texts)

    def _answer_repeats_recalled(self, recalled: str, text: ExchangeText) -> bool:
        """Return whether an answer contains a word that the user did not say and that is in the recalled text.

        The second line of a recalled turn is its answer. Models often begin an answer with the same words, so a single
        common word is not enough there: most of that line must be repeated.
        """
        first, _, second = recalled.partition("\n")
        lent = self._splitter.build_term_set(text.answer) - self._splitter.build_term_set(text.user_text)
        is_from_first = not lent.isdisjoint(self._splitter.search_terms(first).words)
        return is_from_first or _RepetitionFinder(self._splitter, [second]).has_repetition(lent)


# Deletes the rows of another room in the same transaction, or only counts them in a dry run, the last argument. Returns
# the `LostRows` that it gets with its own part added.
type DeleteCopiesCallback = Callable[[sqlite3.Connection, Erasure, LostRows, bool], LostRows]


def has_time_between(times: Sequence[float], start: float, end: float) -> bool:
    """Return whether any of these sorted times is within the span."""
    place = bisect_left(times, start)
    return place < len(times) and times[place] <= end


def decide_erasure(connection: sqlite3.Connection, words: Words, selection: ForgetConditions) -> Erasure:
    """Return the erasure of everything that meets the conditions. Raises `ValueError` if there are no conditions."""
    if not selection.is_requested and selection.before is None:
        raise ValueError("Forgetting needs a condition")
    rows, own = _select_rows(connection, words, selection)
    values: dict[str, Any] = {f"{kind}_ids": json.dumps([*each]) for kind, each in rows.items()}
    values |= {f"own_{kind}_ids": json.dumps([*each]) for kind, each in own.items()} | {"named": selection.is_explicit}

    def run_query(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query, values).fetchall()

    seen = run_query(_SELECT_AUDIENCE)
    moments: dict[str, list[float]] = {}
    for conversation, at in run_query(_SELECT_ROW_TIMES):
        moments.setdefault(conversation, []).append(at)
    unknown = [
        text
        for (text,) in run_query(_UNKNOWN_SPEAKERS)
        if len(words.search_terms(text).words) >= _MIN_UNKNOWN_SPEAKER_WORDS
    ]
    stated = [text for each in run_query(f"SELECT text, quote FROM fact WHERE {_FACT_IDS_CONDITION}") for text in each]
    # a separate instance, because stemmers are not thread-safe and another thread uses those in `words`
    matching = Words(words.languages)
    return Erasure(
        conditions=selection,
        forgotten=LostRows(tuple(sorted(rows["fact"])), tuple(sorted(rows["turn"])), tuple(sorted(rows["summary"]))),
        first_time_by_person=dict(run_query(_SELECT_FIRST_TIMES)),
        people={person for person, _ in seen},
        conversations={conversation for _, conversation in seen if conversation is not None},
        times_by_conversation=moments,
        text_by_source={(kind, row): text for kind, row, text in run_query(_SELECT_ROW_TEXTS)},
        _splitter=matching,
        _forgotten_finder=_RepetitionFinder(matching, {*stated, *unknown}),
        _query_finder=_RepetitionFinder(matching, [selection.query or ""]),
    )


def _select_rows(
    connection: sqlite3.Connection, words: Words, selection: ForgetConditions
) -> tuple[dict[MemoryKind, set[int]], dict[MemoryKind, set[int]]]:
    """Return the rows of each kind, and the subset without those that only repeat a fact of the home."""
    question = None if selection.query is None else words.search_terms(selection.query)
    rows: dict[MemoryKind, set[int]] = {kind: set() for kind in KINDS}
    for kind in selection.kinds:
        rows[kind] = _select_by_conditions(connection, kind, selection)
        if question is not None:
            rows[kind].intersection_update(_find_rows(connection, words, kind, question))

    def select_linked(query: str, kind: MemoryKind) -> set[int]:
        return set(select_ids(connection, query, {f"{kind}_ids": json.dumps([*rows[kind]])}))

    rows["fact"] |= select_linked(_SELECT_SUGGESTIONS, "turn")
    rows["fact"] = select_linked(_SELECT_REPLACED_FACTS, "fact")
    own = {kind: set(rows[kind]) for kind in _TEXT_SQL_BY_KIND}
    rows["summary"] |= select_linked(_SELECT_COVERING_SUMMARIES, "fact")
    for fact in rows["fact"]:
        for kind in _TEXT_SQL_BY_KIND:
            is_owned, repeating = _find_repeats(connection, words, fact, kind)
            rows[kind] |= repeating
            own[kind] |= repeating if is_owned else set()
    rows["summary"] |= select_linked(_SELECT_SUMMARIZING_SUMMARIES, "turn")
    rows["fact"] |= select_linked(_SELECT_SUGGESTIONS, "turn")
    return rows, own


def _select_by_conditions(connection: sqlite3.Connection, kind: MemoryKind, selection: ForgetConditions) -> set[int]:
    whose = "true"
    if selection.person is not ...:
        whose = build_visibility_condition(kind, kind) if selection.is_explicit else "person = :person"
    if selection.agent is not None:
        whose += " AND agent = :agent" if kind in _TEXT_SQL_BY_KIND else " AND false"
    among = "true" if selection.ids is None else _IN_LIST_CONDITION.format("id", ":ids")
    since, before = selection.time_span
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


def _find_rows(connection: sqlite3.Connection, words: Words, kind: MemoryKind, question: SearchTerms) -> Iterator[int]:
    """Yield the rows that contain all words of a query, outdated facts included."""
    terms = [f'"{word}"' for word in question.words] + [f'"{beginning}" *' for beginning in question.word_beginnings]
    yield from _select_indexed_rows(connection, kind, " AND ".join(terms))
    if kind == "fact" and terms:
        for row, text in connection.execute("SELECT id, text FROM fact WHERE replaced_by IS NOT NULL"):
            there = words.build_term_set(text)
            begun = [any(term.startswith(each) for term in there) for each in question.word_beginnings]
            if there.issuperset(question.words) and all(begun):
                yield row


def _find_repeats(connection: sqlite3.Connection, words: Words, fact: int, kind: MemoryKind) -> tuple[bool, set[int]]:
    """Return whether a fact has an owner, and the ids of the turns or summaries that repeat it.

    For a person's fact, these are turns or summaries of the owner and of the home; for a fact of the home, of anyone.
    """
    person, text, quote = connection.execute("SELECT person, text, quote FROM fact WHERE id = ?", (fact,)).fetchone()
    quote_spoken, quote_words = clean_text(quote), words.search_terms(quote).words
    # any text with enough of the words contains at least one of these
    terms = sorted({*words.search_terms(text).words})
    some = terms[max(0, _count_repeated(terms) - 1) :]
    candidates = {
        *_select_indexed_rows(connection, kind, " AND ".join([f'"{word}"' for word in quote_words])),
        *_select_indexed_rows(connection, kind, " OR ".join([f'"{word}"' for word in some])),
    }
    texts = connection.execute(
        f"SELECT id, {_TEXT_SQL_BY_KIND[kind]} FROM {kind} WHERE {_IN_LIST_CONDITION.format('id', '?1')} "
        "AND (?2 IS NULL OR person IS NULL OR person = ?2)",
        (json.dumps([*candidates]), person),
    )
    finder = _RepetitionFinder(words, [text])
    repeating = {
        row
        for row, each in texts
        if (quote_words and quote_spoken in clean_text(each)) or finder.has_repetition(words.build_term_set(each))
    }
    return person is not None, repeating


def _select_indexed_rows(connection: sqlite3.Connection, kind: MemoryKind, match: str) -> list[int]:
    if not match:
        return []
    return select_ids(connection, f"SELECT rowid FROM {kind}_words WHERE {kind}_words MATCH ?", (f"words : ({match})",))


def delete_forgotten_rows(
    connection: sqlite3.Connection, words: Words, forgotten: LostRows, *, is_requested: bool = False
) -> None:
    """Delete the forgotten rows, and mark the file as still containing their bytes."""
    delete_rows(connection, words, "fact", forgotten.facts, is_requested=is_requested)
    delete_rows(connection, words, "turn", forgotten.turns, is_requested=is_requested)
    delete_rows(connection, words, "summary", forgotten.summaries, is_requested=is_requested)
    if forgotten != LostRows():
        mark_unerased(connection)


def delete_statements(connection: sqlite3.Connection, selection: ForgetConditions) -> None:
    """Delete a person's statements of other people's facts if everything of this person is forgotten."""
    if selection.is_explicit or selection.person in {..., None} or selection.agent is not None:
        return
    telling = connection.execute(
        "DELETE FROM telling WHERE person = ? AND at >= ? AND at < ?", (selection.person, *selection.time_span)
    )
    if telling.rowcount:
        mark_unerased(connection)


def mark_unerased(connection: sqlite3.Connection) -> None:
    """Mark the file as possibly containing bytes of deleted rows."""
    connection.execute("INSERT OR REPLACE INTO setting VALUES ('unerased', 1)")


def has_unerased_rows(connection: sqlite3.Connection) -> bool:
    """Return whether the file may still contain bytes of deleted rows."""
    return connection.execute("SELECT 1 FROM setting WHERE name = 'unerased'").fetchone() is not None
