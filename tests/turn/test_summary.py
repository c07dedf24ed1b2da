"""Tests for the request for a summary, its answer, and its errors."""

from dataclasses import replace
import json

import pytest

from custom_components.windowed_conversation.agents.background.requests import ask_for_summary
from custom_components.windowed_conversation.providers.errors import (
    AnswerRefused,
    BadStream,
    DeadlineExceeded,
    RateLimited,
    Unavailable,
)
from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.providers.models import ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.turn.attempts import Attempt
from custom_components.windowed_conversation.turn.errors import NoSummary
from custom_components.windowed_conversation.turn.limits import DEFAULT_TURN_TIMEOUT, Budget
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import EstimatedCounter, Message, Window, WindowPolicy
from custom_components.windowed_conversation.window.summary import SummaryInput
from demo.model_server import ModelServer
from tests.providers.byte_server import DONE, STOP, ByteServer, text

from .conftest import Take

POLICY = WindowPolicy(300, summarize=True)
TOLD = SummaryInput(Message.system("You are a voice assistant."), earlier_summary="Ada likes pizza.")


@pytest.fixture
def window() -> Window:
    return Window("conversation", POLICY, EstimatedCounter())


@pytest.fixture
async def passage(take: Take, window: Window, question: Question) -> SummaryInput:
    """Return the passage that is evicted after Ada has stated her name and the wifi password."""
    asked = replace(question, model=replace(question.model, budget=Budget(POLICY)))
    await take("my name is Ada", asked=asked)
    await take("remember that the wifi password is swordfish", asked=asked)
    for _ in range(3):
        await take("tell me a story in 60 words", asked=asked)
    assert window.pending_summary is not None
    return window.pending_summary


async def ask(
    question: Question, passage: SummaryInput, turn_timeout: float = DEFAULT_TURN_TIMEOUT
) -> tuple[str, list[Usage]]:
    """Return the summary, and the usage of each request for it."""
    usage: list[Usage] = []

    def on_attempt(attempt: Attempt) -> None:
        usage.extend(billed.usage for billed in (attempt.billed_request,) if billed)

    return await ask_for_summary(question, passage, 100, turn_timeout, on_attempt), usage


async def test_summary_before_is_part_of_it(passage: SummaryInput, question: Question) -> None:
    passage = passage._replace(earlier_summary="You told me: my name is Bob; remember that the pin is 12.")

    summary, _ = await ask(question, passage)

    facts = "my name is Ada; remember that the wifi password is swordfish; remember that the pin is 12"
    assert summary == f"You told me: {facts}."


async def test_summary_has_a_limit_of_its_own(
    passage: SummaryInput, question: Question, model_server: ModelServer
) -> None:
    budget = Budget(POLICY, max_answer_tokens=50)
    model = replace(question.model, budget=budget, profile=ModelProfile(reasoning=ReasoningStyle.NONE))

    await ask(replace(question, model=model), passage)

    assert model_server.requests[-1].body["max_tokens"] == 200


async def test_request_is_the_passage_the_tools_and_the_instruction(
    passage: SummaryInput, question: Question, model_server: ModelServer
) -> None:
    bodies = [request.body for request in model_server.requests]

    await ask(question, passage)

    body = model_server.requests[-1].body
    *head, instruction = body["messages"]
    assert json.dumps(body["tools"]) == json.dumps(bodies[0]["tools"])
    assert len(head) > 4
    assert any(sent["messages"][: len(head)] == head for sent in bodies)
    assert instruction["role"] == "user"
    assert "at most 45 words" in instruction["content"]


async def test_thoughts_are_no_part_of_a_summary(byte_question: Question, byte_server: ByteServer) -> None:
    byte_server.set_reply(text("<think>hm</think>\n\nAda likes "), text("pizza.\n"), STOP, DONE)

    assert await ask(byte_question, TOLD) == ("Ada likes pizza.", [])


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("500", Unavailable),
        ("429", RateLimited),
        ("cut_mid_stream", Unavailable),
        ("no_terminal", BadStream),
        ("refusal", AnswerRefused),
        ("empty_answer", NoSummary),
        ("same_call", NoSummary),
    ],
)
async def test_what_is_no_summary_is_an_error(
    question: Question, model_server: ModelServer, fault: str, error: type[Exception]
) -> None:
    model_server.fault(fault)

    with pytest.raises(error):
        await ask(question, TOLD)


async def test_deadline_ends_it(question: Question, model_server: ModelServer) -> None:
    model_server.change(delay=0.5)

    with pytest.raises(DeadlineExceeded, match="no whole summary"):
        await ask(question, TOLD, turn_timeout=0.2)
