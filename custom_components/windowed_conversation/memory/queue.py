"""The queue of what waits to be written: bounded, counted, first in, first out."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .errors import MemoryUnavailable
from .memory import Memory
from .records import PastTurn, Summary
from .turn_record import LateRecord, TurnCost, TurnRecord

type Record = PastTurn | Summary | TurnRecord | LateRecord | TurnCost

# the most records that are written with one commit
_BATCH = 100


@dataclass(frozen=True, slots=True, eq=False)
class Job[Result = Any]:
    """Work on the open memory. A `patient` job waits until memory can be used; any other fails at once."""

    work: Callable[[Memory], Result]
    patient: bool
    done: Future[Result] = field(default_factory=Future)

    def run(self, memory: Memory, on_success: Callable[[], None]) -> None:
        """Run the work and set its result or its error. Raises `MemoryUnavailable` if memory cannot be used.

        `on_success` is called before the result is set.
        """
        if not self._begins():
            return
        try:
            result = self.work(memory)
        except MemoryUnavailable:
            raise
        except Exception as err:  # noqa: BLE001 - it is the caller's to handle
            self.done.set_exception(err)
        else:
            on_success()
            self.done.set_result(result)

    def fail(self, error: MemoryUnavailable) -> None:
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
        self._waiting: deque[Record | Job] = deque()
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

    def put(self, item: Record | Job, *, has_ended: bool = False) -> bool:
        """Append an item and return whether it was taken. Records that come too late or find no room are counted."""
        if has_ended or len(self._waiting) >= self._most:
            self.dropped += 1
            return False
        self.accepted += 1
        self._waiting.append(item)
        return True

    def first(self) -> Job | list[Record]:
        """Return the first job, or the records before the next job, as many as one transaction writes."""
        records: list[Record] = []
        for each in islice(self._waiting, _BATCH):
            if isinstance(each, Job):
                return records or each
            records.append(each)
        return records

    def remove_first(self, number: int) -> None:
        """Remove finished items."""
        for _ in range(number):
            self._waiting.popleft()

    def remove_jobs(self, *, patient: bool) -> list[Job]:
        """Remove and return the jobs that are not patient, or with `patient` all jobs."""
        jobs: list[Job] = []
        rest: deque[Record | Job] = deque()
        for each in self._waiting:
            if isinstance(each, Job) and (patient or not each.patient):
                jobs.append(each)
            else:
                rest.append(each)
        self._waiting = rest
        return jobs
