"""Clocks for an event loop whose time does not depend on the speed of the machine."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast, override

# Seconds that a leaping event loop waits for real events before the time leaps.
_GLANCE = 0.001


class IdleClock:
    """A clock that advances only while the event loop is idle, and never by more than the loop waits for.

    Work takes no time on this clock, however long it takes in reality, and whether it runs in the loop or in an
    executor: timers fire in order, and a timer that is due in a second fires when the loop has been idle for a second.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Any = loop
        self._select = cast("Any", loop)._selector.select
        self._in_threads = 0
        self._run_in_executor = loop.run_in_executor

    def start(self) -> None:
        """Make the event loop use this clock."""
        self._now = self._loop.time()
        self._loop.time = lambda: self._now
        self._loop._selector.select = self._wait
        self._loop.run_in_executor = self._counted

    def stop(self) -> None:
        """Make the event loop use the real time again."""
        del self._loop.time, self._loop._selector.select, self._loop.run_in_executor

    def leap(self) -> None:
        """Leap to the next timer from now on. Until it stops, the clock is a `LeapingClock`."""
        self._loop._selector.select = partial(LeapingClock._wait, self)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Make the event loop use the real time within the context, as a test needs in which a thread is too slow."""
        self.stop()
        yield
        self.start()

    def _counted(self, *args: Any) -> asyncio.Future[Any]:
        self._in_threads += 1
        future: asyncio.Future[Any] = self._run_in_executor(*args)
        future.add_done_callback(self._one_less)
        return future

    def _one_less(self, _: asyncio.Future[Any]) -> None:
        self._in_threads -= 1

    def _wait(self, timeout: float | None = None) -> Any:
        happened = self._select(timeout)
        if timeout and not happened and not self._in_threads:
            self._now += timeout
        return happened


class LeapingClock(IdleClock):
    """An idle clock that leaps to the next timer, so that tests do not wait. Their servers run in the same loop."""

    @override
    def _wait(self: IdleClock, timeout: float | None = None) -> Any:
        happened = self._select(timeout and min(timeout, _GLANCE))
        if timeout and not happened and not self._in_threads:
            self._now += timeout
        return happened
