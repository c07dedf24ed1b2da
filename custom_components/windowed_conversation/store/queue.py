"""The queue of what waits to be written: bounded, counted, first in, first out."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
import sqlite3
from typing import Any

from .errors import StoreUnavailable

# how many records are written with one commit, and the rest of those that were put with them
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Write:
    """A record that is written by a function; `on_written` is called after the commit, in the writing thread."""

    write: Callable[[sqlite3.Connection], object]
    on_written: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True, eq=False)
class Job[Result = Any]:
    """Work on the open store, which fails at once if the store cannot be used."""

    work: Callable[[Any], Result]
    done: Future[Result] = field(default_factory=Future)

    def run(self, opened: object, on_success: Callable[[], None]) -> None:
        """Run the work and set its result or its error. Raises `StoreUnavailable` if the store cannot be used.

        `on_success` is called before the result is set.
        """
        if not self._begins():
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
        if self._begins():
            self.done.set_exception(error)

    def _begins(self) -> bool:
        # a job that is retried is already running
        return self.done.running() or self.done.set_running_or_notify_cancel()


class Queue:
    """Records and jobs. Not thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        # each with whether what follows it may be written by another transaction
        self._waiting: deque[tuple[object, bool]] = deque()
        self.accepted = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def finished(self) -> int:
        """How many items have left the queue."""
        return self.accepted - len(self._waiting)

    @property
    def is_half_full(self) -> bool:
        """Whether the queue should be emptied soon."""
        return len(self._waiting) * 2 >= self._most

    def put(self, *items: object, has_ended: bool = False) -> bool:
        """Append a job, or records of one transaction, and return whether they were taken, which none of them is alone.

        Records that come too late or find no room are counted.
        """
        if has_ended or len(self._waiting) + len(items) > self._most:
            self.dropped += sum(not isinstance(each, Job) for each in items)
            return False
        self.accepted += len(items)
        self._waiting.extend((each, place == len(items)) for place, each in enumerate(items, start=1))
        return True

    def first(self) -> Job | list[object]:
        """Return the first job, or the records before the next job, as many as one transaction writes."""
        records: list[object] = []
        for each, is_last in self._waiting:
            if isinstance(each, Job):
                return records or each
            records.append(each)
            if is_last and len(records) >= _BATCH:
                break
        return records

    def remove_first(self, number: int) -> None:
        """Remove finished items."""
        for _ in range(number):
            self._waiting.popleft()

    def remove_jobs(self) -> list[Job]:
        """Remove and return the jobs."""
        jobs = [each for each, _ in self._waiting if isinstance(each, Job)]
        self._waiting = deque(item for item in self._waiting if not isinstance(item[0], Job))
        return jobs
