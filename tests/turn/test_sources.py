"""The port for what is added to a turn: sources are fetched together, and none holds up a turn or breaks it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
import logging

import pytest

from custom_components.windowed_conversation.turn.sources import Addition, fetch

SECRET = "pelican"
FOREVER = 3600.0


@dataclass(frozen=True)
class Scripted:
    """A source with a scripted result."""

    name: str
    answer: Callable[[], Awaitable[Addition | None]]

    async def fetch(self) -> Addition | None:
        return await self.answer()


def adding(text: str) -> Callable[[], Awaitable[Addition | None]]:
    async def answer() -> Addition | None:
        return Addition((text,), len(text))

    return answer


async def nothing() -> None:
    return None


async def failing() -> None:
    raise ValueError(SECRET)


async def test_all_that_are_in_time_are_there() -> None:
    fetched = await fetch([Scripted("one", adding("a")), Scripted("two", adding("b"))], FOREVER)

    assert fetched.additions == {"one": Addition(("a",), 1), "two": Addition(("b",), 1)}
    assert fetched.failed == ()


async def test_they_are_fetched_together() -> None:
    both = asyncio.Barrier(2)

    async def meets() -> None:
        await both.wait()

    fetched = await fetch([Scripted("one", meets), Scripted("two", meets)], FOREVER)

    assert fetched.failed == ()


async def test_source_that_has_nothing_adds_nothing() -> None:
    fetched = await fetch([Scripted("one", nothing)], FOREVER)

    assert (fetched.additions, fetched.failed) == ({}, ())


async def test_no_sources_are_no_wait() -> None:
    assert (await fetch([], FOREVER)).additions == {}


async def test_source_that_fails_is_omitted_and_its_text_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    fetched = await fetch([Scripted("broken", failing), Scripted("two", adding("b"))], FOREVER)

    assert (list(fetched.additions), fetched.failed) == (["two"], ("broken",))
    assert "continues without the source broken: ValueError" in caplog.text
    assert SECRET not in caplog.text


async def test_source_that_is_late_is_omitted_and_cancelled() -> None:
    ended = asyncio.Event()

    async def late() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    fetched = await fetch([Scripted("late", late), Scripted("two", adding("b"))], 0.0)

    assert (list(fetched.additions), fetched.failed) == (["two"], ("late",))
    await ended.wait()


async def test_source_that_fails_when_it_is_cancelled_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def late() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
            raise ValueError(SECRET)

    await fetch([Scripted("late", late)], 0.0)
    await ended.wait()
    await asyncio.sleep(0)

    assert SECRET not in caplog.text


async def test_turn_that_is_cancelled_cancels_its_sources() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def waits() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    turn = asyncio.create_task(fetch([Scripted("one", waits)], FOREVER))
    await began.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    await ended.wait()


async def test_source_that_cancels_itself_is_omitted() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    assert (await fetch([Scripted("one", cancelled)], FOREVER)).failed == ("one",)
