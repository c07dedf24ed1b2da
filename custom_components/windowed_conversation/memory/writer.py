"""The thread that writes: it opens the file, commits what is queued, retries what failed, and tells its state."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
import logging
import math
from pathlib import Path
from threading import TIMEOUT_MAX, Condition, Thread
import time
import traceback

from . import file
from .errors import MemoryUnavailable, Reason
from .memory import Memory
from .queue import Job, Queue, Record
from .records import Figures

_LOGGER = logging.getLogger(__name__)

# In seconds. Each failure in a row doubles the pause.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_LONGEST_HOLD = 1_800.0
# A turn leaves three: what is remembered, its record, and its cost.
_MOST_WAITING = 20_000
_DAY = 86_400.0
# Reading the figures reads the whole file: it takes at most this share of the time.
_SHARE = 0.01

# The next try at once may succeed: the file was set aside, or its index emptied.
_MENDED: frozenset[Reason] = frozenset({"closed", "damaged", "index"})
# The open file is still the right one.
_STAYS_OPEN: frozenset[Reason] = frozenset({"full", "index", "locked"})


@dataclass(frozen=True, slots=True)
class State:
    """Why memory is off (None if it is on), where a damaged file is kept, and the figures, or None if not read yet."""

    reason: Reason | None = None
    set_aside: Path | None = None
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Records that are queued, written, dropped because the queue was full, or refused because they cannot be stored.

    `failures` counts failed tries, `error` is the type of the last error, and `written_at` the time of the last commit.
    """

    queued: int = 0
    written: int = 0
    dropped: int = 0
    refused: int = 0
    failures: int = 0
    error: str | None = None
    written_at: float | None = None

    @property
    def lost(self) -> int:
        """How many were not kept."""
        return self.dropped + self.refused


class Writer:
    """Owns a memory. Thread-safe; only `drain`, `hold` and `close` block.

    A missing file is created as soon as there is something to write. In the writing thread, `daily` is called with the
    open memory at the start and every day, and `on_state` with each new state.
    """

    def __init__(
        self,
        path: Path,
        languages: tuple[str, ...],
        *,
        daily: Callable[[Memory], None] = lambda memory: None,
        on_state: Callable[[State], None] = lambda state: None,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self.path = path
        self._languages = languages
        self._on_state = on_state
        self._memory: Memory | None = None
        self._state = State()
        # the condition guards everything below
        self._changed = Condition()
        self._queue = Queue(most_waiting)
        self._upkeep = _Upkeep(daily)
        self._counts = Counts()
        self._failures_in_a_row = 0
        self._paused_until = self._held_until = -math.inf
        self._has_ended = False
        self._thread = Thread(target=self._run, name="windowed_conversation memory", daemon=True)

    @property
    def memory(self) -> Memory | None:
        """The open memory, for reading only, or None if it cannot be used now."""
        return self._memory

    @property
    def state(self) -> State:
        """The current state of the memory."""
        return self._state

    @property
    def counts(self) -> Counts:
        """The counts of the records so far."""
        with self._changed:
            return replace(self._counts, queued=len(self._queue), dropped=self._queue.dropped)

    def start(self) -> None:
        """Open the file if it exists, and start to write."""
        self._thread.start()

    def put(self, record: Record) -> None:
        """Queue a record. Never raises; a record for which there is no room is counted."""
        with self._changed:
            self._queue.put(record, has_ended=self._has_ended)
            self._changed.notify_all()

    def call[Result](self, work: Callable[[Memory], Result], *, patient: bool = False) -> Future[Result]:
        """Queue work on the memory, after everything queued before. Return a future of its result.

        If memory is off, it is tried again at once, and the future fails with `MemoryUnavailable` if that is in vain.
        `patient` work, which changes what is stored, waits instead; it is cancelled if there is no file.
        """
        job = Job(work, patient)
        with self._changed:
            is_held = not patient and self._held_until > time.monotonic()
            is_accepted = not is_held and self._queue.put(job, has_ended=self._has_ended)
            if not patient:
                self._paused_until = -math.inf
            self._changed.notify_all()
        if not is_accepted:
            job.fail(MemoryUnavailable("closed" if self._has_ended else self._state.reason or "locked"))
        return job.done

    def check(self, *, repeat_daily: bool = False) -> None:
        """Have the figures read again, for instance after a read failed, and optionally the daily work repeated."""
        with self._changed:
            self._upkeep.look_now()
            if repeat_daily:
                self._upkeep.repeat()
            self._changed.notify_all()

    def drain(self, timeout: float) -> bool:
        """Wait until everything queued is written, or a try fails. Return whether everything is written."""
        with self._changed:
            self._paused_until = self._held_until = -math.inf
            self._changed.notify_all()
            accepted, failures = self._queue.accepted, self._counts.failures
            self._changed.wait_for(
                lambda: self._queue.finished >= accepted or self._counts.failures > failures, timeout
            )
            return self._queue.finished >= accepted

    def hold(self, timeout: float) -> bool:
        """Move everything into the one file and pause writing until `release`, so that it can be copied.

        Returns whether nothing is left beside the file. The pause ends by itself after half an hour, or when the queue
        is half full.
        """
        if not self.counts.queued and not self.path.exists():
            return self._hold_now()
        job = self.call(lambda memory: memory.checkpoint() and self._hold_now())
        try:
            return job.result(timeout)
        except MemoryUnavailable, TimeoutError:
            job.cancel()
            return False

    def release(self) -> None:
        """Resume writing after `hold`."""
        with self._changed:
            self._held_until = -math.inf
            self._changed.notify_all()

    def close(self, timeout: float) -> bool:
        """Write what is queued, without retries, and close the file. Return whether it was done in time."""
        with self._changed:
            self._has_ended = True
            self._failures_in_a_row = 0
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _hold_now(self) -> bool:
        with self._changed:
            self._held_until = time.monotonic() + _LONGEST_HOLD
        return True

    def _run(self) -> None:
        while self._wait():
            try:
                self._step()
            except Exception as err:  # noqa: BLE001 - whatever it is, the next try may succeed
                self._fail(err)
        self._close_memory()
        with self._changed:
            jobs = self._queue.remove_jobs(patient=True)
        for job in jobs:
            job.fail(MemoryUnavailable("closed"))

    def _wait(self) -> bool:
        """Block until there is something to do. Return False if the thread should end."""
        with self._changed:
            while True:
                now, due_at = time.monotonic(), self._due_at()
                if due_at <= now:
                    return True
                if self._has_ended:
                    return False
                self._changed.wait(min(due_at - now, TIMEOUT_MAX))

    def _due_at(self) -> float:
        if self._has_ended:
            return -math.inf if len(self._queue) and not self._failures_in_a_row else math.inf
        due_at = -math.inf if len(self._queue) else self._upkeep.due_at
        held_until = -math.inf if self._queue.is_half_full else self._held_until
        return max(due_at, self._paused_until, held_until)

    def _step(self) -> None:
        with self._changed:
            first = self._queue.first()
        if isinstance(first, Job) and first.patient and self._has_no_file():
            first.done.cancel()
            self._on_done(1)
        elif isinstance(first, Job):
            first.run(self._opened(), self._recover)
            self._on_done(1)
        elif first:
            self._store(self._opened(), first)
        elif self._has_no_file():
            self._upkeep.postpone()
            self._recover()
        else:
            self._recover(self._upkeep.run(self._opened()))

    def _has_no_file(self) -> bool:
        return self._memory is None and not self.path.exists()

    def _opened(self) -> Memory:
        if self._memory is None:
            self._memory = Memory(self.path, self._languages)
            self._upkeep.on_opened()
        return self._memory

    def _store(self, memory: Memory, records: Sequence[Record]) -> None:
        try:
            memory.add(records)
        except MemoryUnavailable:
            raise
        except Exception as err:  # noqa: BLE001 - one that cannot be stored does not stop the others
            if len(records) > 1:
                for record in records:
                    self._store(memory, (record,))
                return
            self._recover()
            self._on_done(1, refused=1, error=type(err).__name__)
        else:
            self._recover()
            self._on_done(len(records), written=len(records))

    def _recover(self, figures: Figures | None = None) -> None:
        """Set the state to usable, before callers get their results."""
        self._failures_in_a_row, self._paused_until = 0, -math.inf
        self._tell(None, figures or self._state.figures)

    def _on_done(self, number: int, *, written: int = 0, refused: int = 0, error: str | None = None) -> None:
        with self._changed:
            self._queue.remove_first(number)
            counts = self._counts
            self._counts = replace(
                counts,
                written=counts.written + written,
                refused=counts.refused + refused,
                error=error or counts.error,
                written_at=time.time() if written else counts.written_at,
            )
            self._upkeep.on_changed()
            self._changed.notify_all()

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, MemoryUnavailable):
            # not its message, which may quote what was said
            _LOGGER.error("%s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
            error = MemoryUnavailable("fault")
        if error.reason not in _STAYS_OPEN:
            self._close_memory()
        is_mended = error.reason in _MENDED and not self._failures_in_a_row
        if not is_mended:
            self._tell(error.reason, self._state.figures)
        jobs: list[Job] = []
        with self._changed:
            pause = min(_FIRST_PAUSE * 2 ** min(self._failures_in_a_row, 10), _LONGEST_PAUSE)
            self._failures_in_a_row += 1
            self._upkeep.on_opened()
            if not is_mended:
                self._counts = replace(self._counts, failures=self._counts.failures + 1, error=error.reason)
                self._paused_until = time.monotonic() + pause
                jobs = self._queue.remove_jobs(patient=False)
            self._changed.notify_all()
        for job in jobs:
            job.fail(error)

    def _close_memory(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _tell(self, reason: Reason | None, figures: Figures | None) -> None:
        aside = file.set_aside(self.path)
        state = State(reason, aside if aside.exists() else None, figures)
        if state != self._state:
            self._state = state
            self._on_state(state)


class _Upkeep:
    """What is done while the queue is empty, and when: indexing, reading the figures, the daily work.

    Times are seconds on the monotonic clock.
    """

    def __init__(self, daily: Callable[[Memory], None]) -> None:
        self._daily = daily
        self._daily_at = -math.inf
        self._look_at = math.inf
        self._not_before = -math.inf
        self._may_be_unindexed = False

    @property
    def due_at(self) -> float:
        """When the next work is due."""
        return -math.inf if self._may_be_unindexed else min(self._daily_at, self._look_at)

    def on_opened(self) -> None:
        """Handle that the file was opened, and may be another one."""
        self._may_be_unindexed = True
        self._look_at = -math.inf

    def on_changed(self) -> None:
        """Handle that the figures have changed."""
        self._look_at = min(self._look_at, self._not_before)

    def look_now(self) -> None:
        """Make reading the file due now."""
        self._look_at = -math.inf

    def repeat(self) -> None:
        """Make the daily work due now."""
        self._daily_at = -math.inf

    def postpone(self) -> None:
        """Handle that there is no file."""
        self._daily_at, self._look_at, self._may_be_unindexed = time.monotonic() + _DAY, math.inf, False

    def run(self, memory: Memory) -> Figures | None:
        """Do one thing that is due, and return the figures if it read them."""
        if self._may_be_unindexed:
            self._may_be_unindexed = memory.reindex()
            if not self._may_be_unindexed:
                self.on_changed()
            return None
        if self._daily_at <= time.monotonic():
            self._daily_at = time.monotonic() + _DAY
            try:
                self._daily(memory)
            except MemoryUnavailable:
                self.repeat()
                raise
            self.on_changed()
            return None
        began = time.monotonic()
        figures = memory.figures()
        ended = time.monotonic()
        self._look_at, self._not_before = math.inf, ended + (ended - began) / _SHARE
        # many rows were loaded at once
        self._may_be_unindexed = figures.unindexed > 0
        return figures
