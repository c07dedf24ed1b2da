"""Cancels a coroutine at a suspension point of its own, counted from 1, so that each of them can be tried in turn."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

# No turn of a test comes near; without an end, one that is never cancelled would be tried for ever.
_MOST_POINTS = 400


class _CancelledAt:
    """Runs a coroutine in the current task and cancels that at the coroutine's n-th suspension point."""

    def __init__(self, running: Coroutine[Any, Any, Any], point: int) -> None:
        self._running = running
        self._left = point

    @property
    def was_reached(self) -> bool:
        return self._left <= 0

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            try:
                waits_for = self._running.throw(error) if error else self._running.send(None)
            except StopIteration as stop:
                return stop.value
            self._count()
            error = yield from _waiting(waits_for)

    def _count(self) -> None:
        self._left -= 1
        task = asyncio.current_task()
        if task and not self._left:
            # it is taken where the task waits next, which is here
            task.cancel()


def _waiting(waits_for: Any) -> Generator[Any, Any, BaseException | None]:
    try:
        yield waits_for
    except BaseException as err:  # noqa: BLE001 - any error is for the coroutine
        return err
    return None


async def each_suspension_point(start: Callable[[], Coroutine[Any, Any, Any]]) -> AsyncIterator[int]:
    """Start something anew and cancel it at its first suspension point, then at its second, until it has no more.

    Yields the point each time that it is over. Raises its errors, and `AssertionError` when it is never done.
    """
    for point in range(1, _MOST_POINTS):
        cancelled = _CancelledAt(start(), point)

        async def run(cancelled: _CancelledAt = cancelled) -> None:
            await cancelled

        with suppress(asyncio.CancelledError):
            await asyncio.create_task(run())
        yield point
        if not cancelled.was_reached:
            return
    raise AssertionError(f"more than {_MOST_POINTS} suspension points")
