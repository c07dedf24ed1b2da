"""`Memory`, the public interface of this package."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
import math
from pathlib import Path
import sqlite3
from threading import Lock
import time
from types import EllipsisType
from typing import Protocol

from .erasure import (
    DeleteCopiesCallback,
    decide_erasure,
    delete_forgotten_rows,
    delete_statements,
    has_unerased_rows,
    mark_unerased,
)
from .index import MemoryUnavailable, build_memory_schema, index_pending, index_row, merge_segments, store, unindexed_id
from .records import (
    KINDS,
    Fact,
    FactStatement,
    ForgetConditions,
    LoadCounts,
    LostRows,
    MemoryKind,
    MemoryStatistics,
    PastTurn,
    RecallHit,
    Replacement,
    Summary,
    Tombstone,
)
from .relevance import select_relevant
from .rows import insert_record, mark_fact_replaced, select_facts, set_search_words, store_fact, store_summary
from .search import (
    RecallQuery,
    TermCounts,
    build_visibility_condition,
    search_kinds,
    select_newest,
)
from .transfer import export_lines, load_lines
from .words import Words

_MAX_QUERY_CHARS = 1_000
_BATCH_SIZE = 200
# How long a replaced fact can be made current again.
_UNDO_SECONDS = 86_400.0
_SELECT_OWNERS = """
    SELECT person FROM (
        SELECT person FROM fact UNION SELECT person FROM turn UNION SELECT person FROM summary
        UNION SELECT person FROM telling
    ) WHERE person IS NOT NULL
"""


class Memory:
    """One file of turns, facts and summaries. Thread-safe; every call blocks on disk I/O.

    Other rooms may have tables in the same file. Each of `companions` deletes the rows of a room when memory forgets.
    """

    def __init__(
        self,
        path: Path | str,
        languages: Iterable[str],
        *,
        rooms: Sequence[store.Schema] = (),
        companions: Sequence[DeleteCopiesCallback] = (),
    ) -> None:
        """Open or create the file. Raises `MemoryUnavailable` if neither is possible."""
        languages = tuple(languages)
        # stemmers are not thread-safe: each is used only while the lock of its connection is held
        self.words, self._read_splitter = Words(languages), Words(languages)
        self._companions = companions
        self.database = store.Database(Path(path), (build_memory_schema(self.words.version), *rooms))
        # held while facts are changed, so that an older state of them never replaces a newer one
        self._facts_lock = Lock()
        with self.database.read_transaction() as connection:
            # damaged rows, which are not used
            self.rows_set_aside = _count_rows(connection, "set_aside")
            # the current facts of everybody: first the home's, each newest first
            self.facts = select_facts(connection)

    def add_turn(self, turn: PastTurn) -> int:
        """Store a finished turn and return its id."""
        with self.database.write_transaction() as connection:
            return insert_record(connection, self.words, turn)

    def add(self, records: Iterable[PastTurn | Summary | store.WriteJob]) -> None:
        """Store turns, summaries, and writes of other rooms in one transaction.

        A summary is skipped if any of its turns is not stored or belongs to another person.
        """
        with self.database.write_transaction() as connection:
            for record in records:
                match record:
                    case PastTurn():
                        insert_record(connection, self.words, record)
                    case Summary():
                        store_summary(connection, self.words, record)
                    case store.WriteJob():
                        record.run(connection)

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
        search_words: str | None = None,
    ) -> int:
        """Store a fact of a person or of the home, and return its id. A known fact keeps its id.

        `replaces` is the id of a fact that becomes outdated and is no longer found. `teller` is the person who stated
        the fact in the `conversation`, by default its owner. `search_words` are other words by which it is found.
        Raises `ValueError` if the outdated fact has another owner.
        """
        now = time.time() if at is None else at
        fact = FactStatement(text, person, private, source, quote, at=now, confirmed=now, search_words=search_words)
        return self.store_fact(fact, replaces, teller=teller, conversation=conversation)

    def store_fact(
        self,
        fact: FactStatement,
        replaces: int | None = None,
        *,
        teller: str | None = None,
        conversation: str | None = None,
    ) -> int:
        """Store a fact that was just stated. See `add_fact`."""
        with self.change_facts() as connection:
            return store_fact(connection, self.words, fact, replaces, teller=teller, conversation=conversation)

    def recall(
        self,
        query: str | None = None,
        *,
        person: str | None = None,
        speaker: str | None = None,
        kinds: Iterable[MemoryKind] = KINDS,
        limit: int = 10,
        since: float | None = None,
        until: float | None = None,
        private: bool = True,
        ids: Collection[tuple[MemoryKind, int]] | None = None,
    ) -> list[RecallHit]:
        """Return the memories that match a query, best first, or without one the newest. See `RecallQuery`.

        These are memories that the person may see. `ids` limit those without a query.
        """
        times = -math.inf if since is None else since, math.inf if until is None else until
        conditions, kinds = RecallQuery(query or "", person, speaker, limit, *times, private), tuple(kinds)
        with self.database.read_transaction() as connection:
            if query is None:
                return select_newest(connection, kinds, conditions, ids)
            question = self._read_splitter.search_terms(query[:_MAX_QUERY_CHARS], speaker)
            return search_kinds(connection, kinds, conditions, TermCounts(connection, question))

    def recall_relevant(self, query: RecallQuery) -> tuple[list[RecallHit], list[RecallHit]]:
        """Return the facts, and the summaries and turns, that are relevant to a sentence. See `select_relevant`."""
        with self.database.read_transaction() as connection:
            cut = query._replace(text=query.text[:_MAX_QUERY_CHARS])
            return select_relevant(connection, self._read_splitter, cut)

    def get_facts(self, person: str | None = None, *, private: bool = True) -> list[Fact]:
        """Return the facts that this person may see: first the home's, then the person's, each newest first.

        They are in working memory, also after the file was closed, so this never blocks.
        """
        return [
            fact
            for fact in self.facts
            if fact.person is None or (fact.person == person and (private or not fact.private))
        ]

    def get_unshared_facts(self, person: str | None) -> frozenset[int]:
        """Return the ids of the facts that nobody has stated but this person and unknown speakers."""
        query = "SELECT fact FROM telling GROUP BY fact HAVING NOT max(person IS NOT NULL AND person IS NOT ?)"
        with self.database.read_transaction() as connection:
            return frozenset([fact for (fact,) in connection.execute(query, (person,))])

    def get_replacements(self, person: str | None = None, *, private: bool = True) -> list[Replacement]:
        """Return the replacements of the last day that this person may see and undo, newest first."""
        with self.database.read_transaction() as connection:
            rows = connection.execute(
                f"""
                SELECT fact.id, fact.text, fact.person, old.id, old.text
                FROM fact JOIN fact AS old ON old.replaced_by = fact.id
                WHERE fact.replaced_by IS NULL AND fact.confirmed >= :since
                AND {build_visibility_condition("fact", "old")} AND {build_visibility_condition("fact", "fact")}
                ORDER BY fact.confirmed DESC, old.id DESC
                """,
                {"person": person, "since": time.time() - _UNDO_SECONDS, "private": private},
            )
            return [Replacement(*row) for row in rows]

    def replace_fact(self, row: int, by: int) -> bool:
        """Let a current fact replace another one of its owner. Return False if it cannot, or if that was undone."""
        with self.change_facts() as connection:
            found = connection.execute(
                """
                SELECT 1 FROM fact AS old JOIN fact AS new ON new.person IS old.person AND new.id != old.id
                WHERE old.id = ? AND new.id = ? AND old.replaced_by IS NULL AND new.replaced_by IS NULL
                AND NOT EXISTS (SELECT 1 FROM fact WHERE replaced_by = old.id AND spoken = new.spoken)
                """,
                (row, by),
            ).fetchone()
            if found:
                mark_fact_replaced(connection, self.words, row, by)
        return found is not None

    def undo_replacement(self, undone: Replacement) -> bool:
        """Make a replaced fact current again, in place of the one that replaced it. Return whether it still can be."""
        with self.change_facts() as connection:
            restored = connection.execute(
                "UPDATE fact SET replaced_by = NULL, confirmed = max(confirmed, ?) WHERE id = ? AND replaced_by = ?",
                (time.time(), undone.replaced_id, undone.id),
            ).rowcount
            if restored:
                index_row(connection, self.words, "fact", undone.replaced_id)
                mark_fact_replaced(connection, self.words, undone.id, undone.replaced_id)
        return bool(restored)

    def set_search_words(self, search_words_by_fact: Mapping[int, str]) -> None:
        """Set the search words of facts by their ids. Facts that were forgotten are skipped."""
        with self.change_facts() as connection:
            for row, search_words in search_words_by_fact.items():
                set_search_words(connection, self.words, row, search_words)

    def forget(
        self,
        *,
        ids: Iterable[tuple[MemoryKind, int]] | None = None,
        person: str | EllipsisType | None = ...,
        agent: str | None = None,
        since: float | None = None,
        before: float | None = None,
        query: str | None = None,
        kinds: Iterable[MemoryKind] = KINDS,
        private: bool = True,
        dry_run: bool = False,
    ) -> LostRows:
        """Forget everything that meets all conditions, and its repetitions, and erase its bytes from the file.

        With `ids` or a `query`, a person can forget anything they may see, or with `private=False` anything that may
        enter a shared window. Otherwise, only the person's own memories are forgotten, never the home's. If `person` is
        `...`, the owner is ignored, which administrators need. With an `agent`, the turns and summaries of that agent
        are forgotten, but no facts. `dry_run` deletes nothing. `Erasure` describes everything that is deleted.
        """
        named = None if ids is None else tuple(ids)
        selection = ForgetConditions(named, person, since, before, query, tuple(kinds), agent, private)
        is_asked_for = selection.is_requested
        # a query does not find rows that are not indexed yet
        while is_asked_for and self.reindex():
            pass
        if dry_run:
            with self.database.read_transaction() as connection:
                return self._decide_erasure(connection, self._read_splitter, selection, dry_run=True)
        with self.change_facts() as connection:
            forgotten = self._decide_erasure(connection, self.words, selection, dry_run=False)
            delete_forgotten_rows(connection, self.words, forgotten, is_requested=is_asked_for)
            delete_statements(connection, selection)
            # the content of damaged rows and files is unknown, so they are deleted as well
            if is_asked_for and connection.execute("DELETE FROM set_aside").rowcount:
                mark_unerased(connection)
                self.rows_set_aside = 0
            unerased = has_unerased_rows(connection)
        erased = not unerased or self.erase()
        if is_asked_for:
            erased = store.delete_damaged_file(self.database.path) and erased
        return replace(forgotten, is_erased=erased)

    @contextmanager
    def change_facts(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction that changes facts, and keep the facts that it leaves."""
        with self._facts_lock:
            with self.database.write_transaction() as connection:
                yield connection
                facts = select_facts(connection)
            self.facts = facts

    def _decide_erasure(
        self, connection: sqlite3.Connection, words: Words, selection: ForgetConditions, *, dry_run: bool
    ) -> LostRows:
        erasure = decide_erasure(connection, words, selection)
        forgotten = erasure.forgotten
        for delete_copies in self._companions:
            forgotten = delete_copies(connection, erasure, forgotten, dry_run)
        return forgotten

    def forget_expired(self, before: Mapping[str, float], others: float) -> LostRows:
        """Forget turns that ended before their agent's time in `before`; `others` is the time for all other agents.

        Their summaries stay. Deleted rows that could not be erased before are erased as well, also of other rooms.
        """
        with self.change_facts() as connection:
            old = connection.execute("SELECT id, at, agent FROM turn WHERE at < ?", (max([others, *before.values()]),))
            expired = LostRows(turns=tuple(sorted(row for row, at, agent in old if at < before.get(agent, others))))
            delete_forgotten_rows(connection, self.words, expired)
            unerased = has_unerased_rows(connection)
        return replace(expired, is_erased=not unerased or self.erase())

    def erase(self) -> bool:
        """Erase every byte of deleted rows from the file, and return whether that succeeded.

        `forget` calls this. `forget_expired` repeats it if it failed because another process was reading, the disk was
        full, or this process was killed.
        """
        try:
            self.database.vacuum()
            if not self.database.checkpoint():
                return False
            with self.database.write_transaction() as connection:
                connection.execute("DELETE FROM setting WHERE name = 'unerased'")
        except MemoryUnavailable:
            return False
        return True

    def export(self, person: str | None = None) -> Iterator[str]:
        """Yield the memories that this person may see as JSON lines, or all memories if `person` is None."""
        return export_lines(self.database, person)

    def load_lines(self, lines: Iterable[str]) -> LoadCounts:
        """Add the exported lines that are neither stored nor forgotten.

        Raises `BadLine` and adds nothing if a line is malformed.
        """
        with self.change_facts() as connection:
            return load_lines(connection, self.words, lines.splitlines() if isinstance(lines, str) else lines)

    def reindex(self, most: int = _BATCH_SIZE) -> bool:
        """Index up to `most` rows that are not indexed yet, and return whether there may be more.

        Rows are not indexed after the languages change. Until they are, `recall` finds only the newest of them. Call
        this from a background thread.
        """
        with self.database.write_transaction() as connection:
            return index_pending(connection, self.words, most)

    def merge(self, *, anew: bool) -> bool:
        """Merge a part of the index to speed up searches, and return whether there may be more to merge.

        The first call of a series needs `anew=True`. Call this from a background thread. A disk that is too full for a
        merge is not an error.
        """
        try:
            with self.database.write_transaction() as connection:
                return merge_segments(connection, anew=anew)
        except MemoryUnavailable as err:
            if err.reason != "full":
                raise
            return False

    def statistics(self) -> MemoryStatistics:
        """Return the numbers of memories, and of bytes on disk."""
        with self.database.read_transaction() as connection:
            return MemoryStatistics(
                facts=_count_rows(connection, "fact WHERE replaced_by IS NULL"),
                turns=_count_rows(connection, "turn"),
                summaries=_count_rows(connection, "summary"),
                size=store.get_disk_bytes(self.database.path),
                unerased=has_unerased_rows(connection),
                unindexed=sum(
                    [_count_rows(connection, f"{of} WHERE id <= {unindexed_id(connection, of)}") for of in KINDS]
                ),
            )

    def get_tombstones(self) -> frozenset[Tombstone]:
        """Return the tombstones of memories that were forgotten because a person requested it."""
        with self.database.read_transaction() as connection:
            rows = connection.execute("SELECT kind, id, at FROM tombstone WHERE asked_for").fetchall()
        return frozenset(Tombstone(*row) for row in rows)

    def get_owner_ids(self) -> frozenset[str]:
        """Return the ids of people who own any memory in this file."""
        with self.database.read_transaction() as connection:
            return frozenset(owner for (owner,) in connection.execute(_SELECT_OWNERS))

    def checkpoint(self) -> bool:
        """Move all data into the main database file, so that it can be copied. Return whether that succeeded."""
        return self.database.checkpoint()

    def close(self) -> None:
        """Close the file."""
        self.database.close()


class MemoryAccess(Protocol):
    """Runs work on the memory in a thread. Its coroutines raise MemoryUnavailable while the file cannot be used."""

    def async_allow_file(self) -> None:
        """Let the file be created if there is none yet."""

    async def async_read[Result](self, read: Callable[[Memory], Result], default: Result) -> Result:
        """Return the result of `read`, or `default` if there is no file yet."""
        ...

    async def async_change[Result, *Arguments](
        self, work: Callable[[Memory, *Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Return the result of `work` once its changes are on disk."""
        ...


def _count_rows(connection: sqlite3.Connection, rows: str) -> int:
    count: int = connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
    return count
