"""An end of Home Assistant's executor in which no thread is interrupted while it ends by itself.

The workers of an executor end one after another: each wakes the next one. Home Assistant interrupts a worker that has
not ended after its share of a second, which is 16 ms with 64 workers. On a busy machine, that breaks the chain, and the
workers behind it stay.
"""

from collections.abc import Iterator
from contextlib import contextmanager
import time
from unittest.mock import patch

from homeassistant.util.executor import InterruptibleThreadPoolExecutor

_JOIN_SECONDS = 30.0


@contextmanager
def join_before_interrupting() -> Iterator[None]:
    """Give the workers of each executor half a minute before Home Assistant interrupts those that are left."""
    interrupt = InterruptibleThreadPoolExecutor.join_threads_or_timeout

    def join(executor: InterruptibleThreadPoolExecutor) -> None:
        ends_at = time.monotonic() + _JOIN_SECONDS
        for thread in set(executor._threads):
            thread.join(max(0.0, ends_at - time.monotonic()))
        interrupt(executor)

    with patch.object(InterruptibleThreadPoolExecutor, "join_threads_or_timeout", join):
        yield
