"""Tests for the fallback agents that are tried if a model does not answer, and when none may be."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import (
    AnswerRefused,
    ContextOverflow,
    RateLimited,
    Unavailable,
)
from custom_components.windowed_conversation.turn.limits import Budget, Pause
from custom_components.windowed_conversation.turn.model import Model, Question
from custom_components.windowed_conversation.turn.routing import Route, RouteDecision, RouteReason
from custom_components.windowed_conversation.turn.turn import run_turn
from custom_components.windowed_conversation.window import Window, WindowPolicy
from demo.model_server import ModelServer
from tests.providers.byte_server import ByteServer, event, text

from .answers import calls, said
from .conftest import Take, provider
from .world import Ear, Home, make_turn


@dataclass
class Elsewhere:
    """A `FallbackAgent` that returns an answer or raises an error."""

    outcome: str | Exception
    agent_id: str = "conversation.elsewhere"

    async def answer(self) -> str:
        """See `FallbackAgent.answer`."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
async def second_server(socket_enabled: None) -> AsyncIterator[ModelServer]:
    async with ModelServer(strict=True) as server:
        yield server


@pytest.fixture
def second(http_client: Any, second_server: ModelServer) -> Model:
    return Model("second", provider(http_client, second_server.url), "scripted", Budget(WindowPolicy()))


@pytest.fixture
def chain(question: Question, second: Model) -> Question:
    return replace(question, fallback_agents=(second,))


HANDS_OVER = {
    "401": RouteReason.AUTH_ERROR,
    "404": RouteReason.MODEL_NOT_FOUND,
    "429": RouteReason.RATE_LIMITED,
    "quota": RouteReason.QUOTA_ERROR,
    "500": RouteReason.UNAVAILABLE,
    "context_overflow": RouteReason.CONTEXT_OVERFLOW,
    "cut_before_headers": RouteReason.UNAVAILABLE,
    "no_answer": RouteReason.DEADLINE_EXCEEDED,
    "malformed_event": RouteReason.BAD_STREAM,
}


@pytest.mark.parametrize(("fault", "reason"), HANDS_OVER.items())
async def test_next_model_answers_for_one_that_fails(
    fault: str, reason: RouteReason, take: Take, chain: Question, model_server: ModelServer
) -> None:
    model_server.fault(fault, after_words=0)

    outcome = await take("my name is Ada", asked=chain, idle_timeout=0.3)

    assert outcome.sent_text == "Nice to meet you, Ada."
    assert outcome.decision == RouteDecision(Route.FALLBACK, reason)
    assert (outcome.answered_by, [failure.agent for failure in outcome.failures]) == ("second", ["own"])


async def test_answer_of_another_is_kept_like_any(
    take: Take, chain: Question, window: Window, model_server: ModelServer
) -> None:
    model_server.fault("500", 1)
    await take("my name is Ada", asked=chain)

    assert (await take("what is my name?", asked=chain)).sent_text == "Your name is Ada."
    assert "route:fallback" in window.exchanges()[0].tags
    assert "route:fallback" not in window.exchanges()[1].tags


async def test_what_another_would_only_repeat_is_told(take: Take, chain: Question, model_server: ModelServer) -> None:
    model_server.fault("content_filter", after_words=0)

    outcome = await take("my name is Ada", asked=chain)

    assert isinstance(outcome.error, AnswerRefused)
    assert outcome.failures == []


async def test_nobody_else_is_asked_after_the_first_token(
    take: Take, chain: Question, model_server: ModelServer, second_server: ModelServer
) -> None:
    model_server.fault("cut_mid_stream")

    outcome = await take("tell me a story about the sea", asked=chain)

    assert isinstance(outcome.error, Unavailable)
    assert outcome.sent_text
    assert second_server.requests == []


async def test_tools_that_ran_are_not_run_again(
    take: Take, chain: Question, reply: Ear, home: Home, model_server: ModelServer
) -> None:
    async def turn_on(name: str) -> None:
        await home.tools["intent__HassTurnOn"](name)
        model_server.fault("500")

    reply.tools = {**home.tools, "intent__HassTurnOn": turn_on}

    outcome = await take("switch on the kitchen light", asked=chain)

    assert home.ran == ["on kitchen light"]
    assert outcome.answered_by == "second"


async def test_smaller_model_is_sent_what_it_can_read(
    take: Take, chain: Question, second: Model, model_server: ModelServer, second_server: ModelServer
) -> None:
    for number in range(8):
        await take(f"remember that the number {number} is lucky", asked=chain)
    small = replace(second, budget=Budget(WindowPolicy(), context_tokens=300, max_answer_tokens=50))
    model_server.fault("500")

    outcome = await take("hello", asked=replace(chain, fallback_agents=(small,)))

    assert outcome.error is None
    assert len(second_server.requests[-1].body["messages"]) < len(model_server.requests[-1].body["messages"])


async def test_small_model_that_helps_out_costs_no_history(
    take: Take, chain: Question, second: Model, window: Window, model_server: ModelServer
) -> None:
    for number in range(8):
        await take(f"remember that the number {number} is lucky", asked=chain)
    small = replace(second, budget=Budget(WindowPolicy(), context_tokens=300, max_answer_tokens=50))
    model_server.fault("500", 1)

    await take("hello", asked=replace(chain, fallback_agents=(small,)))

    assert window.stats().exchange_count == 9
    assert window.stats().evicted_messages == 0


async def test_last_error_is_told_when_nobody_answers(
    take: Take, chain: Question, window: Window, model_server: ModelServer, second_server: ModelServer
) -> None:
    model_server.fault("500")
    second_server.fault("429")

    outcome = await take("hello", asked=chain)

    assert isinstance(outcome.error, RateLimited)
    assert window.exchanges() == ()


async def test_agent_of_another_integration_may_fail(
    take: Take, question: Question, second: Model, model_server: ModelServer
) -> None:
    model_server.fault("500")

    outcome = await take(
        "my name is Ada", asked=replace(question, fallback_agents=(Elsewhere(Unavailable("gone")), second))
    )

    assert outcome.answered_by == "second"
    assert [failure.agent for failure in outcome.failures] == ["own", "conversation.elsewhere"]


async def test_short_pause_is_waited_for_where_nobody_else_is(take: Take, model_server: ModelServer) -> None:
    model_server.fault("429", 1, retry_after=1)

    outcome = await take("my name is Ada", idle_timeout=5.0)

    assert outcome.sent_text == "Nice to meet you, Ada."
    assert len(model_server.requests) == 2


async def test_provider_is_left_alone_for_as_long_as_it_asked(take: Take, model_server: ModelServer) -> None:
    model_server.fault("429", 1, retry_after=60)
    await take("hello")

    outcome = await take("hello")

    assert isinstance(outcome.error, RateLimited)
    assert 50 < (outcome.error.retry_after or 0) <= 60
    assert len(model_server.requests) == 1


async def test_other_is_asked_at_once_while_a_provider_is_left_alone(
    take: Take, chain: Question, model_server: ModelServer
) -> None:
    model_server.fault("429", 1, retry_after=60)
    await take("hello", asked=chain)

    outcome = await take("my name is Ada", asked=chain)

    assert outcome.answered_by == "second"
    assert len(model_server.requests) == 1


async def test_provider_is_asked_again_after_a_minute_whatever_it_asked_for(
    take: Take, question: Question, model_server: ModelServer
) -> None:
    now = [100.0]
    asked = replace(question, model=replace(question.model, pause=Pause(lambda: now[0])))
    model_server.fault("429", 1, retry_after=31_536_000)
    first = await take("hello", asked=asked)
    now[0] += 30
    second = await take("hello", asked=asked)
    now[0] += 30

    third = await take("my name is Ada", asked=asked)

    errors = [outcome.error for outcome in (first, second) if isinstance(outcome.error, RateLimited)]
    assert [error.retry_after for error in errors] == [31_536_000, 31_536_000 - 30]
    assert third.sent_text == "Nice to meet you, Ada."
    assert len(model_server.requests) == 2


def test_pause_that_is_over_says_nothing_of_the_next_one() -> None:
    now = [100.0]
    pause = Pause(lambda: now[0])
    pause.begin(3600)
    now[0] += 61
    pause.begin(5)

    assert (pause.remaining_seconds, pause.requested_seconds) == (5, 5)


def test_pause_never_gets_shorter() -> None:
    now = [100.0]
    pause = Pause(lambda: now[0])
    pause.begin(30)
    pause.begin(5)
    now[0] = 110.0

    assert pause.remaining_seconds == 20


async def test_whole_turn_has_one_deadline(take: Take, chain: Question, model_server: ModelServer) -> None:
    model_server.fault("no_answer")
    loop = asyncio.get_running_loop()
    began = loop.time()

    await take("hello", asked=chain, idle_timeout=5.0, turn_timeout=0.3)

    assert loop.time() - began == pytest.approx(0.3)


async def test_answer_of_a_fallback_agent_is_spoken_without_marks(
    window: Window, reply: Ear, question: Question, model_server: ModelServer
) -> None:
    model_server.fault("500")
    chain = replace(question, is_spoken=True, fallback_agents=(Elsewhere("**Done** 👍"),))
    turn = make_turn(window, "hello", chain, reply)

    await run_turn(turn)

    assert window.messages()[-1].content == "Done"


async def test_default_agent_is_asked_after_all_others_and_the_model_is_awaited(
    take: Take, chain: Question, model_server: ModelServer, second_server: ModelServer
) -> None:
    asked = replace(chain, default_agent=Elsewhere("Turned on the light"))
    model_server.fault("500")
    second_server.fault("429", retry_after=60)

    outcome = await take("my name is Ada", asked=asked)

    assert (outcome.sent_text, outcome.answered_by) == ("Turned on the light", "conversation.elsewhere")
    assert outcome.decision == RouteDecision(Route.FALLBACK, RouteReason.UNAVAILABLE)
    assert [failure.agent for failure in outcome.failures] == ["own", "second"]


async def test_model_is_not_given_up_for_the_default_agent(
    take: Take, question: Question, model_server: ModelServer
) -> None:
    model_server.fault("429", 1, retry_after=5)

    outcome = await take("my name is Ada", asked=replace(question, default_agent=Elsewhere("Turned on the light")))

    assert (outcome.sent_text, outcome.answered_by) == ("Nice to meet you, Ada.", "own")


@pytest.mark.parametrize(("fault", "answer"), [("500", Unavailable("no answer")), ("azure_filter", "Turned on")])
async def test_error_of_the_model_stays_if_the_default_agent_has_no_answer_or_is_not_asked(
    fault: str, answer: str | Exception, take: Take, question: Question, model_server: ModelServer
) -> None:
    model_server.fault(fault, after_words=0)

    outcome = await take("my name is Ada", asked=replace(question, default_agent=Elsewhere(answer)))

    assert isinstance(outcome.error, Unavailable | AnswerRefused)
    assert outcome.run is not None
    assert (outcome.sent_text, outcome.run.last_agent_id, outcome.failures) == ("", "own", [])


OVERFLOW = event({"error": {"message": "x", "type": "invalid_request_error", "code": "context_length_exceeded"}})


@dataclass
class Stranger:
    """An agent of another integration that switches the light on itself; `asked` counts the calls of `answer`."""

    home: Home
    agent_id: str = "conversation.stranger"
    asked: int = 0

    async def answer(self) -> str:
        """See `FallbackAgent.answer`."""
        self.asked += 1
        await self.home.tools["intent__HassTurnOn"](name="lamp")
        return "It is on."


@pytest.fixture
def stranger(home: Home) -> Stranger:
    return Stranger(home)


async def test_agent_of_another_integration_is_not_asked_after_tools_ran(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home, stranger: Stranger
) -> None:
    byte_server.set_reply(calls({"name": "lamp"}))
    byte_server.add_reply(b"")

    outcome = await take("switch on the lamp", asked=replace(byte_question, fallback_agents=(stranger,)))

    assert isinstance(outcome.error, Unavailable)
    assert (home.ran, stranger.asked) == (["on lamp"], 0)


async def test_agent_of_another_integration_is_asked_before_tools_ran(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home, stranger: Stranger
) -> None:
    byte_server.set_reply(b"")

    outcome = await take("switch on the lamp", asked=replace(byte_question, fallback_agents=(stranger,)))

    assert (outcome.sent_text, home.ran) == ("It is on.", ["on lamp"])


async def test_answer_that_overflows_after_its_first_token_is_not_asked_for_again(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(text("Once upon a time"), OVERFLOW)
    byte_server.add_reply(said("A whole story."))

    outcome = await take("tell me a story", asked=byte_question)

    assert isinstance(outcome.error, ContextOverflow)
    assert (outcome.sent_text, len(byte_server.requests)) == ("Once upon a time", 1)
