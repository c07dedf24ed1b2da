"""Tests for the output limit: exactly the user's for a model that does not reason, larger for one that does."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from hypothesis import given
from hypothesis.strategies import booleans, lists
import pytest

from custom_components.windowed_conversation.agents.background.requests import ask_for_summary
from custom_components.windowed_conversation.providers.errors import Incomplete
from custom_components.windowed_conversation.providers.events import (
    AnswerDone,
    FinishReason,
    ModelSettings,
    Provider,
    ReasoningDelta,
)
from custom_components.windowed_conversation.providers.models import UNKNOWN_MODEL, Effort, ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.turn.attempts import OpenAttempt, Purpose
from custom_components.windowed_conversation.turn.limits import DEFAULT_TURN_TIMEOUT, Budget
from custom_components.windowed_conversation.turn.model import Model, Question
from custom_components.windowed_conversation.window import Message, Role, Window, WindowPolicy
from custom_components.windowed_conversation.window.summary import SummaryInput
from demo.model_server import Answer, ModelServer, call, thought, words
from demo.model_server.conversation import AnswerFinish
from tests.providers.byte_server import DONE, STOP, ByteServer, chunk, text, usage

from .answers import said
from .conftest import Take
from .world import Ear, Home

LIMIT, WITH_ROOM = 300, 300 + 4096

HELLO = words("Hello.")
THOUGHT = thought("The user greets me.") + HELLO
CUT = replace(thought("The user greets me, so I"), finish=AnswerFinish.LENGTH)
TOLD = SummaryInput(Message.system("You are a voice assistant."), earlier_summary="Ada likes pizza.")


@pytest.fixture
def question(question: Question) -> Question:
    """Return a question to a model whose answers are limited to 300 tokens."""
    return replace(question, model=replace(question.model, budget=Budget(WindowPolicy(), max_answer_tokens=LIMIT)))


def limits(server: ModelServer) -> list[int]:
    return [request.body["max_tokens"] for request in server.requests]


async def talk(take: Take, server: ModelServer, answers: Sequence[Answer]) -> list[int]:
    """Take a turn for each of the answers. Return the output limits of the requests."""
    server.script(*answers)
    for _ in answers:
        await take("hello")
    return limits(server)


async def test_five_answers_without_a_thought_end_the_room(take: Take, model_server: ModelServer) -> None:
    answers = [THOUGHT, *[HELLO] * 7, THOUGHT, HELLO]

    assert await talk(take, model_server, answers) == [LIMIT, *[WITH_ROOM] * 5, *[LIMIT] * 3, WITH_ROOM]


@given(lists(booleans(), max_size=40))
def test_there_is_room_if_one_of_the_last_five_answers_had_a_thought(thoughts: list[bool]) -> None:
    budget = Budget(WindowPolicy(), max_answer_tokens=LIMIT)
    question = Question(Model("own", cast("Provider", None), "a-model", budget), "", "", (), "")

    for number, has_reasoning in enumerate(thoughts):
        request = question.build_request((Message.user("hello"),), ())
        has_room = any(thoughts[max(number - 5, 0) : number])
        assert request.max_answer_tokens == (WITH_ROOM if has_room else LIMIT)
        with OpenAttempt(question.model, request, Purpose.ANSWER, lambda _attempt: None) as asked:
            asked.on_delta(ReasoningDelta("hm" if has_reasoning else " "))
            asked.on_event(AnswerDone(FinishReason.STOP, "stop"))


@pytest.mark.parametrize(
    "answer",
    [
        chunk({"reasoning_content": "hm"}) + said("Hello."),
        chunk({"reasoning": "hm"}) + said("Hello."),
        said("<think>hm</think>Hello."),
        text("Hello.") + STOP + usage(completion_tokens=9, completion_tokens_details={"reasoning_tokens": 7}) + DONE,
    ],
    ids=["reasoning_content", "reasoning", "marks", "usage"],
)
async def test_reasoning_is_noticed_in_whatever_way_it_shows(
    answer: bytes, take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(answer)

    await take("hello", asked=byte_question)

    assert byte_question.model.reasoning_detector.is_expected


@pytest.mark.parametrize(
    "answer",
    [
        said("<think>\n\n</think>\n\nHello."),
        chunk({"reasoning_content": "\n"}) + said("Hello."),
        text("Hello.") + STOP + usage(completion_tokens=9, completion_tokens_details={"reasoning_tokens": 0}) + DONE,
    ],
    ids=["marks", "reasoning_content", "usage"],
)
async def test_empty_reasoning_is_none(
    answer: bytes, take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(answer)

    await take("hello", asked=byte_question)

    assert not byte_question.model.reasoning_detector.is_expected


async def test_answer_cut_off_in_its_thoughts_is_asked_for_once_more_with_room(
    take: Take, model_server: ModelServer, window: Window
) -> None:
    model_server.script(CUT, THOUGHT)

    outcome = await take("hello")

    assert (outcome.sent_text, outcome.error) == ("Hello.", None)
    assert limits(model_server) == [LIMIT, WITH_ROOM]
    assert [message.role for message in window.exchanges()[-1].messages] == [Role.USER, Role.ASSISTANT]


async def test_answer_cut_off_in_hidden_thoughts_is_asked_for_once_more(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(chunk({"role": "assistant"}), chunk({}, "length"), DONE)
    byte_server.add_reply(said("Hello."))

    outcome = await take("hello", asked=byte_question)

    assert outcome.sent_text == "Hello."
    assert [request["max_tokens"] for request in byte_server.requests] == [LIMIT, WITH_ROOM]


async def test_second_cut_is_an_error(take: Take, model_server: ModelServer) -> None:
    model_server.script(CUT, CUT)

    outcome = await take("hello")

    assert isinstance(outcome.error, Incomplete)
    assert limits(model_server) == [LIMIT, WITH_ROOM]


async def test_turn_asks_again_once_at_most(take: Take, model_server: ModelServer) -> None:
    names = (*("kitchen light", "bedroom light") * 2, "hall light")
    model_server.script(CUT, *(call("HassTurnOn", name=name) for name in names), CUT)

    outcome = await take("hello")

    assert isinstance(outcome.error, Incomplete)
    assert limits(model_server) == [LIMIT, *[WITH_ROOM] * 5, LIMIT]


async def test_answer_is_not_repeated_after_its_first_word(take: Take, model_server: ModelServer, reply: Ear) -> None:
    model_server.script(replace(THOUGHT, finish=AnswerFinish.LENGTH))

    outcome = await take("hello")

    assert isinstance(outcome.error, Incomplete)
    assert (limits(model_server), reply.text) == ([LIMIT], "Hello.")


async def test_action_is_not_repeated_when_the_answer_after_it_is_asked_for_again(
    take: Take, model_server: ModelServer, home: Home
) -> None:
    model_server.script(call("HassTurnOn", name="kitchen light"), CUT, words("It is on."))

    outcome = await take("switch on the kitchen light")

    assert (outcome.sent_text, home.ran) == ("It is on.", ["on kitchen light"])
    assert limits(model_server) == [LIMIT, LIMIT, WITH_ROOM]


@pytest.mark.parametrize(
    ("profile", "effort"), [(ModelProfile(reasoning=ReasoningStyle.NONE), None), (UNKNOWN_MODEL, Effort.NONE)], ids=str
)
async def test_model_that_is_not_to_reason_has_no_room(
    profile: ModelProfile, effort: Effort | None, take: Take, question: Question, model_server: ModelServer
) -> None:
    model = replace(question.model, profile=profile, settings=ModelSettings(effort=effort))
    model_server.script(THOUGHT, CUT)

    for _ in range(2):
        outcome = await take("hello", asked=replace(question, model=model))

    assert isinstance(outcome.error, Incomplete)
    assert limits(model_server) == [LIMIT, LIMIT]


async def test_answers_of_an_agent_without_reasoning_say_nothing_about_the_model(
    take: Take, question: Question, model_server: ModelServer
) -> None:
    without = replace(question.model, settings=ModelSettings(effort=Effort.NONE))
    model_server.script(THOUGHT, *[HELLO] * 7)
    await take("hello")

    for _ in range(6):
        await take("hello", asked=replace(question, model=without))
    await take("hello")

    assert limits(model_server) == [LIMIT, *[LIMIT] * 6, WITH_ROOM]


async def test_broken_answer_does_not_show_that_the_model_does_not_reason(
    take: Take, model_server: ModelServer
) -> None:
    model_server.script(THOUGHT)
    await take("hello")
    model_server.fault("cut_mid_stream")

    for _ in range(6):
        await take("hello")

    assert limits(model_server)[-1] == WITH_ROOM


async def test_summary_follows_the_same_rule(question: Question, model_server: ModelServer) -> None:
    model_server.script(CUT, words("Ada likes pizza."))

    summary = await ask_for_summary(question, TOLD, 100, DEFAULT_TURN_TIMEOUT, lambda _attempt: None)

    assert summary == "Ada likes pizza."
    assert limits(model_server) == [200, 200 + 4096]


async def test_cut_summary_with_words_is_an_error(question: Question, model_server: ModelServer) -> None:
    model_server.script(replace(words("Ada likes"), finish=AnswerFinish.LENGTH))

    with pytest.raises(Incomplete):
        await ask_for_summary(question, TOLD, 100, DEFAULT_TURN_TIMEOUT, lambda _attempt: None)

    assert limits(model_server) == [200]
