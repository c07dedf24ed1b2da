"""The writer thread: it opens the file, commits and retries queued records, and publishes its state."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
import logging
import math
from pathlib import Path
from threading import TIMEOUT_MAX, Condition, Thread
import time
import traceback
from typing import Any

from . import file
from .file import StoreUnavailable, UnavailableReason
from .queue import OpenStore, StoreJob, UpkeepSchedule, WriteJob, WriteQueue

_LOGGER = logging.getLogger(__name__)

# In seconds. Each consecutive failure doubles the pause.
_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 60.0
_MAX_HOLD_SECONDS = 1_800.0
# A turn queues about five records: the conversation, the memory, the turn, the totals, and the cost.
_MAX_QUEUED_RECORDS = 20_000

# Reasons after which an immediate retry may succeed, because the file was set aside or its index was emptied.
_RETRYABLE_REASONS: frozenset[UnavailableReason] = frozenset({"closed", "damaged", "index"})
# Reasons that do not require the file to be opened again.
_NON_CLOSING_REASONS: frozenset[UnavailableReason] = frozenset({"full", "index", "locked"})


@dataclass(frozen=True, slots=True)
class StoreState:
    """The reason why the store is off, the path of a damaged file, and the statistics (None until read).

    `rows_set_aside` is the number of damaged rows, which are not used.
    """

    reason: UnavailableReason | None = None
    damaged_path: Path | None = None
    rows_set_aside: int = 0
    statistics: Any = None


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """Numbers of records queued, written, dropped by a full queue, or refused because they could not be stored."""

    queued: int = 0
    rows_written: int = 0
    dropped: int = 0
    refused: int = 0
    # The number of failed attempts to write.
    failures: int = 0
    # The class of the last error.
    error: str | None = None
    # The time of the last commit, in seconds since the epoch.
    written_at: float | None = None


class StoreWriter[Opened: OpenStore]:
    """Owns a store and its writer thread. Thread-safe; only `drain`, `pause_writing` and `close` block.

    All callbacks run in the writer thread.
    """

    def __init__(
        self,
        path: Path,
        open_file: Callable[[Path], Opened],
        *,
        daily: Callable[[Opened], None] = file.do_nothing,
        on_opened: Callable[[Opened], None] = file.do_nothing,
        on_state: Callable[[StoreState], None] = file.do_nothing,
        most_waiting: int = _MAX_QUEUED_RECORDS,
    ) -> None:
        self.path = path
        # While this is False, no file is created, and records without a file are dropped.
        self.may_create = True
        # Opens or creates the file, when there is something to write.
        self._open_file = open_file
        # Called with the open store after each opening.
        self._on_opened = on_opened
        # Called with each new state.
        self._on_state = on_state
        # for reading only; None while the store cannot be used
        self.open_store: Opened | None = None
        self.state = StoreState()
        self._damaged_path = file.get_damaged_path(path)
        # the condition guards everything below
        self._condition = Condition()
        self._queue = WriteQueue(most_waiting)
        # Calls `daily` with the open store at the start and every day.
        self._upkeep = UpkeepSchedule(daily)
        self._counts = RecordCounts()
        self._consecutive_failures = 0
        self._paused_until = self._held_until = -math.inf
        self._has_ended = False
        self._thread = Thread(target=self._run, name="windowed_conversation store", daemon=True)

    @property
    def counts(self) -> RecordCounts:
        """The current counts of records."""
        with self._condition:
            return replace(self._counts, queued=len(self._queue.waiting_items), dropped=self._queue.dropped_count)

    def start(self) -> None:
        """Start the writer thread, which opens the file if it exists."""
        self._thread.start()

    def put(self, *records: object) -> None:
        """Queue records, which are written together. Never raises; counts records that do not fit in the queue."""
        with self._condition:
            self._queue.put(*records, has_ended=self._has_ended)
            self._condition.notify_all()

    def submit[Result, *Arguments](
        self, work: Callable[[Opened, *Arguments], Result], *arguments: *Arguments
    ) -> Future[Result]:
        """Queue work on the store after everything queued before, and return a future of its result.

        The store is the first argument of `work`.

        If the store is off, it is retried immediately. The future fails with `StoreUnavailable` if that does not
        succeed.
        """
        job = StoreJob(work, arguments)
        with self._condition:
            is_held = self._held_until > time.monotonic()
            is_accepted = not is_held and self._queue.put(job, has_ended=self._has_ended)
            self._paused_until = -math.inf
            self._condition.notify_all()
        if not is_accepted:
            reason: UnavailableReason = "backup" if is_held else self.state.reason or "locked"
            job.fail(StoreUnavailable("closed" if self._has_ended else reason))
        return job.future

    def request_upkeep(self, *, repeat_daily: bool = False) -> None:
        """Request new statistics, for example after a read failed, and optionally a repetition of the daily work."""
        with self._condition:
            self._upkeep.on_opened()
            if repeat_daily:
                self._upkeep.run_daily_work_soon()
            self._condition.notify_all()

    def drain(self, timeout: float) -> bool:
        """Wait until everything queued is written or an attempt fails. Return whether everything is written."""
        with self._condition:
            self._paused_until = self._held_until = -math.inf
            self._condition.notify_all()
            queue, accepted, failures = self._queue, self._queue.accepted_count, self._counts.failures
            self._condition.wait_for(
                lambda: queue.accepted_count - len(queue.waiting_items) >= accepted or self._counts.failures > failures,
                timeout,
            )
            return queue.accepted_count - len(queue.waiting_items) >= accepted

    def pause_writing(self, timeout: float) -> bool:
        """Move all data into the main file and pause writing until `resume_writing`, so that the file can be copied.

        Returns whether all data is in the main file. The pause ends automatically after half an hour, or when the queue
        is half full.
        """
        if not self.counts.queued and not self.path.exists():
            return self._hold_now()
        job = self.submit(lambda opened: opened.checkpoint() and self._hold_now())
        try:
            return job.result(timeout)
        except StoreUnavailable, TimeoutError:
            job.cancel()
            return False

    def resume_writing(self) -> None:
        """Resume writing after `pause_writing`."""
        with self._condition:
            self._held_until = -math.inf
            self._condition.notify_all()

    def close(self, timeout: float) -> bool:
        """Write the queue without retries, and close the file. Return whether that ended within the timeout."""
        with self._condition:
            self._has_ended = True
            self._consecutive_failures = 0
            self._condition.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _hold_now(self) -> bool:
        with self._condition:
            self._held_until = time.monotonic() + _MAX_HOLD_SECONDS
        return True

    def _run(self) -> None:
        while self._wait_for_work():
            try:
                self._process_next()
            except Exception as err:  # noqa: BLE001 - the next try may succeed
                self._handle_failure(err)
        self._close_file()
        with self._condition:
            jobs = self._queue.remove_jobs()
        for job in jobs:
            job.fail(StoreUnavailable("closed"))

    def _wait_for_work(self) -> bool:
        """Block until there is something to do. Return False if the thread should end."""
        with self._condition:
            while True:
                now, number = time.monotonic(), len(self._queue.waiting_items)
                if self._has_ended:
                    return number > 0 and not self._consecutive_failures
                due_at = max(-math.inf if number else self._upkeep.due_at, self._paused_until)
                if number * 2 < self._queue.max_items:
                    due_at = max(due_at, self._held_until)
                if due_at <= now:
                    return True
                self._condition.wait(min(due_at - now, TIMEOUT_MAX))

    def _process_next(self) -> None:
        with self._condition:
            first = self._queue.peek_batch()
        has_file = self.open_store is not None or self.path.exists()
        if isinstance(first, StoreJob):
            self._run_job(first, needs_no_file=not has_file and not self.may_create)
        elif first and not has_file and not self.may_create:
            self._on_items_done(first)
        elif first:
            self._store_records(self._open_store(), first)
        elif not has_file:
            self._upkeep.postpone_all()
            self._mark_usable()
        else:
            self._mark_usable(self._upkeep.run_next(self._open_store()))

    def _run_job(self, job: StoreJob, *, needs_no_file: bool) -> None:
        try:
            job.run(self._open_store(), self._mark_usable)
        finally:
            if needs_no_file:
                self._close_file()
                file.delete_file(self.path)
        self._on_items_done([job])

    def _open_store(self) -> Opened:
        if self.open_store is None:
            self.open_store = self._open_file(self.path)
            self._upkeep.on_opened()
            self._on_opened(self.open_store)
        return self.open_store

    def _store_records(self, store: Opened, records: Sequence[object]) -> None:
        try:
            store.add(records)
        except Exception as err:
            if isinstance(err, StoreUnavailable) and err.reason != "fault":
                raise
            # one record that cannot be stored must not prevent the storage of the others
            if len(records) > 1:
                for record in records:
                    self._store_records(store, (record,))
                return
            self._mark_usable()
            self._on_items_done(records, refused=1, error=type(err).__name__)
        else:
            self._mark_usable()
            self._on_items_done(records, rows_written=len(records))

    def _mark_usable(self, statistics: Any = None) -> None:
        """Mark the store as usable. Called before callers get their results."""
        self._consecutive_failures, self._paused_until = 0, -math.inf
        self._set_state(None, statistics or self.state.statistics)

    def _on_items_done(
        self, items: Sequence[object], *, rows_written: int = 0, refused: int = 0, error: str | None = None
    ) -> None:
        # before the items leave the queue, so that a caller of `drain` finds the effects of `WriteJob.on_written`
        for item in items:
            if isinstance(item, WriteJob) and item.on_written is not None and not refused:
                item.on_written()
        with self._condition:
            for _ in items:
                self._queue.waiting_items.popleft()
            counts = self._counts
            self._counts = replace(
                counts,
                rows_written=counts.rows_written + rows_written,
                refused=counts.refused + refused,
                error=error or counts.error,
                written_at=time.time() if rows_written else counts.written_at,
            )
            self._upkeep.on_changed()
            self._condition.notify_all()

    def _handle_failure(self, error: Exception) -> None:
        if not isinstance(error, StoreUnavailable):
            error = StoreUnavailable("fault").with_traceback(error.__traceback__)
        if error.reason == "fault":
            # the message is not logged, because it may quote stored text
            _LOGGER.error("The store failed\n%s", "".join(traceback.format_tb(error.__traceback__)))
        if error.reason not in _NON_CLOSING_REASONS:
            self._close_file()
        is_mended = error.reason in _RETRYABLE_REASONS and not self._consecutive_failures
        if not is_mended:
            self._set_state(error.reason, self.state.statistics)
        jobs: list[StoreJob] = []
        with self._condition:
            pause = min(_FIRST_PAUSE_SECONDS * 2 ** min(self._consecutive_failures, 10), _MAX_PAUSE_SECONDS)
            self._consecutive_failures += 1
            self._upkeep.on_opened()
            if not is_mended:
                self._counts = replace(self._counts, failures=self._counts.failures + 1, error=error.reason)
                self._paused_until = time.monotonic() + pause
                jobs = self._queue.remove_jobs()
            self._condition.notify_all()
        for job in jobs:
            job.fail(error)

    def _close_file(self) -> None:
        if self.open_store is not None:
            self.open_store.close()
            self.open_store = None

    def _set_state(self, reason: UnavailableReason | None, statistics: Any) -> None:
        opened = self.open_store if reason is None else None
        rows = opened.rows_set_aside if opened is not None else self.state.rows_set_aside
        state = StoreState(reason, self._damaged_path if self._damaged_path.exists() else None, rows, statistics)
        if state != self.state:
            self.state = state
            self._on_state(state)
