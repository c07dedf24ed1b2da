"""Memory: what a caller asks of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
import math
from pathlib import Path
import sqlite3
import time
from types import EllipsisType

from . import file, tombstones
from .database import Database
from .episodes import store_summary
from .errors import MemoryUnavailable
from .exporting import export_forgotten, export_rows
from .facts import ToldFact, facts, tell
from .forget import Selection, forget, is_unerased, select, select_expired, set_erased
from .index import reindex
from .listing import Listing, newest
from .loading import load
from .records import KINDS, Fact, Figures, Forgotten, Kind, Loaded, PastTurn, Recalled, Summary
from .schema import fact_changes, unindexed
from .search import Search, search
from .turns import store_turn
from .words import Words

_QUESTION_LENGTH = 1_000
_STEP = 200


class Memory:
    """One file of turns, facts and episodes. Any thread may use it; every call waits for the disk."""

    def __init__(self, path: Path | str, languages: Iterable[str]) -> None:
        """Open the file, or make it. Raise MemoryUnavailable if that cannot be."""
        known = tuple(languages)
        # each is used only by the thread that holds its connection
        self._words, self._asked = Words(known), Words(known)
        self._database = Database(Path(path), self._words.version)
        self._settle()

    def add_turn(self, turn: PastTurn) -> int:
        """Store a turn that ended and return its id."""
        with self._database.write() as connection:
            return store_turn(connection, self._words, turn)

    def add(self, records: Iterable[PastTurn | Summary]) -> None:
        """Store turns, and summaries of them, with one commit: all of them or none.

        A summary becomes the episode of its turns. It is not stored if it stands for anything that is not kept, or not
        as this person's.
        """
        with self._database.write() as connection:
            for record in records:
                if isinstance(record, PastTurn):
                    store_turn(connection, self._words, record)
                else:
                    store_summary(connection, self._words, record)

    def add_fact(
        self,
        text: str,
        *,
        person: str | None = None,
        private: bool = False,
        source: str = "said",
        quote: str = "",
        replaces: int | None = None,
        at: float | None = None,
    ) -> int:
        """Store a fact of a person, or of the home, and return its id: the one it has, if it is known.

        The fact that it replaces is no longer found. Raise ValueError if that fact has another owner.
        """
        now = time.time() if at is None else at
        told = ToldFact(text, person, private, source, quote, at=now, confirmed=now)
        with self._database.write() as connection:
            return tell(connection, self._words, told, replaces)

    def recall(
        self,
        query: str,
        *,
        person: str | None = None,
        speaker: str | None = None,
        kinds: Iterable[Kind] = KINDS,
        limit: int = 10,
        since: float | None = None,
        until: float | None = None,
        private: bool = True,
    ) -> list[Recalled]:
        """Return what this person may see and the question finds, best first.

        The person is an id, the speaker a name: what "my" stands for. An unknown speaker, None, sees only the home's.
        Without `private`, only what may enter a window that others share is found.
        """
        with self._database.read() as connection:
            asked = Search(
                self._asked.question(query[:_QUESTION_LENGTH], speaker),
                person,
                private,
                max(0, limit),
                -math.inf if since is None else since,
                math.inf if until is None else until,
            )
            return search(connection, tuple(kinds), asked)

    def facts(self, person: str | None = None, *, private: bool = True) -> list[Fact]:
        """Return the facts that this person may see: the home's first, newest first."""
        with self._database.read() as connection:
            return facts(connection, person, private=private)

    def facts_revision(self) -> tuple[object, int]:
        """Return what is another value after any fact has changed, whoever has changed it, and for every opened file.

        It takes much less time than reading the facts.
        """
        with self._database.read() as connection:
            return self._database, fact_changes(connection)

    def newest(self, listing: Listing) -> list[Recalled]:
        """Return what is remembered, newest first."""
        with self._database.read() as connection:
            return newest(connection, listing)

    def forget(
        self,
        *,
        ids: Iterable[tuple[Kind, int]] | None = None,
        person: str | EllipsisType | None = ...,
        agent: str | None = None,
        since: float | None = None,
        before: float | None = None,
        query: str | None = None,
        kinds: Iterable[Kind] = KINDS,
        private: bool = True,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget what meets all of the conditions, and what repeats it. No byte of it stays in the file.

        With ids or a query, a person forgets among what they may see; without `private`, among what may enter a window
        that others share. With neither, they forget only what they own, never the home's. Without a person the owner
        does not matter: this is for administrators. With an agent, its turns and episodes are forgotten, no facts.
        """
        chosen = Selection(
            None if ids is None else tuple(ids), person, since, before, query, tuple(kinds), agent, private
        )
        # what is not in the index is not found by its words
        while chosen.is_asked_for and self.reindex():
            pass
        if dry_run:
            with self._database.read() as connection:
                return select(connection, self._asked, chosen)
        with self._database.write() as connection:
            forgotten = select(connection, self._words, chosen)
            stones = tombstones.tombstones_of(connection, forgotten) if chosen.is_asked_for else []
            forget(connection, self._words, forgotten)
        if forgotten == Forgotten():
            return replace(forgotten, erased=True)
        erased = self.erase()
        if chosen.is_asked_for:
            erased = self._keep(stones) and file.delete_set_aside(self._database.path) and erased
        return replace(forgotten, erased=erased)

    def expire(self, before: Mapping[str, float], others: float) -> Forgotten:
        """Forget the turns that ended before the time given for their agent, or for all other agents.

        What could not be erased when it was forgotten is erased now.
        """
        with self._database.write() as connection:
            expired = select_expired(connection, before, others)
            forget(connection, self._words, expired)
            unerased = is_unerased(connection)
        return replace(expired, erased=not unerased or self.erase())

    def erase(self) -> bool:
        """Remove every byte of what was deleted from the file, and return whether that succeeded.

        `forget` does so. `expire` tries again where that failed: another process read the file, the disk was full, or
        this process was killed.
        """
        try:
            self._database.rewrite()
            if not self._database.checkpoint():
                return False
            with self._database.write() as connection:
                set_erased(connection)
        except MemoryUnavailable:
            return False
        return True

    def export(self, person: str | None = None) -> Iterator[str]:
        """Yield what this person may see as lines of JSON. For None, yield everything."""
        for kind in KINDS:
            after = 0
            while True:
                with self._database.read() as connection:
                    rows = export_rows(connection, kind, person, after, _STEP)
                yield from (line for _, line in rows)
                if len(rows) < _STEP:
                    break
                after = rows[-1][0]
        if person is None:
            with self._database.read() as connection:
                forgotten = export_forgotten(connection)
            yield from forgotten

    def load(self, lines: Iterable[str]) -> Loaded:
        """Add exported lines that are neither here nor forgotten. Raise BadLine and add nothing if one is malformed.

        Where they are many, `reindex` makes their index.
        """
        with self._database.write() as connection:
            return load(connection, self._words, lines.splitlines() if isinstance(lines, str) else lines)

    def reindex(self, most: int = _STEP) -> bool:
        """Index up to `most` rows that are not indexed, and return whether there may be more.

        There are some after a change of the languages and after a long `load`. Until there are none, `recall` finds the
        newest only. For a thread in the background.
        """
        with self._database.write() as connection:
            return reindex(connection, self._words, most)

    def figures(self) -> Figures:
        """Return how much there is."""
        with self._database.read() as connection:
            return Figures(
                facts=_count(connection, "fact WHERE replaced_by IS NULL"),
                turns=_count(connection, "turn"),
                episodes=_count(connection, "episode"),
                size=file.size(self._database.path),
                unindexed=sum(
                    _count(connection, f"{kind} WHERE id <= {unindexed(connection, kind)}") for kind in KINDS
                ),
            )

    def _settle(self) -> None:
        """Forget once more what this file still has because it is an older copy of the one that forgot it."""
        path = self._database.path
        try:
            with self._database.write() as connection:
                has_had = tombstones.settle(connection, self._words, file.forgotten(path))
        except OSError as error:
            self.close()
            raise file.unavailable(file.reason_of(error) or "away", path) from error
        except MemoryUnavailable:
            self.close()
            raise
        if has_had:
            self.erase()

    def _keep(self, stones: Iterable[tombstones.Tombstone]) -> bool:
        """Write down what somebody had forgotten, and return whether that succeeded."""
        try:
            tombstones.write(file.forgotten(self._database.path), stones)
        except OSError:
            return False
        return True

    def checkpoint(self) -> bool:
        """Move all into the one file, for a copy of it. Return whether that could be done."""
        return self._database.checkpoint()

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _count(connection: sqlite3.Connection, what: str) -> int:
    count: int = connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0]
    return count
