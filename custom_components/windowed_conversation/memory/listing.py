"""Lists what is remembered, newest first, without a question."""

from collections.abc import Iterable
import json
import math
import sqlite3
from typing import NamedTuple

from .labels import find_label
from .records import KINDS, Kind, Recalled
from .visibility import visible

_COLUMNS: dict[Kind, str] = {
    "fact": "text, private, NULL AS conversation FROM fact WHERE replaced_by IS NULL AND",
    "episode": "text, person IS NOT NULL AS private, conversation FROM episode WHERE",
    "turn": "said || char(10) || answer AS text, person IS NOT NULL AS private, conversation FROM turn WHERE",
}
_LISTED = """
    SELECT kind, listed.id, text, at, owner.name, within.name, private FROM ({rows}) AS listed
    LEFT JOIN label AS owner ON owner.id = listed.person LEFT JOIN label AS within ON within.id = listed.conversation
    ORDER BY at DESC, kind, listed.id DESC LIMIT :limit OFFSET :offset
"""


class Listing(NamedTuple):
    """What to list: whose, of which kinds and times, among which ids, and how many.

    Without `private`, the list has only what may enter a shared window.
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
    """Return what this person may see, newest first. Outdated facts are not listed."""
    if not listing.kinds:
        return []
    found = connection.execute(
        _LISTED.format(rows=" UNION ALL ".join(_rows(kind, listing.ids) for kind in dict.fromkeys(listing.kinds))),
        {
            "person": find_label(connection, listing.person),
            "private": listing.private,
            "since": listing.since,
            "until": listing.until,
            "limit": max(0, listing.limit),
            "offset": max(0, listing.offset),
            **{f"{kind}_ids": json.dumps(_of(kind, listing.ids or ())) for kind in KINDS},
        },
    )
    return [
        Recalled(kind, row, text, at, owner, 0.0, conversation, bool(private))
        for kind, row, text, at, owner, conversation, private in found
    ]


def _rows(kind: Kind, ids: object | None) -> str:
    named = "" if ids is None else f" AND id IN (SELECT value FROM json_each(:{kind}_ids))"
    return f"""
        SELECT '{kind}' AS kind, id, at, person, {_COLUMNS[kind]}
        at BETWEEN :since AND :until AND {visible(kind, kind)}{named}
    """


def _of(kind: Kind, ids: Iterable[tuple[Kind, int]]) -> list[int]:
    return [row for of, row in ids if of == kind]
