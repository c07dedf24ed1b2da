"""An event loop's time without the speed of the machine in it."""

import asyncio
from typing import Any, cast


class IdleClock:
    """Time that passes only while an event loop has nothing to do, and never by more than it waits for.

    However long the work takes, here it takes no time: what is due first happens first, and what is due in a second
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
