"""Tests for the budget of a turn with many tool rounds: the contents of its requests, and their prompt cache."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
import json
from statistics import mean
from typing import Any

import pytest

from custom_components.windowed_conversation.turn.limits import Budget
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import Window, WindowPolicy
from demo.model_server import Answer, ModelServer, call, words

from .conftest import Take
from .world import Ear, Home

ROUNDS = 50
# A system prompt of about 650 tokens, as for an agent that controls a home.
SYSTEM = "You are a voice assistant for a home. Answer in plain text. " * 45


@pytest.fixture
def pages(reply: Ear, home: Home) -> Any:
    """Return a function that makes the home's tool return pages of about the given number of tokens."""

    def pages(tokens: int) -> None:
        async def look(name: str) -> dict[str, str]:
            return {"result": f"{name}: " + "the lamp in the hall is on and the door is closed; " * (tokens // 12)}

        reply.tools = {**home.tools, "homeassistant__GetLiveContext": look}

    return pages


def read(pages: int) -> Iterator[Answer]:
    """Yield the model's answers: one tool call for each page, and then a text."""
    yield from (call("GetLiveContext", name=f"page {number}") for number in range(1, pages + 1))
    yield words("I have read them.")


def sent(model_server: ModelServer) -> list[str]:
    """Return the messages of each request as JSON text."""
    return [json.dumps(request.body["messages"], ensure_ascii=False) for request in model_server.requests]


def shared(before: str, now: str) -> int:
    """Return the length of the common beginning of two requests, in characters."""
    return next((at for at, (one, other) in enumerate(zip(before, now, strict=False)) if one != other), len(before))


@pytest.fixture
def long_system_question(question: Question) -> Question:
    return replace(question, system_prompt=SYSTEM)


async def test_requests_of_many_rounds_begin_like_the_one_before(
    take: Take, long_system_question: Question, pages: Any, model_server: ModelServer
) -> None:
    pages(1000)
    model_server.script(*read(ROUNDS))

    outcome = await take("read the book", asked=long_system_question, max_tool_rounds=ROUNDS)

    assert outcome.sent_text == "I have read them."
    assert mean(shared(before, now) / len(now) for before, now in pairwise(sent(model_server))) >= 0.75


@pytest.mark.parametrize("tokens", [1000, 4000])
async def test_requests_of_many_rounds_keep_to_the_room_of_the_model(
    tokens: int, take: Take, long_system_question: Question, pages: Any, model_server: ModelServer
) -> None:
    room = 7500
    budget = Budget(WindowPolicy(), context_tokens=8000, max_answer_tokens=500)
    asked = replace(long_system_question, model=replace(long_system_question.model, budget=budget))
    pages(tokens)
    model_server.script(*read(ROUNDS))

    outcome = await take("read the book", asked=asked, max_tool_rounds=ROUNDS)

    assert outcome.sent_text == "I have read them."
    assert outcome.run is not None
    assert outcome.run.shortfall is None
    requests = [billed.request for billed in outcome.billed_requests]
    assert max(sum(message.tokens or 0 for message in request.messages) for request in requests) <= room


async def test_question_and_newest_round_of_many_stay_whole(
    take: Take, long_system_question: Question, pages: Any, model_server: ModelServer
) -> None:
    pages(1000)
    model_server.script(*read(ROUNDS))

    await take("read the book", asked=long_system_question, max_tool_rounds=ROUNDS)

    for number, request in enumerate(model_server.requests[1:], start=1):
        messages = request.body["messages"]
        assert messages[1]["content"].endswith("read the book")
        assert messages[-1]["content"].startswith(f'{{"result": "page {number}: the lamp')
        assert "Cut" not in messages[-1]["content"]


async def test_results_that_are_too_long_for_a_model_of_unknown_size_are_shortened(
    take: Take, question: Question, window: Window, pages: Any, model_server: ModelServer
) -> None:
    pages(1000)
    model_server.change(context_size=4000)
    model_server.script(*read(10))

    outcome = await take("read the book", asked=question)

    assert outcome.sent_text == "I have read them."
    assert "incomplete" not in window.stats().tag_distribution
    assert not any(before == now for before, now in pairwise(sent(model_server)))
