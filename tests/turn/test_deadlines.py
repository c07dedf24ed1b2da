"""A model that falls silent is given up; one that is slow but speaks is not."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from custom_components.windowed_conversation.providers.errors import DeadlineExceeded
from custom_components.windowed_conversation.turn.deadlines import without_silence


async def ticking(times: int, seconds: float) -> AsyncGenerator[int]:
    for tick in range(times):
        await asyncio.sleep(seconds)
        yield tick


async def test_events_are_passed_on() -> None:
    assert [tick async for tick in without_silence(ticking(3, 0), 5)] == [0, 1, 2]


async def test_silence_before_the_first_event_is_an_error() -> None:
    with pytest.raises(DeadlineExceeded):
        await anext(without_silence(ticking(1, 60), 0.05))


async def test_silence_between_events_is_an_error() -> None:
    async def falls_silent() -> AsyncGenerator[str]:
        yield "word"
        await asyncio.Event().wait()

    events = without_silence(falls_silent(), 0.05)

    assert await anext(events) == "word"
    with pytest.raises(DeadlineExceeded):
        await anext(events)


async def test_slow_stream_that_is_never_silent_may_take_longer() -> None:
    assert len([tick async for tick in without_silence(ticking(20, 0.03), 0.5)]) == 20


async def test_time_that_the_listener_takes_is_no_silence() -> None:
    heard = []
    async for tick in without_silence(ticking(3, 0), 0.05):
        await asyncio.sleep(0.1)
        heard.append(tick)

    assert heard == [0, 1, 2]


async def test_silent_stream_is_cancelled() -> None:
    ended = asyncio.Event()

    async def silent() -> AsyncGenerator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        finally:
            ended.set()

    with pytest.raises(DeadlineExceeded):
        await anext(without_silence(silent(), 0.05))

    assert ended.is_set()


async def test_cancelled_listener_is_no_deadline() -> None:
    waiting = asyncio.create_task(anext(without_silence(ticking(1, 60), 50)))
    await asyncio.sleep(0)

    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_errors_of_the_stream_stay_as_they_are() -> None:
    async def breaks() -> AsyncGenerator[int]:
        yield 1
        raise ValueError("broken")

    events = without_silence(breaks(), 5)
    await anext(events)

    with pytest.raises(ValueError, match="broken"):
        await anext(events)
