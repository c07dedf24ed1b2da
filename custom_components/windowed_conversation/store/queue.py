"""The work of the writer thread: a bounded queue of records and jobs, and upkeep while the queue is empty."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
import math
import sqlite3
import time
from typing import Any

from .file import StoreUnavailable

# How many records a commit writes. It may write more, because records that were queued together are not separated.
_BATCH_RECORDS = 100
# In seconds.
_DAY_SECONDS = 86_400.0
_ERASE_RETRY_SECONDS = 60.0
# In seconds. A part of the index is merged only after this time without a write, so that no turn competes for the disk.
_MERGE_DELAY_SECONDS = 2.0
# Reading the statistics reads the complete file, so it may take at most this share of the time.
_MAX_STATISTICS_TIME_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A record and the function that writes it, with its arguments after the connection.

    The writer thread calls `on_written` after the commit.
    """

    write: Callable[..., object]
    on_written: Callable[[], object] | None = None
    arguments: tuple[Any, ...] = ()

    def run(self, connection: sqlite3.Connection) -> None:
        """Write the record."""
        self.write(connection, *self.arguments)


@dataclass(frozen=True, slots=True, eq=False)
class StoreJob[Result = Any]:
    """Work on the open store, with the arguments that follow the store. Fails at once if the store cannot be used."""

    work: Callable[..., Result]
    arguments: tuple[Any, ...] = ()
    future: Future[Result] = field(default_factory=Future)

    def run(self, store: object, on_success: Callable[[], None]) -> None:
        """Run the work and set its result or its exception. Raises `StoreUnavailable` if the store cannot be used.

        `on_success` is called before the result is set.
        """
        # the future of a retried job is already in the running state
        if not (self.future.running() or self.future.set_running_or_notify_cancel()):
            return
        try:
            result = self.work(store, *self.arguments)
        except StoreUnavailable:
            raise
        except Exception as err:  # noqa: BLE001 - it is the caller's to handle
            self.future.set_exception(err)
        else:
            on_success()
            self.future.set_result(result)

    def fail(self, error: StoreUnavailable) -> None:
        """Set an exception without running the work."""
        if self.future.running() or self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class WriteQueue:
    """A queue of records and jobs. Not thread-safe."""

    def __init__(self, most: int) -> None:
        self.max_items = most
        # each item, and whether the item after it may be written in another transaction
        self.waiting_items: deque[tuple[object, bool]] = deque()
        self.accepted_count = 0
        self.dropped_count = 0

    def put(self, *items: object, has_ended: bool = False) -> bool:
        """Append a job or the records of one transaction, and return whether they were accepted (all of them or none).

        Records are dropped and counted if the queue has ended or has no room for them.
        """
        if has_ended or len(self.waiting_items) + len(items) > self.max_items:
            self.dropped_count += sum([not isinstance(each, StoreJob) for each in items])
            return False
        self.accepted_count += len(items)
        self.waiting_items.extend([(each, place == len(items)) for place, each in enumerate(items, start=1)])
        return True

    def peek_batch(self) -> StoreJob | list[object]:
        """Return the first job, or the records before the next job, as many as one transaction writes."""
        records: list[object] = []
        for each, is_last in self.waiting_items:
            if isinstance(each, StoreJob):
                return records or each
            records.append(each)
            if is_last and len(records) >= _BATCH_RECORDS:
                break
        return records

    def remove_jobs(self) -> list[StoreJob]:
        """Remove all jobs from the queue and return them."""
        jobs = [each for each, _ in self.waiting_items if isinstance(each, StoreJob)]
        self.waiting_items = deque(item for item in self.waiting_items if not isinstance(item[0], StoreJob))
        return jobs


# The open store with all of its rooms, which is a `Memory`. Its methods raise `StoreUnavailable`.
type OpenStore = Any


class UpkeepSchedule:
    """Decides which upkeep is due. Times are seconds of the monotonic clock."""

    def __init__(self, daily: Callable[[OpenStore], None]) -> None:
        self._daily_work = daily
        self._daily_work_at = -math.inf
        self._look_at = math.inf
        self._not_before = -math.inf
        self._erase_at = self._merge_at = math.inf
        self._may_be_unindexed = False

    @property
    def due_at(self) -> float:
        """When the next upkeep is due."""
        if self._may_be_unindexed:
            return -math.inf
        return min(self._daily_work_at, self._look_at, self._erase_at, self._merge_at)

    def on_opened(self) -> None:
        """Schedule indexing and reading the statistics, because the opened file may be a new one."""
        self._may_be_unindexed = True
        self._look_at = -math.inf

    def on_changed(self) -> None:
        """Schedule reading the statistics, because they have changed, and postpone merging."""
        self._look_at = min(self._look_at, self._not_before)
        if self._merge_at < math.inf:
            self._merge_at = time.monotonic() + _MERGE_DELAY_SECONDS

    def run_daily_work_soon(self) -> None:
        """Make the daily work due now."""
        self._daily_work_at = -math.inf

    def postpone_all(self) -> None:
        """Postpone all upkeep, because there is no file."""
        self._daily_work_at, self._look_at, self._may_be_unindexed = time.monotonic() + _DAY_SECONDS, math.inf, False
        self._erase_at = self._merge_at = math.inf

    def run_next(self, store: OpenStore) -> Any:
        """Do one piece of upkeep that is due, and return the statistics if it has read them."""
        if self._may_be_unindexed:
            self._may_be_unindexed = store.reindex()
            if not self._may_be_unindexed:
                self.on_changed()
        elif self._daily_work_at <= time.monotonic():
            self._daily_work_at = time.monotonic() + _DAY_SECONDS
            try:
                self._daily_work(store)
            except StoreUnavailable:
                self.run_daily_work_soon()
                raise
            self._merge_at = time.monotonic() + _MERGE_DELAY_SECONDS if store.merge(anew=True) else math.inf
            self.on_changed()
        elif self._merge_at <= time.monotonic():
            self._merge_at = time.monotonic() if store.merge(anew=False) else math.inf
        elif self._erase_at <= time.monotonic():
            self._erase_at = math.inf
            store.erase()
            self._look_at = -math.inf
        else:
            return self._read_statistics(store)
        return None

    def _read_statistics(self, store: OpenStore) -> Any:
        began = time.monotonic()
        statistics = store.statistics()
        ended = time.monotonic()
        self._look_at, self._not_before = math.inf, ended + (ended - began) / _MAX_STATISTICS_TIME_SHARE
        if statistics.unerased and self._erase_at == math.inf:
            self._erase_at = ended + _ERASE_RETRY_SECONDS
        return statistics
