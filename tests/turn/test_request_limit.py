"""Tests for the limit of concurrent requests.

Requests are sent in order, waiting does not count as idle time, and a cancelled wait frees its place in the queue.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import RateLimited
from custom_components.windowed_conversation.turn import limits
from custom_components.windowed_conversation.turn.limits import RequestLimiter
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.state import Turn
from custom_components.windowed_conversation.window import EstimatedCounter, Window, WindowPolicy
from demo.model_server import ModelServer
from tests.waiting import until

from .world import Ear, Home, take_turn

type Start = Callable[..., asyncio.Task[Turn]]


@pytest.fixture
def one_at_a_time(question: Question) -> Question:
    """Return a question for a server that gets only one request at a time."""
    return replace(question, model=replace(question.model, request_limiter=RequestLimiter(1)))


@pytest.fixture
def start(question: Question) -> Start:
    """Return a function that starts a turn in a separate conversation."""

    def start(
        text: str, *, asked: Question | None = None, home: Home | None = None, **limits: Any
    ) -> asyncio.Task[Turn]:
        window = Window(text, WindowPolicy(), EstimatedCounter())
        ear = Ear((home or Home()).tools)
        return asyncio.create_task(take_turn(window, text, asked or question, ear, **limits))

    return start


def asked(server: ModelServer) -> list[str]:
    """Return the questions that the server received, in order."""
    return [request.body["messages"][-1]["content"].rpartition("\n\n")[2] for request in server.requests]


async def test_requests_are_sent_in_the_order_they_came_in(
    start: Start, one_at_a_time: Question, model_server: ModelServer
) -> None:
    texts = [f"my name is Ada{number}" for number in range(20)]

    await asyncio.gather(*(start(text, asked=one_at_a_time) for text in texts))

    assert asked(model_server) == texts


async def test_who_leaves_the_queue_is_not_missed(
    start: Start, one_at_a_time: Question, model_server: ModelServer
) -> None:
    model_server.change(delay=0.05)
    turns = [start(text, asked=one_at_a_time) for text in ("my name is Ada", "my name is Grace", "my name is Mary")]
    await until(lambda: len(model_server.requests) == 1)

    turns[1].cancel()
    await asyncio.wait(turns)

    assert [turn.cancelled() for turn in turns] == [False, True, False]
    assert asked(model_server) == ["my name is Ada", "my name is Mary"]


async def test_request_that_is_broken_off_makes_room_for_the_next(
    start: Start, one_at_a_time: Question, model_server: ModelServer
) -> None:
    model_server.fault("no_answer", 1)
    turns = [start(text, asked=one_at_a_time) for text in ("my name is Ada", "my name is Grace")]
    await until(lambda: len(model_server.requests) == 1)

    turns[0].cancel()

    assert (await turns[1]).sent_text == "Nice to meet you, Grace."


async def test_waiting_for_others_is_no_silence_of_the_server(
    start: Start, one_at_a_time: Question, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "IDLE_TIMEOUT", 0.5)
    model_server.change(delay=0.2)

    turns = [start(f"my name is Ada{number}", asked=one_at_a_time) for number in range(3)]

    assert [outcome.error for outcome in await asyncio.gather(*turns)] == [None] * 3


async def test_server_is_free_for_others_while_tools_run(
    start: Start, one_at_a_time: Question, model_server: ModelServer
) -> None:
    class Slow(Home):
        """A home whose tools never finish."""

        async def _turn_on(self, name: str) -> dict[str, str]:
            self.ran.append(name)
            await asyncio.Event().wait()
            return {}

    home = Slow()
    acting = start("turn on the kitchen light", asked=one_at_a_time, home=home, turn_timeout=3600.0)
    await until(lambda: bool(home.ran))

    outcome = await start("my name is Ada", asked=one_at_a_time, turn_timeout=5.0)
    acting.cancel()

    assert outcome.sent_text == "Nice to meet you, Ada."


async def test_who_waited_does_not_ask_a_server_that_asked_for_a_pause_meanwhile(
    start: Start, one_at_a_time: Question, model_server: ModelServer
) -> None:
    model_server.fault("429", 1, retry_after=3600)

    turns: list[Awaitable[Turn]] = [start(f"my name is Ada{number}", asked=one_at_a_time) for number in range(5)]
    outcomes = await asyncio.gather(*turns)

    assert [type(outcome.error) for outcome in outcomes] == [RateLimited] * 5
    assert len(model_server.requests) == 1
    assert one_at_a_time.model.pause.remaining_seconds <= 60
