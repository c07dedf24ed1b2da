"""Stores turns and episodes."""

import sqlite3

from . import index
from .index import delete_oldest
from .records import Episode, Kind, PastTurn
from .texts import ANSWER_LENGTH, EPISODE_LENGTH, NAME_LENGTH, SAID_LENGTH, moment, name, one_line
from .words import Words

MOST_TURNS = 200_000
MOST_EPISODES = 20_000
# counting takes time
_EVERY = 500


def store_turn(
    connection: sqlite3.Connection, words: Words, turn: PastTurn, row: int | None = None, origin: int | None = None
) -> int:
    """Store a turn as the last one of its conversation and return its id."""
    said, answer = one_line(turn.said, SAID_LENGTH), one_line(turn.answer, ANSWER_LENGTH)
    if not said and not answer:
        raise ValueError("A turn needs words")
    stored = connection.execute(
        """
        INSERT INTO turn (id, origin, at, conversation, place, person, agent, device, tools, said, answer)
        VALUES (?, ?, ?, ?4, (SELECT coalesce(max(place) + 1, 0) FROM turn WHERE conversation = ?4), ?, ?, ?, ?, ?, ?)
        """,
        (
            row,
            origin,
            moment(turn.at),
            name(turn.conversation),
            name(turn.person),
            name(turn.agent),
            name(turn.device),
            _joined(turn.tools),
            said,
            answer,
        ),
    ).lastrowid
    return _indexed(connection, words, "turn", stored, MOST_TURNS)


def store_episode(
    connection: sqlite3.Connection, words: Words, episode: Episode, row: int | None = None, origin: int | None = None
) -> int:
    """Store an episode and return its id."""
    text = one_line(episode.text, EPISODE_LENGTH)
    if not text:
        raise ValueError("An episode needs words")
    stored = connection.execute(
        """
        INSERT INTO episode (id, origin, at, since, conversation, person, agent, text)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            row,
            origin,
            moment(episode.at),
            moment(episode.since),
            name(episode.conversation),
            name(episode.person),
            name(episode.agent),
            text,
        ),
    ).lastrowid
    return _indexed(connection, words, "episode", stored, MOST_EPISODES)


def _indexed(connection: sqlite3.Connection, words: Words, kind: Kind, row: int | None, most: int) -> int:
    assert row is not None
    index.add(connection, words, kind, row)
    if row % _EVERY == 0:
        delete_oldest(connection, words, kind, most)
    return row


def _joined(tools: tuple[str, ...]) -> str | None:
    """Return the names of tools as one text, as many as fit."""
    joined = " ".join(dict.fromkeys(tools))
    return joined.encode()[:NAME_LENGTH].decode(errors="ignore") or None
