"""Tests for the record of a turn's requests: each request is recorded once, with its result."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import AnswerDone, RateLimited, Usage
from custom_components.windowed_conversation.providers.events import FinishReason
from custom_components.windowed_conversation.turn.attempts import Attempt, AttemptResult, OpenAttempt, Purpose
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.state import Turn
from custom_components.windowed_conversation.turn.turn import run_turn
from custom_components.windowed_conversation.window import Window
from demo.model_server import ModelServer
from tests.waiting import until

from .conftest import Take
from .world import Ear, make_turn


def told(outcome: Turn) -> list[tuple[str, str | None, bool, bool]]:
    """Return for each request its result, its error, whether it was billed, and whether it may have an unknown cost."""
    return [
        (each.result, each.error_name, each.billed_request is not None, each.is_cost_unknown)
        for each in outcome.attempts
    ]


async def test_each_round_of_tools_is_a_request(take: Take, model_server: ModelServer) -> None:
    outcome = await take("switch on the kitchen light")

    assert told(outcome) == [("answered", None, True, False)] * 2
    first, second = outcome.attempts
    assert [call.name for call in first.tool_calls] == ["intent__HassTurnOn"]
    assert (first.finish_reason, second.finish_reason, second.tool_calls) == ("tool_calls", "stop", ())
    assert {each.purpose for each in outcome.attempts} == {Purpose.ANSWER}
    assert first.ended_at <= second.started_at
    assert outcome.usage == sum((each.usage for each in outcome.billed_requests), Usage())
    assert len(outcome.billed_requests) == 2
    assert outcome.usage.input == sum(request.usage["prompt"] for request in model_server.requests)


@pytest.mark.parametrize(
    ("fault", "ended"),
    [
        ("400", ("error", "BadRequest", False, False)),
        ("401", ("error", "AuthError", False, False)),
        ("quota", ("error", "QuotaError", False, False)),
        ("503", ("error", "Unavailable", False, False)),
        ("cut_before_headers", ("error", "Unavailable", False, False)),
        ("cut_mid_stream", ("error", "Unavailable", False, True)),
        ("malformed_event", ("error", "BadStream", False, True)),
        ("no_terminal", ("error", "BadStream", False, True)),
        ("length", ("error", "Incomplete", True, False)),
        ("refusal", ("error", "AnswerRefused", True, False)),
        ("empty_answer", ("error", "EmptyAnswer", True, False)),
    ],
    ids=str,
)
async def test_request_that_fails_says_how(take: Take, model_server: ModelServer, fault: str, ended: Any) -> None:
    model_server.fault(fault, 1)

    outcome = await take("tell me a story about the sea")

    assert told(outcome) == [ended]
    assert outcome.result is AttemptResult.ERROR


async def test_request_that_is_sent_again_is_another(take: Take, model_server: ModelServer) -> None:
    await take("my name is Ada")
    model_server.fault("context_overflow", 1)

    outcome = await take("what is my name?")

    assert told(outcome) == [("error", "ContextOverflow", False, False), ("answered", None, True, False)]


async def test_turn_that_took_too_long_has_cancelled_its_request(take: Take, model_server: ModelServer) -> None:
    model_server.fault("no_answer", 1)

    outcome = await take("hello", turn_timeout=0.3)

    assert told(outcome) == [("cancelled", "CancelledError", False, True)]
    assert outcome.result is AttemptResult.ERROR


async def test_request_of_a_cancelled_turn_is_cancelled(
    window: Window, question: Question, reply: Ear, model_server: ModelServer
) -> None:
    model_server.fault("silence_mid_stream", 1)
    outcome = make_turn(window, "hello you", question, reply)
    turn = asyncio.create_task(run_turn(outcome))
    await until(lambda: bool(reply.heard))

    turn.cancel()
    await asyncio.wait([turn])

    assert told(outcome) == [("cancelled", "CancelledError", False, True)]
    assert (outcome.result, type(outcome.interruption)) == (AttemptResult.CANCELLED, asyncio.CancelledError)


async def test_pause_that_a_server_asked_for_sends_nothing(take: Take, question: Question) -> None:
    question.model.pause.begin(60.0)

    outcome = await take("hello")

    assert isinstance(outcome.error, RateLimited)
    assert outcome.attempts == []


def test_answer_that_was_whole_is_not_cancelled(question: Question) -> None:
    ended: list[Attempt] = []
    request = question.build_request((), ())
    with (
        suppress(asyncio.CancelledError),
        OpenAttempt(question.model, request, Purpose.ANSWER, ended.append) as asked,
    ):
        asked.on_event(AnswerDone(FinishReason.STOP, "stop"))
        raise asyncio.CancelledError

    assert [(each.result, each.error_name) for each in ended] == [(AttemptResult.ANSWERED, None)]


def test_discarded_request_is_not_recorded(question: Question) -> None:
    ended: list[Attempt] = []
    with OpenAttempt(question.model, question.build_request((), ()), Purpose.COMPACTION, ended.append) as asked:
        asked.discard()

    assert ended == []
