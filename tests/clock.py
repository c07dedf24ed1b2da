"""Clocks for an event loop whose time does not depend on the speed of the machine."""

import asyncio
from typing import Any, cast, override

# Seconds that a leaping event loop waits for real events before the time leaps.
_GLANCE = 0.001


class IdleClock:
    """A clock that advances only while the event loop is idle, and never by more than the loop waits for.

    Work takes no time on this clock, however long it takes in reality: timers fire in order, and a timer that is due in
    a second fires when the loop has been idle for a second.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Any = loop
        self._now = loop.time()
        self._select = cast("Any", loop)._selector.select

    def start(self) -> None:
        """Make the event loop use this clock."""
        self._loop.time = lambda: self._now
        self._loop._selector.select = self._wait

    def stop(self) -> None:
        """Make the event loop use the real time again."""
        del self._loop.time, self._loop._selector.select

    def _wait(self, timeout: float | None = None) -> Any:
        happened = self._select(timeout)
        if timeout and not happened:
            self._now += timeout
        return happened


class LeapingClock(IdleClock):
    """An idle clock that leaps to the next timer, so that tests do not wait. For tests whose servers run in their loop.

    It does not advance while an executor runs something.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._in_threads = 0
        self._run_in_executor = loop.run_in_executor

    @override
    def start(self) -> None:
        super().start()
        self._loop.run_in_executor = self._counted

    @override
    def stop(self) -> None:
        super().stop()
        del self._loop.run_in_executor

    def _counted(self, *args: Any) -> asyncio.Future[Any]:
        self._in_threads += 1
        future: asyncio.Future[Any] = self._run_in_executor(*args)
        future.add_done_callback(self._one_less)
        return future

    def _one_less(self, _: asyncio.Future[Any]) -> None:
        self._in_threads -= 1

    @override
    def _wait(self, timeout: float | None = None) -> Any:
        happened = self._select(timeout and min(timeout, _GLANCE))
        if timeout and not happened and not self._in_threads:
            self._now += timeout
        return happened
