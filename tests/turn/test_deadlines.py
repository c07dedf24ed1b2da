"""A model that falls silent is given up; one that is slow but speaks is not."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from custom_components.windowed_conversation.providers.errors import DeadlineExceeded
from custom_components.windowed_conversation.turn.deadlines import Limits, with_idle_timeout


async def ticking(times: int, seconds: float) -> AsyncGenerator[int]:
    for tick in range(times):
        await asyncio.sleep(seconds)
        yield tick


async def heard[E](events: AsyncGenerator[E], seconds: float) -> list[E]:
    async with with_idle_timeout(events, seconds) as heard:
        return [event async for event in heard]


def test_turn_has_two_minutes_and_ten_rounds_of_tools_unless_it_is_said_otherwise() -> None:
    assert Limits() == Limits(fallback_timeout=10, idle_timeout=None, turn=120, tool_iterations=10)


async def test_events_are_passed_on() -> None:
    assert await heard(ticking(3, 0), 5) == [0, 1, 2]


async def test_silence_before_the_first_event_is_an_error() -> None:
    with pytest.raises(DeadlineExceeded):
        await heard(ticking(1, 60), 0.05)


async def test_silence_between_events_is_an_error() -> None:
    async def falls_silent() -> AsyncGenerator[str]:
        yield "word"
        await asyncio.Event().wait()

    async with with_idle_timeout(falls_silent(), 0.05) as events:
        assert await anext(events) == "word"
        with pytest.raises(DeadlineExceeded):
            await anext(events)


async def test_slow_stream_that_is_never_silent_may_take_longer() -> None:
    assert len(await heard(ticking(20, 0.03), 0.5)) == 20


async def test_time_that_the_listener_takes_is_no_silence() -> None:
    taken = []
    async with with_idle_timeout(ticking(3, 0), 0.05) as events:
        async for tick in events:
            await asyncio.sleep(0.1)
            taken.append(tick)

    assert taken == [0, 1, 2]


async def test_silence_begins_when_the_listener_waits_again() -> None:
    async with with_idle_timeout(ticking(2, 0.08), 0.1) as events:
        await anext(events)
        await asyncio.sleep(0.15)

        assert await anext(events) == 1


async def test_silence_after_a_slow_listener_is_an_error() -> None:
    async def falls_silent() -> AsyncGenerator[str]:
        yield "word"
        await asyncio.Event().wait()

    async with with_idle_timeout(falls_silent(), 0.05) as events:
        await anext(events)
        await asyncio.sleep(0.12)
        with pytest.raises(DeadlineExceeded):
            await anext(events)


async def test_silent_stream_is_cancelled() -> None:
    ended = asyncio.Event()

    async def silent() -> AsyncGenerator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        finally:
            ended.set()

    with pytest.raises(DeadlineExceeded):
        await heard(silent(), 0.05)

    assert ended.is_set()


async def test_task_is_not_cancelled_any_more_after_a_silence() -> None:
    with pytest.raises(DeadlineExceeded):
        await heard(ticking(1, 60), 0.05)

    task = asyncio.current_task()
    assert task
    assert not task.cancelling()


async def test_error_that_the_silence_makes_of_a_stream_leaves_the_task_uncancelled() -> None:
    async def breaks_when_cancelled() -> AsyncGenerator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        except asyncio.CancelledError as err:
            raise ValueError("broken") from err

    with pytest.raises(ValueError, match="broken"):
        await heard(breaks_when_cancelled(), 0.05)

    task = asyncio.current_task()
    assert task
    assert not task.cancelling()


async def test_listener_that_leaves_closes_the_stream() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncGenerator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.set()

    async with with_idle_timeout(endless(), 5) as events:
        await anext(events)

    assert ended.is_set()


async def test_cancelled_listener_is_no_deadline() -> None:
    waiting = asyncio.create_task(heard(ticking(1, 60), 50))
    await asyncio.sleep(0)

    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_cancellation_in_the_moment_of_the_deadline_is_no_deadline() -> None:
    task: asyncio.Task[list[int]]

    async def silent() -> AsyncGenerator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        except asyncio.CancelledError:
            # the silence was first, and somebody else wants the end as well
            task.cancel()
            raise

    task = asyncio.create_task(heard(silent(), 0.05))

    with pytest.raises(asyncio.CancelledError):
        await task


async def outlives_its_timeout() -> AsyncGenerator[str]:
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    yield "word"
    await asyncio.Event().wait()


async def test_stream_that_outlives_a_silence_leaves_the_task_uncancelled() -> None:
    async with with_idle_timeout(outlives_its_timeout(), 0.05) as events:
        await anext(events)

        task = asyncio.current_task()
        assert task
        assert not task.cancelling()


async def test_stream_that_outlives_a_silence_is_still_listened_to() -> None:
    async with with_idle_timeout(outlives_its_timeout(), 0.05) as events:
        await anext(events)
        async with asyncio.timeout(1) as waited:
            with pytest.raises(DeadlineExceeded):
                await anext(events)

    assert not waited.expired()


async def test_cancellation_after_a_silence_that_the_stream_outlives_is_no_deadline() -> None:
    begun = asyncio.Event()

    async def listen() -> None:
        async with with_idle_timeout(outlives_its_timeout(), 0.2) as events:
            await anext(events)
            begun.set()
            await anext(events)

    listening = asyncio.create_task(listen())
    await begun.wait()
    await asyncio.sleep(0)

    listening.cancel()

    with pytest.raises(asyncio.CancelledError):
        await listening


async def test_deadline_around_it_is_told_from_a_silence_of_the_same_moment() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await heard(ticking(1, 60), 0.05)

    task = asyncio.current_task()
    assert task
    assert not task.cancelling()


async def test_each_event_may_be_awaited_by_another_task() -> None:
    async def falls_silent() -> AsyncGenerator[int]:
        yield 1
        yield 2
        await asyncio.Event().wait()

    async with with_idle_timeout(falls_silent(), 0.05) as events:

        async def next_event() -> int:
            return await anext(events)

        assert [await asyncio.create_task(next_event()) for _ in range(2)] == [1, 2]
        with pytest.raises(DeadlineExceeded):
            await asyncio.create_task(next_event())


async def test_nothing_is_looked_at_any_more_when_the_stream_was_closed() -> None:
    async with with_idle_timeout(ticking(3, 0), 0.02) as events:
        await anext(events)
        await events.aclose()
    await asyncio.sleep(0.05)

    task = asyncio.current_task()
    assert task
    assert not task.cancelling()


async def test_errors_of_the_stream_stay_as_they_are() -> None:
    async def breaks() -> AsyncGenerator[int]:
        yield 1
        raise ValueError("broken")

    async with with_idle_timeout(breaks(), 5) as events:
        await anext(events)
        with pytest.raises(ValueError, match="broken"):
            await anext(events)
