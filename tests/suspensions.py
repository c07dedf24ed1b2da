"""Cancels a coroutine at each of its suspension points in turn, counted from 1."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

# A limit, because a coroutine that never ends would be retried forever. No turn in a test has nearly as many points.
_MAX_POINTS = 400


class _CancelAtPoint:
    """Runs a coroutine in the current task, and cancels the task at the n-th suspension point of the coroutine."""

    def __init__(self, running: Coroutine[Any, Any, Any], point: int) -> None:
        self._coroutine = running
        self._left = point

    @property
    def was_reached(self) -> bool:
        return self._left <= 0

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            try:
                waits_for = self._coroutine.throw(error) if error else self._coroutine.send(None)
            except StopIteration as stop:
                return stop.value
            self._count()
            error = yield from _waiting(waits_for)

    def _count(self) -> None:
        self._left -= 1
        task = asyncio.current_task()
        if task and not self._left:
            # the cancellation takes effect at the next point at which the task waits, which is this one
            task.cancel()


def _waiting(awaited: Any) -> Generator[Any, Any, BaseException | None]:
    try:
        yield awaited
    except BaseException as err:  # noqa: BLE001 - any error is for the coroutine
        return err
    return None


async def cancel_at_each_point(start: Callable[[], Coroutine[Any, Any, Any]]) -> AsyncIterator[int]:
    """Start a coroutine repeatedly, and cancel it at its first suspension point, then at the second, and so on.

    Yields the number of the point after each attempt, and stops when the coroutine ends before that point. Raises the
    errors of the coroutine, and `AssertionError` after too many points.
    """
    for point in range(1, _MAX_POINTS):
        cancelled = _CancelAtPoint(start(), point)

        async def run(cancelled: _CancelAtPoint = cancelled) -> None:
            await cancelled

        with suppress(asyncio.CancelledError):
            await asyncio.create_task(run())
        yield point
        if not cancelled.was_reached:
            return
    raise AssertionError(f"more than {_MAX_POINTS} suspension points")
