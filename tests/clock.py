"""An event loop's time without the speed of the machine in it."""

import asyncio
from typing import Any, cast, override

# Seconds that an event loop that leaps waits for events of the machine.
_GLANCE = 0.001


class IdleClock:
    """Time that passes only while an event loop has nothing to do, and never by more than it waits for.

    However long the work takes, here it takes no time: the first timer fires first, and one that is due in a second
    happens when a second was waited for and nothing else has happened in it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Any = loop
        self._now = loop.time()
        self._select = cast("Any", loop)._selector.select

    def start(self) -> None:
        """Have the loop go by this time."""
        self._loop.time = lambda: self._now
        self._loop._selector.select = self._wait

    def stop(self) -> None:
        """Have the loop go by the machine's time again."""
        del self._loop.time, self._loop._selector.select

    def _wait(self, timeout: float | None = None) -> Any:
        happened = self._select(timeout)
        if timeout and not happened:
            self._now += timeout
        return happened


class LeapingClock(IdleClock):
    """Idle time that nobody has to wait for: it leaps to the next timer. For tests whose servers run in their loop.

    It stands still while something runs in an executor.
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

    def _counted(self, *work: Any) -> asyncio.Future[Any]:
        self._in_threads += 1
        future: asyncio.Future[Any] = self._run_in_executor(*work)
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
