"""`Memory`, the public interface of this package."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
import math
from pathlib import Path
import sqlite3
import time
from types import EllipsisType

from .episodes import store_summary
from .facts import ToldFact, facts, tell
from .forget import forget, forget_teller, is_unerased, select, select_expired, set_erased, set_unerased
from .index import merge, reindex
from .record_forgetting import expire_records
from .record_reading import TurnRecords
from .record_rows import store_cost, store_turn_record
from .records import KINDS, Fact, Figures, Forgotten, Kind, Loaded, PastTurn, Recalled, Summary, Tombstone
from .schema import fact_changes, memory_room, unindexed
from .search import Listing, Search, newest, search
from .selection import Companion, Selection
from .storage import MemoryUnavailable, store
from .transfer import export_forgotten, export_rows, load
from .turn_record import LateRecord, TurnCost, TurnRecord
from .turns import store_turn
from .words import Words

_QUESTION_LENGTH = 1_000
_STEP = 200
_PEOPLE = """
    SELECT person FROM (
        SELECT person FROM fact UNION SELECT person FROM turn UNION SELECT person FROM episode
        UNION SELECT person FROM telling
        UNION SELECT figures ->> 'person' FROM turn_record
    ) WHERE person IS NOT NULL
"""


class Memory:
    """One file of turns, facts and episodes. Thread-safe; every call blocks on the disk.

    Other rooms may have their tables in the same file. `companion` forgets their copies of what is forgotten here.
    """

    def __init__(
        self,
        path: Path | str,
        languages: Iterable[str],
        *,
        rooms: Sequence[store.Room] = (),
        companion: Companion | None = None,
    ) -> None:
        """Open the file, or create it. Raises `MemoryUnavailable` if neither is possible."""
        known = tuple(languages)
        # stemmers are not thread-safe: each is used only while its connection is held
        self._words, self._asked = Words(known), Words(known)
        self._companion = companion
        self.database = store.Database(Path(path), (memory_room(self._words.version), *rooms))
        self.record = TurnRecords(self.database)

    @property
    def rows_set_aside(self) -> int:
        """The number of damaged rows that are not used."""
        return self.database.rows_set_aside

    def add_turn(self, turn: PastTurn) -> int:
        """Store an ended turn and return its id."""
        with self.database.write() as connection:
            return store_turn(connection, self._words, turn)

    def add(self, records: Iterable[PastTurn | Summary | TurnRecord | LateRecord | TurnCost | store.Write]) -> None:
        """Store turns, summaries and records of turns, and what other rooms write, in one transaction.

        A summary becomes the episode of its turns. It is skipped if any of these turns is not stored, or belongs to
        another person. The record of a turn that is stored already stays as it is.
        """
        contents: dict[str, int] = {}
        made = [each.make() if isinstance(each, LateRecord) else each for each in records]
        with self.database.write() as connection:
            for record in made:
                match record:
                    case PastTurn():
                        store_turn(connection, self._words, record)
                    case Summary():
                        store_summary(connection, self._words, record)
                    case TurnRecord():
                        store_turn_record(connection, record, contents)
                    case TurnCost():
                        store_cost(connection, record)
                    case store.Write():
                        record.write(connection)

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
        teller: str | None = None,
        conversation: str | None = None,
    ) -> int:
        """Store a fact of a person or of the home, and return its id. A known fact keeps its id.

        `replaces` is the id of an outdated fact, which is not found any more. `teller` is who told it, by default its
        owner, and `conversation` is where. Raises `ValueError` if the outdated fact has another owner.
        """
        now = time.time() if at is None else at
        told = ToldFact(text, person, private, source, quote, at=now, confirmed=now)
        with self.database.write() as connection:
            return tell(connection, self._words, told, replaces, teller=teller, conversation=conversation)

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
        """Return the memories that match a question and that this person may see, best first.

        `person` is an id; `speaker` is the name that "I" and "my" stand for. If `person` is None, the speaker is
        unknown and sees only the home's memories. With `private=False`, results exclude memories that must not enter
        a shared window.
        """
        return self.recall_apart(
            query, tuple(kinds), person=person, speaker=speaker, limit=limit, since=since, until=until, private=private
        )[0]

    def recall_apart(
        self,
        query: str,
        *groups: tuple[Kind, ...],
        person: str | None = None,
        speaker: str | None = None,
        limit: int = 10,
        since: float | None = None,
        until: float | None = None,
        private: bool = True,
    ) -> list[list[Recalled]]:
        """Return the results of `recall` for each group of kinds, up to `limit` for each."""
        with self.database.read() as connection:
            asked = Search(
                self._asked.question(query[:_QUESTION_LENGTH], speaker),
                person,
                private,
                max(0, limit),
                -math.inf if since is None else since,
                math.inf if until is None else until,
            )
            return [search(connection, kinds, asked) for kinds in groups]

    def facts(self, person: str | None = None, *, private: bool = True) -> list[Fact]:
        """Return the facts that this person may see: those of the home first, each group newest first."""
        with self.database.read() as connection:
            return facts(connection, person, private=private)

    def facts_revision(self) -> tuple[object, int]:
        """Return a value that changes with every change of a fact, by any process, and differs for each opened file.

        Much faster than reading the facts.
        """
        with self.database.read() as connection:
            return self.database, fact_changes(connection)

    def newest(self, listing: Listing) -> list[Recalled]:
        """Return the listed memories, newest first."""
        with self.database.read() as connection:
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
        """Forget everything that meets all conditions, and what repeats it. No byte of it stays in the file.

        With `ids` or a `query`, a person can forget anything they may see; with `private=False`, anything that may
        enter a shared window. Otherwise, they forget only what they own, never what belongs to the home. If `person` is
        `...`, the owner is ignored, as administrators need it. With an `agent`, its turns and episodes are forgotten,
        but no facts. `dry_run` deletes nothing.
        """
        chosen = Selection(
            None if ids is None else tuple(ids), person, since, before, query, tuple(kinds), agent, private
        )
        # rows that are not indexed are not found by their words
        while chosen.is_asked_for and self.reindex():
            pass
        if dry_run:
            with self.database.read() as connection:
                return self._with_others(connection, select(connection, self._asked, chosen), chosen, dry_run=True)
        with self.database.write() as connection:
            selected = select(connection, self._words, chosen)
            forgotten = self._with_others(connection, selected, chosen, dry_run=False)
            forget(connection, self._words, forgotten, is_asked_for=chosen.is_asked_for)
            forget_teller(connection, chosen)
            # nobody can tell what is in damaged rows and files
            if chosen.is_asked_for and connection.execute("DELETE FROM set_aside").rowcount:
                set_unerased(connection)
                self.database.rows_set_aside = 0
            unerased = is_unerased(connection)
        erased = not unerased or self.erase()
        if chosen.is_asked_for:
            erased = store.delete_set_aside(self.database.path) and erased
        return replace(forgotten, erased=erased)

    def _with_others(
        self, connection: sqlite3.Connection, forgotten: Forgotten, chosen: Selection, *, dry_run: bool
    ) -> Forgotten:
        if self._companion is None:
            return forgotten
        return replace(forgotten, exchanges=self._companion.forget(connection, forgotten, chosen, dry_run=dry_run))

    def expire(self, before: Mapping[str, float], others: float, whole_before: float = -math.inf) -> Forgotten:
        """Forget the turns that ended before their agent's time in `before`, or before `others` for all other agents.

        The record loses those turns, too, and the words of turns that began before `whole_before`. Also erases what
        could not be erased when it was forgotten.
        """
        with self.database.write() as connection:
            if expire_records(connection, before, others, whole_before):
                set_unerased(connection)
            expired = select_expired(connection, before, others)
            forget(connection, self._words, expired)
            unerased = is_unerased(connection)
        return replace(expired, erased=not unerased or self.erase())

    def erase(self) -> bool:
        """Remove every byte of deleted rows from the file, and return whether that succeeded.

        `forget` calls this. `expire` calls it again if it failed: another process was reading, the disk was full, or
        this process was killed.
        """
        try:
            self.database.rewrite()
            if not self.database.checkpoint():
                return False
            with self.database.write() as connection:
                set_erased(connection)
        except MemoryUnavailable:
            return False
        return True

    def export(self, person: str | None = None) -> Iterator[str]:
        """Yield the memories that this person may see as JSON lines, or everything if `person` is None."""
        for kind in KINDS:
            after = 0
            while True:
                with self.database.read() as connection:
                    rows = export_rows(connection, kind, person, after, _STEP)
                yield from (line for _, line in rows)
                if len(rows) < _STEP:
                    break
                after = rows[-1][0]
        if person is None:
            with self.database.read() as connection:
                forgotten = export_forgotten(connection)
            yield from forgotten

    def load(self, lines: Iterable[str]) -> Loaded:
        """Add exported lines that are neither stored nor forgotten.

        Raises `BadLine` and adds nothing if one is malformed. Many lines at once are not indexed; call `reindex`
        afterwards.
        """
        with self.database.write() as connection:
            return load(connection, self._words, lines.splitlines() if isinstance(lines, str) else lines)

    def reindex(self, most: int = _STEP) -> bool:
        """Index up to `most` rows that are not indexed yet, and return whether there may be more.

        Rows are not indexed after a change of languages or a long `load`. Meanwhile, `recall` finds the newest ones
        only. For a background thread.
        """
        with self.database.write() as connection:
            return reindex(connection, self._words, most)

    def merge(self, *, anew: bool) -> bool:
        """Speed up searching a bit, and return whether that can go on. Begin `anew` first, in a background thread.

        A disk that is too full for it is no error.
        """
        try:
            with self.database.write() as connection:
                return merge(connection, anew=anew)
        except MemoryUnavailable as err:
            if err.reason != "full":
                raise
            return False

    def figures(self) -> Figures:
        """Return the figures of the stored memories."""
        with self.database.read() as connection:
            return Figures(
                facts=_count(connection, "fact WHERE replaced_by IS NULL"),
                turns=_count(connection, "turn"),
                episodes=_count(connection, "episode"),
                size=store.size(self.database.path),
                unerased=is_unerased(connection),
                unindexed=sum(_count(connection, f"{of} WHERE id <= {unindexed(connection, of)}") for of in KINDS),
            )

    def tombstones(self) -> frozenset[Tombstone]:
        """Return the tombstones of memories that were forgotten at a person's request."""
        with self.database.read() as connection:
            rows = connection.execute("SELECT kind, id, at FROM tombstone WHERE asked_for").fetchall()
        return frozenset(Tombstone(*row) for row in rows)

    def people(self) -> frozenset[str]:
        """Return the people who own something here."""
        with self.database.read() as connection:
            return frozenset(owner for (owner,) in connection.execute(_PEOPLE))

    def checkpoint(self) -> bool:
        """Move everything into the one file, so that it can be copied. Return whether that succeeded."""
        return self.database.checkpoint()

    def close(self) -> None:
        """Close the file."""
        self.database.close()


def _count(connection: sqlite3.Connection, what: str) -> int:
    count: int = connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0]
    return count
