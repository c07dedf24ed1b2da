"""Finds the memories that a person may see: by query, best match first, or without a query, newest first.

A search uses BM25 over the stems from `words`, and matches in neighboring turns add to the score of a turn. Memories
that a person may not see are excluded within the SQL query, before scores are passed on to neighbors.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
import json
import math
from operator import attrgetter
import re
import sqlite3
from typing import NamedTuple

from .records import KINDS, MemoryKind, RecallHit
from .words import SearchTerms, Words, clean_text, join_lines, remove_diacritics, split_words

MAX_EXCERPT_CHARS = 300
_SENTENCE_END_PATTERN = re.compile(r"(?<=[.!?;…])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")

_OWN_CONDITION_BY_KIND = {"fact": "(:private OR NOT {row}.private)", "summary": ":private", "turn": ":private"}
# The weight of a match in a part of a word. It means less than a match of the word, and facts have more parts.
_PART_WEIGHT_BY_KIND: dict[MemoryKind, float] = {"fact": 0.1, "summary": 0.2, "turn": 0.2}
_HITS_CONDITION_BY_KIND: dict[MemoryKind, str] = {
    "fact": "",
    "summary": "",
    "turn": " AND turn.said IS NOT :asked_text",
}
# The weight of a match in a search word.
_SEARCH_WORD_WEIGHT = 0.7
# The matches for each result, by which neighboring turns are lifted.
_MATCHES_PER_RESULT = 3
# BM25 takes time for every row with one of the terms. Most rows contain only common words, which hardly affect the
# order.
_MAX_SCORED_ROWS = 3_000

_MAX_NEIGHBOR_DISTANCE = 3
_NEIGHBOR_SCORE_SHARE = 0.4
_RECENCY_WEIGHT = 0.05
_MONTH_SECONDS = 30 * 86_400.0

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

_LISTED_COLUMNS_BY_KIND: dict[MemoryKind, str] = {
    "fact": "text, private, NULL AS conversation, NULL AS tools FROM fact WHERE replaced_by IS NULL AND",
    "summary": "text, person IS NOT NULL AS private, conversation, NULL AS tools FROM summary WHERE",
    "turn": """
        said || char(10) || answer AS text, person IS NOT NULL AS private, conversation, tools FROM turn WHERE
    """,
}
_SELECT_LISTED = """
    SELECT kind, id, text, at, person, conversation, private, tools, is_suggestion FROM ({rows})
    ORDER BY at DESC, kind, id DESC LIMIT :limit
"""


def build_visibility_condition(kind: MemoryKind, row: str) -> str:
    """Return the SQL condition for rows of a table that a person may see: the person's own and the home's.

    Its parameters are ":person" and ":private". An unknown speaker owns nothing. A shared window gets no private facts,
    and nothing from a person's turns and summaries.
    """
    return f"({row}.person IS NULL OR ({row}.person = :person AND {_OWN_CONDITION_BY_KIND[kind].format(row=row)}))"


def _build_hits_query(kind: MemoryKind) -> str:
    # the index sorts its matches, so only the first of them are looked up in the table
    return f"""
        SELECT {kind}.id, -{kind}_words.rank AS score
        FROM {kind}_words CROSS JOIN {kind} ON {kind}.id = {kind}_words.rowid
        WHERE {kind}_words MATCH :match AND {build_visibility_condition(kind, kind)}{_HITS_CONDITION_BY_KIND[kind]}
        AND {kind}_words.rank MATCH 'bm25(1.0, {_PART_WEIGHT_BY_KIND[kind]}, {_SEARCH_WORD_WEIGHT})'
        AND {kind}.at BETWEEN :since AND :until
        ORDER BY {kind}_words.rank LIMIT {_MATCHES_PER_RESULT} * :limit
    """


def _found_by_itself(kind: MemoryKind, further_columns: str) -> str:
    return f"""
        WITH hit (id, score) AS MATERIALIZED ({_build_hits_query(kind)}),
        found (id, score) AS (SELECT id, score / max(score) OVER () FROM hit)
        SELECT id, score, at, text, person, {further_columns}
        FROM found JOIN {kind} USING (id) ORDER BY score DESC, at DESC, id DESC LIMIT :limit
    """


_SELECT_WITH_NEIGHBORS = f"""
    WITH hit (id, score) AS MATERIALIZED ({_build_hits_query("turn")}),
    lifted (id, at, score) AS MATERIALIZED (
        SELECT beside.id, beside.at,
            sum(hit.score *
            CASE beside.place WHEN turn.place THEN 1 ELSE {_NEIGHBOR_SCORE_SHARE} / abs(beside.place - turn.place) END)
        FROM hit CROSS JOIN turn ON turn.id = hit.id CROSS JOIN turn AS beside ON
        beside.conversation = turn.conversation AND beside.place BETWEEN turn.place - {_MAX_NEIGHBOR_DISTANCE}
        AND turn.place + {_MAX_NEIGHBOR_DISTANCE}
        WHERE {build_visibility_condition("turn", "beside")} AND beside.at BETWEEN :since AND :until
        GROUP BY beside.id
    ),
    most (at, score) AS MATERIALIZED (SELECT max(at), max(score) FROM lifted),
    found (id, score) AS (
        SELECT lifted.id,
            (lifted.score / most.score + {_RECENCY_WEIGHT} / (1 + (most.at - lifted.at) / {_MONTH_SECONDS}))
            / (1 + {_RECENCY_WEIGHT})
        FROM most CROSS JOIN lifted
        ORDER BY 2 DESC, lifted.id DESC LIMIT :limit
    )
    SELECT found.id, found.score, turn.at, turn.said || char(10) || turn.answer, turn.person, turn.conversation,
        turn.person IS NOT NULL, turn.tools, turn.place, ''
    FROM found JOIN turn USING (id)
    ORDER BY found.score DESC, found.id DESC
"""
_QUERIES: dict[MemoryKind, str] = {
    "fact": _found_by_itself("fact", "NULL, private, NULL, 0, coalesce(search_words, ''), turn IS NOT NULL"),
    "summary": _found_by_itself("summary", "conversation, person IS NOT NULL, NULL, 0, ''"),
    "turn": _SELECT_WITH_NEIGHBORS,
}


class RecallQuery(NamedTuple):
    """A query to memory: who asks, the maximum number of results, and their time span."""

    text: str
    # An id. None is an unknown speaker, who sees only the home's memories.
    person: str | None = None
    # The name that replaces "I" and "my".
    speaker: str | None = None
    limit: int = 10
    since: float = -math.inf
    until: float = math.inf
    # If False, the results exclude memories that must not enter a shared window.
    private: bool = True
    # The words of commands to the home, which decide only what is relevant.
    command_words: frozenset[str] = frozenset()
    # Whether this is a question and not a statement or a command, which decides only what is relevant.
    is_question: bool = True
    # Turns that consist of this same question are left out.
    asked_text: str | None = None
    # The names of entities in the sentence. Their words are no more distinctive than those of commands.
    named: str = ""
    # Whether turns and summaries of any other time are irrelevant, even if none in the time span matches.
    is_time_over: bool = False
    # Whether the newest turns and summaries of the time span are relevant if none matches.
    lists_time: bool = False


def search_memories(
    connection: sqlite3.Connection, kinds: tuple[MemoryKind, ...], query: RecallQuery, question: SearchTerms
) -> list[RecallHit]:
    """Return the matches of a query, best first. Matches with equal scores are in the order of `KINDS`."""
    return _search(connection, kinds, query, _TermCounts(connection, question))


class _TermCounts(dict[MemoryKind, dict[str, int]]):
    """The numbers of rows that have the terms of a question, by kind. Each kind is read once, which takes time."""

    def __init__(self, connection: sqlite3.Connection, question: SearchTerms) -> None:
        super().__init__()
        self._connection = connection
        self.question = question

    def __missing__(self, kind: MemoryKind) -> dict[str, int]:
        question = self.question
        wanted = question.words + question.word_parts + (question.word_edges if kind == "fact" else ())
        places = ",".join("?" * len(wanted))
        self[kind] = dict(
            self._connection.execute(f"SELECT term, doc FROM {kind}_terms WHERE term IN ({places})", wanted).fetchall()
        )
        return self[kind]


def _search(
    connection: sqlite3.Connection, kinds: tuple[MemoryKind, ...], query: RecallQuery, counts: _TermCounts
) -> list[RecallHit]:
    """Return the matches of these kinds, best first. Matches with equal scores are in the order of `KINDS`."""
    found = [recalled for kind in KINDS if kind in kinds for recalled in _matches(connection, kind, query, counts)]
    return sorted(found, key=attrgetter("score"), reverse=True)[: max(0, query.limit)]


def _matches(
    connection: sqlite3.Connection, kind: MemoryKind, query: RecallQuery, counts: _TermCounts
) -> Iterator[RecallHit]:
    match = _build_match_expression(kind, counts)
    if not match:
        return
    parameters = {**query._asdict(), "match": match, "limit": max(0, query.limit)}
    for row, score, at, text, person, conversation, private, tools, *rest in connection.execute(
        _QUERIES[kind], parameters
    ):
        part = extract_excerpt(text, counts.question.words) if kind == "summary" else ""
        names = tuple((tools or "").split())
        yield RecallHit(kind, row, text.strip("\n"), at, person, score, conversation, bool(private), part, names, *rest)


def extract_excerpt(text: str, terms: tuple[str, ...]) -> str:
    """Return the sentence with the most of these terms and the sentences after it, up to `MAX_EXCERPT_CHARS`."""
    if len(text) <= MAX_EXCERPT_CHARS:
        return text
    sentences = [sentence for sentence in _SENTENCE_END_PATTERN.split(text) if sentence]
    plain = [remove_diacritics(sentence.casefold()) for sentence in sentences]
    counts = [sum(term in sentence for term in terms) for sentence in plain]
    chosen, *following = sentences[counts.index(max(counts)) :]
    for sentence in following:
        if len(chosen) + len(sentence) >= MAX_EXCERPT_CHARS:
            break
        chosen = f"{chosen} {sentence}"
    return chosen if len(chosen) <= MAX_EXCERPT_CHARS else join_lines(chosen, MAX_EXCERPT_CHARS)


def _build_match_expression(kind: MemoryKind, counts: _TermCounts) -> str:
    """Return the FTS5 expression for the rarest terms of a query, up to a total of `_MAX_SCORED_ROWS` rows."""
    question, terms = counts.question, counts[kind]
    parts = question.word_parts + question.word_edges if kind == "fact" else question.word_parts
    rows = 0
    chosen: list[str] = []
    for column, wanted in (("{words search_words}", question.words), ("parts", parts)):
        for term in sorted([term for term in wanted if term in terms], key=terms.__getitem__):
            rows += terms[term]
            if chosen and rows > _MAX_SCORED_ROWS:
                break
            chosen.append(f'{column} : "{term}"')
    chosen += [f'{{words search_words}} : "{beginning}" *' for beginning in question.word_beginnings]
    return " OR ".join(chosen)


def select_relevant(
    connection: sqlite3.Connection, words: Words, query: RecallQuery, replaced: Iterable[tuple[str | None, str]]
) -> tuple[list[RecallHit], list[RecallHit]]:
    """Return the facts, and the summaries and turns, that are worth their tokens in a request, best match first.

    The time span of the query applies to summaries and turns. If it is not over, those of any time are found where it
    has none that are relevant. `replaced` are the texts of replaced facts with their owners: a turn that contains one
    is left out.
    """
    question = words.search_terms(query.text, query.speaker, query.command_words, query.named)
    least = _choose_least_shares(question, is_question=query.is_question)
    anytime = query._replace(since=-math.inf, until=math.inf)
    counts = _TermCounts(connection, question)
    facts = _search(connection, ("fact",), anytime, counts) if least.fact is not None else []
    if not facts and least.turn is None and not query.lists_time:
        return [], []
    relevance = _Relevance(connection, words, counts, query.speaker or "")
    facts = [fact for fact in facts if relevance.calculate_share(fact) >= (least.fact or 0.0)]
    if least.turn is None and not query.lists_time:
        return facts, []
    worth_recalling = partial(
        _is_worth_recalling, replaced=tuple(replaced), words=words, command_words=query.command_words
    )
    times = () if least.turn is None else (query,) if query.is_time_over else dict.fromkeys((query, anytime))
    for spanned in times:
        found = _search(connection, ("summary", "turn"), spanned, counts)
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
    listed = MemoryListQuery(query.person, query.private, ("summary", "turn"), query.since, query.until, query.limit)
    found = select_newest(connection, listed)
    return [each for each in found if each.text.partition("\n")[0] != query.asked_text]


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
    return words.has_distinctive_word(said, command_words)


def _add_neighbors(
    relevant: list[RecallHit], found: list[RecallHit], worth_recalling: Callable[[RecallHit], bool]
) -> list[RecallHit]:
    """Return the relevant search results, and the turns shortly before or after them, in the order of `found`."""
    near = {
        (match.conversation, match.place + distance)
        for match in relevant
        if match.kind == "turn"
        for distance in range(-_MAX_NEIGHBOR_DISTANCE, _MAX_NEIGHBOR_DISTANCE + 1)
    }
    return [
        each
        for each in found
        if each in relevant
        or (each.kind == "turn" and (each.conversation, each.place) in near and worth_recalling(each))
    ]


class _Relevance:
    """Calculates the share of a question's weight that a text has. A rare word weighs more than a common one."""

    def __init__(self, connection: sqlite3.Connection, words: Words, term_counts: _TermCounts, speaker: str) -> None:
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


class MemoryListQuery(NamedTuple):
    """The conditions for a list of memories: person, kinds, times, ids and length.

    If `private` is False, the list contains only memories that may enter a shared window.
    """

    person: str | None = None
    private: bool = True
    kinds: tuple[MemoryKind, ...] = KINDS
    since: float = -math.inf
    until: float = math.inf
    limit: int = 10
    ids: tuple[tuple[MemoryKind, int], ...] | None = None


def select_newest(connection: sqlite3.Connection, query: MemoryListQuery) -> list[RecallHit]:
    """Return the listed memories that this person may see, newest first. Outdated facts are not listed."""
    if not query.kinds:
        return []
    found = connection.execute(
        _SELECT_LISTED.format(
            rows=" UNION ALL ".join(_build_list_query(kind, query.ids) for kind in dict.fromkeys(query.kinds))
        ),
        {
            **query._asdict(),
            "limit": max(0, query.limit),
            **{f"{kind}_ids": json.dumps([row for of, row in query.ids or () if of == kind]) for kind in KINDS},
        },
    )
    return [
        RecallHit(
            kind,
            row,
            text.strip("\n"),
            at,
            owner,
            0.0,
            conversation,
            bool(private),
            tool_names=tuple((tools or "").split()),
            is_suggestion=bool(is_suggestion),
        )
        for kind, row, text, at, owner, conversation, private, tools, is_suggestion in found
    ]


def _build_list_query(kind: MemoryKind, ids: object | None) -> str:
    named = "" if ids is None else f" AND id IN (SELECT value FROM json_each(:{kind}_ids))"
    suggested = "turn IS NOT NULL" if kind == "fact" else "FALSE"
    return f"""
        SELECT '{kind}' AS kind, id, at, person, {suggested} AS is_suggestion, {_LISTED_COLUMNS_BY_KIND[kind]}
        at BETWEEN :since AND :until AND {build_visibility_condition(kind, kind)}{named}
    """
