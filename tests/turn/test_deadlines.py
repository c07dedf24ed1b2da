"""Tests for timeouts: a model that sends nothing is abandoned; one that is slow but sends something is not."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from custom_components.windowed_conversation.providers.errors import DeadlineExceeded
from custom_components.windowed_conversation.turn.attempts import IdleTimer
from custom_components.windowed_conversation.turn.limits import DEFAULT_TURN_TIMEOUT


@pytest.fixture
async def pulse() -> IdleTimer:
    """Return the `IdleTimer` of a server that has begun to answer, with an idle timeout of 0.05 seconds."""
    pulse = IdleTimer(0.05)
    pulse.record_activity()
    return pulse


async def iter_ticks(times: int, seconds: float) -> AsyncGenerator[int]:
    for tick in range(times):
        await asyncio.sleep(seconds)
        yield tick


async def yield_then_hang() -> AsyncGenerator[str]:
    yield "word"
    await asyncio.Event().wait()


def is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or bool(task.cancelling())


def test_turn_has_two_minutes_unless_it_is_said_otherwise() -> None:
    assert DEFAULT_TURN_TIMEOUT == 120


async def test_events_are_passed_on_up_to_the_end(pulse: IdleTimer) -> None:
    events = iter_ticks(2, 0)

    assert [await pulse.next_event(events) for _ in range(3)] == [0, 1, None]


async def test_silence_is_an_error_that_ends_the_stream_and_leaves_the_task_uncancelled(pulse: IdleTimer) -> None:
    events = yield_then_hang()
    assert await pulse.next_event(events) == "word"

    with pytest.raises(DeadlineExceeded):
        await pulse.next_event(events)

    assert await anext(events, None) is None
    assert not is_cancelled()


async def test_server_that_has_not_begun_to_answer_is_not_silent() -> None:
    assert await IdleTimer(0.05).next_event(iter_ticks(1, 0.2)) == 0


async def test_signs_of_life_keep_a_stream_alive(pulse: IdleTimer) -> None:
    async def alive() -> AsyncGenerator[str]:
        for _ in range(10):
            await asyncio.sleep(0.03)
            pulse.record_activity()
        yield "word"

    assert await pulse.next_event(alive()) == "word"


async def test_time_that_the_listener_takes_is_no_silence(pulse: IdleTimer) -> None:
    events = iter_ticks(2, 0.03)
    await pulse.next_event(events)
    await asyncio.sleep(0.1)

    assert await pulse.next_event(events) == 1


async def test_error_that_the_silence_makes_of_a_stream_leaves_the_task_uncancelled(pulse: IdleTimer) -> None:
    async def breaks_when_cancelled() -> AsyncGenerator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        except asyncio.CancelledError as err:
            raise ValueError("broken") from err

    with pytest.raises(ValueError, match="broken"):
        await pulse.next_event(breaks_when_cancelled())

    assert not is_cancelled()


async def test_sign_of_life_of_a_stream_that_is_given_up_changes_nothing(pulse: IdleTimer) -> None:
    async def speaks_when_cancelled() -> AsyncGenerator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        finally:
            pulse.record_activity()

    with pytest.raises(DeadlineExceeded):
        await pulse.next_event(speaks_when_cancelled())


async def test_timeout_of_the_stream_itself_is_no_silence(pulse: IdleTimer) -> None:
    async def times_out() -> AsyncGenerator[int]:
        raise TimeoutError("of its own")
        yield 1

    with pytest.raises(TimeoutError, match="of its own"):
        await pulse.next_event(times_out())


async def test_cancelled_listener_is_no_deadline() -> None:
    waiting = asyncio.create_task(IdleTimer(50).next_event(iter_ticks(1, 60)))
    await asyncio.sleep(0)

    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_cancellation_in_the_moment_of_the_deadline_is_no_deadline(pulse: IdleTimer) -> None:
    task: asyncio.Task[int | None]

    async def silent() -> AsyncGenerator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        except asyncio.CancelledError:
            # the idle timeout came first, and another task cancels at the same moment
            task.cancel()
            raise

    task = asyncio.create_task(pulse.next_event(silent()))

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_stream_that_outlives_a_silence_is_still_listened_to(pulse: IdleTimer) -> None:
    async def outlives_its_timeout() -> AsyncGenerator[str]:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        yield "word"
        await asyncio.Event().wait()

    events = outlives_its_timeout()

    assert await pulse.next_event(events) == "word"
    assert not is_cancelled()
    with pytest.raises(DeadlineExceeded):
        await pulse.next_event(events)


async def test_deadline_around_it_is_told_from_a_silence_of_the_same_moment(pulse: IdleTimer) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await pulse.next_event(iter_ticks(1, 60))

    assert not is_cancelled()


async def test_each_event_may_be_awaited_by_another_task(pulse: IdleTimer) -> None:
    events = yield_then_hang()

    assert await asyncio.create_task(pulse.next_event(events)) == "word"
    with pytest.raises(DeadlineExceeded):
        await asyncio.create_task(pulse.next_event(events))
