"""Stores a summary as the episode of its turns, and finds the part of an episode that answers a question."""

import re
import sqlite3
from typing import NamedTuple

from .index import delete
from .records import Episode, Summary
from .texts import EPISODE_LENGTH, SAID_LENGTH, one_line
from .turns import store_episode
from .words import Words, plain_word

EXCERPT_LENGTH = 300

_SENTENCES = re.compile(r"(?<=[.!?;…])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")

_WHOSE = "conversation = :conversation AND agent IS :agent AND person IS :person"


class _Span(NamedTuple):
    since: float
    at: float


class _Known(NamedTuple):
    row: int
    span: _Span


def store_summary(connection: sqlite3.Connection, words: Words, summary: Summary) -> int | None:
    """Store a summary as an episode, in place of the one that it replaces, and return its id.

    Returns None if any of its turns is not stored for this person. What was forgotten, has expired, or was never to be
    kept must not come back in other words.
    """
    whose = {"conversation": summary.conversation, "agent": summary.agent, "person": summary.person}
    earlier = _earlier(connection, whose, summary) if summary.earlier else None
    turns = _turns(connection, whose, summary) if summary.said else None
    known = [span for span in (earlier and earlier.span, turns) if span]
    if len(known) < bool(summary.earlier) + bool(summary.said) or not known:
        return None
    if earlier:
        delete(connection, words, "episode", [earlier.row])
    since = min(summary.since, *(span.since for span in known))
    at = max(summary.until, *(span.at for span in known))
    episode = Episode(summary.conversation, since, at, summary.text, summary.agent, summary.person)
    return store_episode(connection, words, episode)


def excerpt(text: str, wanted: tuple[str, ...]) -> str:
    """Return the sentence with the most of these terms, and what follows it, up to a maximum length."""
    if len(text) <= EXCERPT_LENGTH:
        return text
    sentences = [sentence for sentence in _SENTENCES.split(text) if sentence]
    counts = [sum(term in sentence for term in wanted) for sentence in map(_plain, sentences)]
    chosen, *following = sentences[counts.index(max(counts)) :]
    for sentence in following:
        if len(chosen) + len(sentence) >= EXCERPT_LENGTH:
            break
        chosen = f"{chosen} {sentence}"
    return chosen if len(chosen) <= EXCERPT_LENGTH else one_line(chosen, EXCERPT_LENGTH)


def _plain(sentence: str) -> str:
    folded = sentence.casefold()
    return folded if folded.isascii() else plain_word(folded)


def _earlier(connection: sqlite3.Connection, whose: dict[str, str | None], summary: Summary) -> _Known | None:
    found = connection.execute(
        f"SELECT id, since, at FROM episode WHERE {_WHOSE} AND text = :text ORDER BY id DESC",
        {**whose, "text": one_line(summary.earlier, EPISODE_LENGTH)},
    ).fetchone()
    return _Known(found[0], _Span(*found[1:])) if found else None


def _turns(connection: sqlite3.Connection, whose: dict[str, str | None], summary: Summary) -> _Span | None:
    """Return the time span of the turns, or None if one of them is not stored."""
    wanted = {one_line(said, SAID_LENGTH) for said in summary.said}
    rows = connection.execute(
        f"SELECT said, at FROM turn WHERE {_WHOSE} AND at >= :since", {**whose, "since": summary.since}
    )
    found = [(said, at) for said, at in rows if said in wanted]
    if wanted - {said for said, _ in found}:
        return None
    times = [at for _, at in found]
    return _Span(min(times), max(times))
