"""The work of the thread that writes: a bounded queue of records and jobs, and the upkeep while it is empty."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
import math
import sqlite3
import time
from typing import Any

from .file import StoreUnavailable

# how many records are written with one commit, and the rest of those that were put with them
_BATCH = 100
# In seconds.
_DAY = 86_400.0
_ERASE_AGAIN = 60.0
# How long nothing was written before a part of the index is merged, so that no turn shares the disk with that.
_QUIET = 2.0
# Reading the statistics reads the whole file: it takes at most this share of the time.
_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Write:
    """A record that is written by a function; `on_written` is called after the commit, in the writing thread."""

    write: Callable[[sqlite3.Connection], object]
    on_written: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Job[Result = Any]:
    """Work on the open store, which fails at once if the store cannot be used."""

    work: Callable[[Any], Result]
    done: Future[Result] = field(default_factory=Future)

    def run(self, opened: object, on_success: Callable[[], None]) -> None:
        """Run the work and set its result or its error. Raises `StoreUnavailable` if the store cannot be used.

        `on_success` is called before the result is set.
        """
        # a job that is retried is already running
        if not (self.done.running() or self.done.set_running_or_notify_cancel()):
            return
        try:
            result = self.work(opened)
        except StoreUnavailable:
            raise
        except Exception as err:  # noqa: BLE001 - it is the caller's to handle
            self.done.set_exception(err)
        else:
            on_success()
            self.done.set_result(result)

    def fail(self, error: StoreUnavailable) -> None:
        """Set an error without running the work."""
        if self.done.running() or self.done.set_running_or_notify_cancel():
            self.done.set_exception(error)


class Queue:
    """Records and jobs. Not thread-safe."""

    def __init__(self, most: int) -> None:
        self.most = most
        # each with whether the next item may be written by another transaction
        self.waiting: deque[tuple[object, bool]] = deque()
        self.accepted = 0
        self.dropped = 0

    def put(self, *items: object, has_ended: bool = False) -> bool:
        """Append a job, or records of one transaction, and return whether they were taken, which none of them is alone.

        Records that come too late or find no room are counted.
        """
        if has_ended or len(self.waiting) + len(items) > self.most:
            self.dropped += sum([not isinstance(each, Job) for each in items])
            return False
        self.accepted += len(items)
        self.waiting.extend([(each, place == len(items)) for place, each in enumerate(items, start=1)])
        return True

    def first(self) -> Job | list[object]:
        """Return the first job, or the records before the next job, as many as one transaction writes."""
        records: list[object] = []
        for each, is_last in self.waiting:
            if isinstance(each, Job):
                return records or each
            records.append(each)
            if is_last and len(records) >= _BATCH:
                break
        return records

    def remove_first(self, number: int) -> None:
        """Remove finished items."""
        for _ in range(number):
            self.waiting.popleft()

    def remove_jobs(self) -> list[Job]:
        """Remove and return the jobs."""
        jobs = [each for each, _ in self.waiting if isinstance(each, Job)]
        self.waiting = deque(item for item in self.waiting if not isinstance(item[0], Job))
        return jobs


# The open store with all of its rooms. It can `add` records in one transaction, `reindex` and `merge` a part of its
# indexes, return its `statistics`, `erase` the bytes of deleted rows, `checkpoint` and `close`; each raises
# `StoreUnavailable`. It has the number of `rows_set_aside`.
type OpenStore = Any


class Upkeep:
    """Decides which work is due. Times are seconds on the monotonic clock."""

    def __init__(self, daily: Callable[[OpenStore], None]) -> None:
        self._daily = daily
        self._daily_at = -math.inf
        self._look_at = math.inf
        self._not_before = -math.inf
        self._erase_at = self._merge_at = math.inf
        self._may_be_unindexed = False

    @property
    def due_at(self) -> float:
        """When the next work is due."""
        if self._may_be_unindexed:
            return -math.inf
        return min(self._daily_at, self._look_at, self._erase_at, self._merge_at)

    def on_opened(self) -> None:
        """Handle that the file was opened, and may be another one."""
        self._may_be_unindexed = True
        self._look_at = -math.inf

    def on_changed(self) -> None:
        """Handle that the statistics have changed."""
        self._look_at = min(self._look_at, self._not_before)
        if self._merge_at < math.inf:
            self._merge_at = time.monotonic() + _QUIET

    def read_statistics_soon(self) -> None:
        """Make reading the statistics due now."""
        self._look_at = -math.inf

    def repeat(self) -> None:
        """Make the daily work due now."""
        self._daily_at = -math.inf

    def postpone(self) -> None:
        """Handle that there is no file."""
        self._daily_at, self._look_at, self._may_be_unindexed = time.monotonic() + _DAY, math.inf, False
        self._erase_at = self._merge_at = math.inf

    def run(self, opened: OpenStore) -> Any:
        """Do one thing that is due, and return the statistics if it read them."""
        if self._may_be_unindexed:
            self._may_be_unindexed = opened.reindex()
            if not self._may_be_unindexed:
                self.on_changed()
        elif self._daily_at <= time.monotonic():
            self._daily_at = time.monotonic() + _DAY
            try:
                self._daily(opened)
            except StoreUnavailable:
                self.repeat()
                raise
            self._merge_at = time.monotonic() + _QUIET if opened.merge(anew=True) else math.inf
            self.on_changed()
        elif self._merge_at <= time.monotonic():
            self._merge_at = time.monotonic() if opened.merge(anew=False) else math.inf
        elif self._erase_at <= time.monotonic():
            self._erase_at = math.inf
            opened.erase()
            self.read_statistics_soon()
        else:
            return self._read(opened)
        return None

    def _read(self, opened: OpenStore) -> Any:
        began = time.monotonic()
        statistics = opened.statistics()
        ended = time.monotonic()
        self._look_at, self._not_before = math.inf, ended + (ended - began) / _SHARE
        # many rows were loaded at once
        self._may_be_unindexed = statistics.unindexed > 0
        if statistics.unerased and self._erase_at == math.inf:
            self._erase_at = ended + _ERASE_AGAIN
        return statistics
