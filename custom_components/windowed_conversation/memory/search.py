"""Finds the memories that a person may see: by query, best match first, or without a query, newest first.

A search uses BM25 over the stems from `words`, and matches in neighboring turns add to the score of a turn. Memories
that a person may not see are excluded within the SQL query, before scores are passed on to neighbors.
"""

from collections.abc import Iterator
import json
import math
from operator import attrgetter
import re
import sqlite3
from typing import NamedTuple

from .records import KINDS, Kind, Recalled
from .words import QuestionTerms, one_line, plain_word

EXCERPT_LENGTH = 300
_SENTENCES = re.compile(r"(?<=[.!?;…])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")

_OWN = {"fact": "(:private OR NOT {row}.private)", "episode": ":private", "turn": ":private"}
# The weight of a match in a part of a word. It means less than a match of the word, and facts have more parts.
_PARTS: dict[Kind, float] = {"fact": 0.1, "episode": 0.2, "turn": 0.2}
_HITS = 300
# BM25 takes time for every row with one of the terms. Most rows contain only common words, which hardly affect the
# order.
_ROWS = 12_000

_SPAN = 3
_LENT = 0.4
_RECENCY = 0.05
_MONTH = 30 * 86_400.0

_LISTED_COLUMNS: dict[Kind, str] = {
    "fact": "text, private, NULL AS conversation FROM fact WHERE replaced_by IS NULL AND",
    "episode": "text, person IS NOT NULL AS private, conversation FROM episode WHERE",
    "turn": "said || char(10) || answer AS text, person IS NOT NULL AS private, conversation FROM turn WHERE",
}
_LISTED = """
    SELECT kind, id, text, at, person, conversation, private FROM ({rows})
    ORDER BY at DESC, kind, id DESC LIMIT :limit OFFSET :offset
"""


def visible(kind: Kind, row: str) -> str:
    """Return the SQL condition for rows of a table that a person may see: the person's own and the home's.

    Its parameters are `person` and `private`. An unknown speaker owns nothing. A shared window gets no private facts,
    and nothing from a person's turns and episodes.
    """
    return f"({row}.person IS NULL OR ({row}.person = :person AND {_OWN[kind].format(row=row)}))"


def _hits(kind: Kind) -> str:
    return f"""
        SELECT {kind}.id, -bm25({kind}_words, 1.0, {_PARTS[kind]}) AS score
        FROM {kind}_words CROSS JOIN {kind} ON {kind}.id = {kind}_words.rowid
        WHERE {kind}_words MATCH :match AND {visible(kind, kind)} AND {kind}.at BETWEEN :since AND :until
        ORDER BY score DESC LIMIT {_HITS}
    """


def _found_by_itself(kind: Kind, conversation_and_private: str) -> str:
    return f"""
        WITH hit (id, score) AS MATERIALIZED ({_hits(kind)}),
        found (id, score) AS (SELECT id, score / max(score) OVER () FROM hit)
        SELECT id, score, at, text, person, {conversation_and_private}, NULL
        FROM found JOIN {kind} USING (id) ORDER BY score DESC, at DESC, id DESC LIMIT :limit
    """


_NEIGHBOURS = f"""
    WITH hit (id, score) AS MATERIALIZED ({_hits("turn")}),
    lifted (id, at, score) AS MATERIALIZED (
        SELECT beside.id, beside.at,
            sum(hit.score * CASE beside.place WHEN turn.place THEN 1 ELSE {_LENT} / abs(beside.place - turn.place) END)
        FROM hit CROSS JOIN turn ON turn.id = hit.id CROSS JOIN turn AS beside ON
        beside.conversation = turn.conversation AND beside.place BETWEEN turn.place - {_SPAN} AND turn.place + {_SPAN}
        WHERE {visible("turn", "beside")} AND beside.at BETWEEN :since AND :until
        GROUP BY beside.id
    ),
    most (at, score) AS MATERIALIZED (SELECT max(at), max(score) FROM lifted),
    found (id, score) AS (
        SELECT lifted.id,
            (lifted.score / most.score + {_RECENCY} / (1 + (most.at - lifted.at) / {_MONTH})) / (1 + {_RECENCY})
        FROM most CROSS JOIN lifted
        ORDER BY 2 DESC, lifted.id DESC LIMIT :limit
    )
    SELECT found.id, found.score, turn.at, turn.said || char(10) || turn.answer, turn.person, turn.conversation,
        turn.person IS NOT NULL, turn.tools
    FROM found JOIN turn USING (id)
    ORDER BY found.score DESC, found.id DESC
"""
_SEARCHES: dict[Kind, str] = {
    "fact": _found_by_itself("fact", "NULL, private"),
    "episode": _found_by_itself("episode", "conversation, person IS NOT NULL"),
    "turn": _NEIGHBOURS,
}


class RecallQuery(NamedTuple):
    """A query to memory: who asks, the maximum number of results, and their time span.

    `person` is an id; `speaker` is the name that replaces "I" and "my". If `person` is None, the speaker is unknown and
    sees only the home's memories. With `private=False`, results exclude memories that must not enter a shared window.
    """

    text: str
    person: str | None = None
    speaker: str | None = None
    limit: int = 10
    since: float = -math.inf
    until: float = math.inf
    private: bool = True


def search(
    connection: sqlite3.Connection, kinds: tuple[Kind, ...], query: RecallQuery, question: QuestionTerms
) -> list[Recalled]:
    """Return the matches of a query, best first. Matches with equal scores are in the order of `KINDS`."""
    found = [recalled for kind in KINDS if kind in kinds for recalled in _found(connection, kind, query, question)]
    return sorted(found, key=attrgetter("score"), reverse=True)[: max(0, query.limit)]


def _found(
    connection: sqlite3.Connection, kind: Kind, query: RecallQuery, question: QuestionTerms
) -> Iterator[Recalled]:
    match = _match(connection, kind, question)
    if not match:
        return
    parameters = {**query._asdict(), "match": match, "limit": max(0, query.limit)}
    for row, score, at, text, person, conversation, private, tools in connection.execute(_SEARCHES[kind], parameters):
        part = excerpt(text, question.words) if kind == "episode" else ""
        names = tuple((tools or "").split())
        yield Recalled(kind, row, text.strip("\n"), at, person, score, conversation, bool(private), part, names)


def excerpt(text: str, wanted: tuple[str, ...]) -> str:
    """Return the sentence with the most of these terms and the sentences after it, up to `EXCERPT_LENGTH`."""
    if len(text) <= EXCERPT_LENGTH:
        return text
    sentences = [sentence for sentence in _SENTENCES.split(text) if sentence]
    plain = [plain_word(sentence.casefold()) for sentence in sentences]
    counts = [sum(term in sentence for term in wanted) for sentence in plain]
    chosen, *following = sentences[counts.index(max(counts)) :]
    for sentence in following:
        if len(chosen) + len(sentence) >= EXCERPT_LENGTH:
            break
        chosen = f"{chosen} {sentence}"
    return chosen if len(chosen) <= EXCERPT_LENGTH else one_line(chosen, EXCERPT_LENGTH)


def _match(connection: sqlite3.Connection, kind: Kind, question: QuestionTerms) -> str:
    """Return the FTS5 expression for the rarest terms of a query, up to a total of `_ROWS` rows."""
    parts = question.parts + question.ends if kind == "fact" else question.parts
    wanted_terms = question.words + parts
    places = ",".join("?" * len(wanted_terms))
    counts = f"SELECT term, doc FROM {kind}_terms WHERE term IN ({places})"
    terms: dict[str, int] = dict(connection.execute(counts, wanted_terms).fetchall())
    rows = 0
    chosen: list[str] = []
    for column, wanted in (("words", question.words), ("parts", parts)):
        for term in sorted([term for term in wanted if term in terms], key=terms.__getitem__):
            rows += terms[term]
            if chosen and rows > _ROWS:
                break
            chosen.append(f'{column} : "{term}"')
    chosen += [f'words : "{beginning}" *' for beginning in question.beginnings]
    return " OR ".join(chosen)


class Listing(NamedTuple):
    """The conditions for a list of memories: person, kinds, times, ids and length.

    If `private` is False, the list contains only memories that may enter a shared window.
    """

    person: str | None = None
    private: bool = True
    kinds: tuple[Kind, ...] = KINDS
    since: float = -math.inf
    until: float = math.inf
    limit: int = 10
    offset: int = 0
    ids: tuple[tuple[Kind, int], ...] | None = None


def newest(connection: sqlite3.Connection, listing: Listing) -> list[Recalled]:
    """Return the listed memories that this person may see, newest first. Outdated facts are not listed."""
    if not listing.kinds:
        return []
    found = connection.execute(
        _LISTED.format(rows=" UNION ALL ".join(_rows(kind, listing.ids) for kind in dict.fromkeys(listing.kinds))),
        {
            **listing._asdict(),
            "limit": max(0, listing.limit),
            "offset": max(0, listing.offset),
            **{f"{kind}_ids": json.dumps([row for of, row in listing.ids or () if of == kind]) for kind in KINDS},
        },
    )
    return [
        Recalled(kind, row, text, at, owner, 0.0, conversation, bool(private))
        for kind, row, text, at, owner, conversation, private in found
    ]


def _rows(kind: Kind, ids: object | None) -> str:
    named = "" if ids is None else f" AND id IN (SELECT value FROM json_each(:{kind}_ids))"
    return f"""
        SELECT '{kind}' AS kind, id, at, person, {_LISTED_COLUMNS[kind]}
        at BETWEEN :since AND :until AND {visible(kind, kind)}{named}
    """
