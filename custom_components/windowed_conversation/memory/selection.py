"""Conditions that select rows: those to forget, and those that a person may see."""

import sqlite3
from types import EllipsisType
from typing import NamedTuple, Protocol

from .records import Forgotten, Kind

_OWN = {"fact": "(:private OR NOT {row}.private)", "episode": ":private", "turn": ":private"}


class Selection(NamedTuple):
    """Conditions, all of which must be met. If `person` is `...`, the owner does not matter.

    An `agent` has turns and episodes, but no facts. With `ids` or a `query`, the selection covers what the person may
    see, and without `private` what may enter a shared window.
    """

    ids: tuple[tuple[Kind, int], ...] | None
    person: str | EllipsisType | None
    since: float | None
    before: float | None
    query: str | None
    kinds: tuple[Kind, ...]
    agent: str | None = None
    private: bool = True

    @property
    def is_named(self) -> bool:
        """Whether it names items, not only their owner or age."""
        return self.ids is not None or self.query is not None

    @property
    def is_asked_for(self) -> bool:
        """Whether a person asked for this, as opposed to expiry."""
        return self.is_named or self.person is not ... or self.agent is not None or self.since is not None


class Companion(Protocol):
    """Forgets what other rooms have of what memory forgets."""

    def forget(
        self, connection: sqlite3.Connection, forgotten: Forgotten, selection: Selection, *, dry_run: bool
    ) -> int:
        """Delete copies in the same transaction, or with `dry_run` nothing, and return the number of exchanges."""
        ...


def visible(kind: Kind, row: str) -> str:
    """Return the SQL condition on the rows of a table that a person may see: their own and the home's.

    Its parameters are `person` and `private`. An unknown speaker owns nothing. A shared window gets no private facts,
    and nothing from a person's turns and episodes.
    """
    return f"({row}.person IS NULL OR ({row}.person = :person AND {_OWN[kind].format(row=row)}))"
