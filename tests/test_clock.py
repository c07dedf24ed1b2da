"""Tests for the clock that advances only while an event loop is idle."""

import asyncio
from collections.abc import Iterator
import time

import pytest

from .clock import IdleClock


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        clock = IdleClock(runner.get_loop())
        clock.start()
        yield runner
        clock.stop()


def test_what_is_waited_for_is_what_passes(runner: asyncio.Runner) -> None:
    async def waited() -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(0.03)
        return asyncio.get_running_loop().time() - began

    assert runner.run(waited()) == pytest.approx(0.03)


def test_work_takes_no_time(runner: asyncio.Runner) -> None:
    async def work() -> None:
        for _ in range(10):
            await asyncio.sleep(0.002)
            time.sleep(0.01)  # noqa: ASYNC251 -- a machine that is slow

    async def works_in_time() -> None:
        async with asyncio.timeout(0.05):
            await work()

    runner.run(works_in_time())


def test_what_is_due_first_happens_first_however_late_it_is(runner: asyncio.Runner) -> None:
    happened = list[str]()

    async def both() -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(0.01, happened.append, "first")
        loop.call_later(0.01, loop.call_later, 0.01, happened.append, "second")
        loop.call_later(0.03, happened.append, "third")
        loop.call_later(0.03, done.set)
        time.sleep(0.1)  # noqa: ASYNC251 -- a machine that is slow
        await done.wait()

    runner.run(both())

    assert happened == ["first", "second", "third"]
