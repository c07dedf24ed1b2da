"""Decides which search results are worth their tokens in a request that did not ask memory for anything.

They need a share of the weight of the question's words, in which a rare word weighs more than a common one.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
import math
import sqlite3
from typing import NamedTuple

from .records import KINDS, RecallHit
from .search import MAX_NEIGHBOR_DISTANCE, RecallQuery, TermCounts, search_kinds, select_newest
from .words import SearchTerms, Words, clean_text, remove_diacritics, split_words

# The least share of the weight of a question's words that a memory needs in order to be relevant: a fact and a turn for
# a question, either for another sentence, and a fact for a sentence of command words only. Measured with
# `benchmarks/recalled.py` and `benchmarks/memory.py`.
_MIN_FACT_SHARE = 0.12
_MIN_TURN_SHARE = 0.25
_MIN_COMMAND_SHARE = 0.5
_MIN_INDISTINCT_SHARE = 0.6
# A question weighs at least as much as this many of the rarest words.
_MIN_RARE_WORDS = 1.5
# A smaller memory is weighed as if it had this many rows, because in a few rows no word is rare.
_MIN_WEIGHED_ROWS = 500
# How much the words of commands count, and a match in a part of a word.
_COMMAND_WORD_WEIGHT = 0.5
_PIECE_MATCH = 0.5
_SEARCH_WORD_MATCH = 0.7
# Longer texts are compared up to here, because splitting a text into words takes time.
_MAX_COMPARED_CHARS = 1_000


def select_relevant(
    connection: sqlite3.Connection, words: Words, query: RecallQuery
) -> tuple[list[RecallHit], list[RecallHit]]:
    """Return the facts, and the summaries and turns, that are worth their tokens in a request, best match first.

    The time span of the query applies to summaries and turns. If it is not over, those of any time are found where it
    has none that are relevant.
    """
    question = words.search_terms(query.text, query.speaker, query.command_words, query.named)
    least = _choose_least_shares(question, is_question=query.is_question)
    anytime = query._replace(since=-math.inf, until=math.inf)
    counts = TermCounts(connection, question)
    facts = search_kinds(connection, ("fact",), anytime, counts) if least.fact is not None else []
    if not facts and least.turn is None and not query.lists_time:
        return [], []
    relevance = _Relevance(connection, words, counts, query.speaker or "")
    facts = [fact for fact in facts if relevance.calculate_share(fact) >= (least.fact or 0.0)]
    if least.turn is None and not query.lists_time:
        return facts, []
    replaced = _select_replaced_texts(connection)
    worth_recalling = partial(_is_worth_recalling, replaced=replaced, words=words, command_words=query.command_words)
    times = () if least.turn is None else (query,) if query.is_time_over else dict.fromkeys((query, anytime))
    for spanned in times:
        found = search_kinds(connection, ("summary", "turn"), spanned, counts)
        relevant = [
            each for each in found if relevance.calculate_share(each) >= (least.turn or 0.0) and worth_recalling(each)
        ]
        if relevant:
            return facts, _add_neighbors(relevant, found, worth_recalling)
    return facts, [each for each in _list_time(connection, query) if worth_recalling(each)]


def _list_time(connection: sqlite3.Connection, query: RecallQuery) -> list[RecallHit]:
    """Return the newest summaries and turns of the query's time span if it asks for them, without the question."""
    if not query.lists_time:
        return []
    found = select_newest(connection, ("summary", "turn"), query)
    return [each for each in found if each.text.partition("\n")[0] != query.asked_text]


def _select_replaced_texts(connection: sqlite3.Connection) -> list[tuple[str | None, str]]:
    """Return the owner and the words of each replaced fact that has not become true again, and of its quote."""
    rows = connection.execute(
        """
        SELECT person, spoken, quote FROM fact
        WHERE replaced_by IS NOT NULL AND spoken NOT IN (SELECT spoken FROM fact WHERE replaced_by IS NULL)
        """
    )
    return [(owner, text) for owner, spoken, quote in rows for text in (spoken, clean_text(quote)) if text]


class _LeastShares(NamedTuple):
    """The least share of a question's weight for facts, and for summaries and turns; None if none are recalled."""

    fact: float | None
    turn: float | None


def _choose_least_shares(question: SearchTerms, *, is_question: bool) -> _LeastShares:
    """Return the least shares for a question, for a sentence with "I" or "my", and for any other sentence.

    A sentence without distinctive words is likely a command or asks for a state, and a single distinctive word of a
    command is often chance.
    """
    distinctive_count = len(question.distinctive_words) + len(question.word_beginnings)
    if not distinctive_count and is_question and question.is_personal:
        # "what is my name?"
        return _LeastShares(_MIN_FACT_SHARE, _MIN_FACT_SHARE)
    if not distinctive_count:
        return _LeastShares(_MIN_INDISTINCT_SHARE if len(question.words) > 1 else None, None)
    if is_question:
        return _LeastShares(_MIN_FACT_SHARE, _MIN_TURN_SHARE)
    fact = _MIN_FACT_SHARE if question.is_personal else _MIN_COMMAND_SHARE
    return _LeastShares(fact, _MIN_COMMAND_SHARE if distinctive_count > 1 else None)


def _is_worth_recalling(
    found: RecallHit, replaced: Iterable[tuple[str | None, str]], words: Words, command_words: frozenset[str]
) -> bool:
    """Return whether a turn or a summary states no replaced fact, and does not consist of words of commands."""
    said = found.text.partition("\n")[0]
    plain = f" {clean_text(said)} "
    if [text for owner, text in replaced if owner in {None, found.person} and f" {text} " in plain]:
        return False
    terms = words.search_terms(said[:_MAX_COMPARED_CHARS], command_words=command_words)
    return bool(terms.distinctive_words or terms.word_beginnings)


def _add_neighbors(
    relevant: list[RecallHit], found: list[RecallHit], worth_recalling: Callable[[RecallHit], bool]
) -> list[RecallHit]:
    """Return the relevant search results, and the turns shortly before or after them, in the order of `found`."""
    near = {
        (match.conversation, match.place + distance)
        for match in relevant
        if match.kind == "turn"
        for distance in range(-MAX_NEIGHBOR_DISTANCE, MAX_NEIGHBOR_DISTANCE + 1)
    }
    return [
        each
        for each in found
        if each in relevant
        or (each.kind == "turn" and (each.conversation, each.place) in near and worth_recalling(each))
    ]


class _Relevance:
    """Calculates the share of a question's weight that a text has. A rare word weighs more than a common one."""

    def __init__(self, connection: sqlite3.Connection, words: Words, term_counts: TermCounts, speaker: str) -> None:
        """Weigh the terms of the question by their inverse document frequency.

        A pair of characters that no memory contains may span two words, and has no weight. The name of the speaker,
        which stands for "I", is no evidence unless it is all that the question has.
        """
        self._words = words
        self._question = question = term_counts.question
        names = words.build_term_set(speaker)
        self._name_terms = names if names < {*question.words, *question.word_beginnings} else set[str]()
        counts: Counter[str] = Counter()
        row_count = 0
        for kind in KINDS:
            counts.update(term_counts[kind])
            # counting the rows would take longer, and a few deleted ones hardly change a weight
            row_count += connection.execute(f"SELECT coalesce(max(id), 0) FROM {kind}").fetchone()[0]
        row_count = max(row_count, _MIN_WEIGHED_ROWS)
        rarest = math.log1p((row_count - 0.5) / 1.5)
        self._weight_by_term = dict.fromkeys(question.word_beginnings, rarest)
        for term in question.words:
            if term in question.pieces_by_word or counts[term]:
                share = 1.0 if term in question.distinctive_words else _COMMAND_WORD_WEIGHT
                weight = math.log1p((row_count - counts[term] + 0.5) / (counts[term] + 0.5))
                self._weight_by_term[term] = share * weight
        # a single common word would otherwise be the whole weight
        self._total_weight = max(sum(self._weight_by_term.values()), _MIN_RARE_WORDS * rarest)

    def calculate_share(self, found: RecallHit) -> float:
        """Return the share of the question's weight, from 0 to 1, that a search result has.

        Search words count less than the text, and a single one counts nothing, because they are no evidence.
        """
        words = list(split_words(found.text[:_MAX_COMPARED_CHARS]))
        terms = self._words.find_terms(words, self._weight_by_term)
        search_terms = self._words.find_terms(split_words(found.search_words), self._weight_by_term)
        plain = f" {remove_diacritics(' '.join([word for word, _ in words]))} "
        weights, search_weights = dict[str, float](), dict[str, float]()
        for term, weight in self._weight_by_term.items():
            if term in terms or (term in self._question.word_beginnings and term in plain):
                weights[term] = weight
            elif term in search_terms:
                search_weights[term] = weight * _SEARCH_WORD_MATCH
            elif [piece for piece in self._question.pieces_by_word.get(term, ()) if piece in plain]:
                weights[term] = weight * _PIECE_MATCH
        if weights or len(search_weights) > 1:
            weights |= search_weights
        return 0.0 if self._name_terms.issuperset(weights) else sum(weights.values()) / self._total_weight
