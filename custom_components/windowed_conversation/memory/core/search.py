"""Finds the memories that a person may see: by query, best match first, or without a query, newest first.

A search uses BM25 over the stems from `words`, and matches in neighboring turns add to the score of a turn. Memories
that a person may not see are excluded within the SQL query, before scores are passed on to neighbors.
"""

from collections.abc import Collection, Iterator
import json
import math
from operator import attrgetter
import re
import sqlite3
from typing import NamedTuple

from .records import KINDS, MemoryKind, RecallHit
from .words import SearchTerms, join_lines, remove_diacritics

MAX_EXCERPT_CHARS = 300
_SENTENCE_END_PATTERN = re.compile(r"(?<=[.!?;…])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")

_OWN_CONDITION_BY_KIND = {"fact": "(:private OR NOT {row}.private)", "summary": ":private", "turn": ":private"}
# The weight of a match in a part of a word. It means less than a match of the word, and facts have more parts.
_PART_WEIGHT_BY_KIND: dict[MemoryKind, float] = {"fact": 0.1, "summary": 0.2, "turn": 0.2}
# The weight of a match in a search word.
_SEARCH_WORD_WEIGHT = 0.7
# The matches for each result, by which neighboring turns are lifted.
_MATCHES_PER_RESULT = 3
# BM25 takes time for every row with one of the terms. Most rows contain only common words, which hardly affect the
# order.
_MAX_SCORED_ROWS = 3_000

MAX_NEIGHBOR_DISTANCE = 3
_NEIGHBOR_SCORE_SHARE = 0.4
_RECENCY_WEIGHT = 0.05
_MONTH_SECONDS = 30 * 86_400.0

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
    not_asked = " AND turn.said IS NOT :asked_text" if kind == "turn" else ""
    # the index sorts its matches, so only the first of them are looked up in the table
    return f"""
        SELECT {kind}.id, -{kind}_words.rank AS score
        FROM {kind}_words CROSS JOIN {kind} ON {kind}.id = {kind}_words.rowid
        WHERE {kind}_words MATCH :match AND {build_visibility_condition(kind, kind)}{not_asked}
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
        beside.conversation = turn.conversation AND beside.place BETWEEN turn.place - {MAX_NEIGHBOR_DISTANCE}
        AND turn.place + {MAX_NEIGHBOR_DISTANCE}
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


class TermCounts(dict[MemoryKind, dict[str, int]]):
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


def search_kinds(
    connection: sqlite3.Connection, kinds: tuple[MemoryKind, ...], query: RecallQuery, counts: TermCounts
) -> list[RecallHit]:
    """Return the matches of these kinds, best first. Matches with equal scores are in the order of `KINDS`."""
    found = [recalled for kind in KINDS if kind in kinds for recalled in _matches(connection, kind, query, counts)]
    return sorted(found, key=attrgetter("score"), reverse=True)[: max(0, query.limit)]


def _matches(
    connection: sqlite3.Connection, kind: MemoryKind, query: RecallQuery, counts: TermCounts
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


def _build_match_expression(kind: MemoryKind, counts: TermCounts) -> str:
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


def select_newest(
    connection: sqlite3.Connection,
    kinds: tuple[MemoryKind, ...],
    query: RecallQuery,
    ids: Collection[tuple[MemoryKind, int]] | None = None,
) -> list[RecallHit]:
    """Return the current memories of these kinds, and ids if given, newest first, whatever the text of the query."""
    if not kinds:
        return []
    rows = " UNION ALL ".join(_build_list_query(kind, ids) for kind in dict.fromkeys(kinds))
    chosen = {f"{kind}_ids": json.dumps([row for of, row in ids or () if of == kind]) for kind in KINDS}
    parameters = {**query._asdict(), **chosen, "limit": max(0, query.limit)}
    found = connection.execute(_SELECT_LISTED.format(rows=rows), parameters)
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
