"""Tests for refusals due to the form of an ended exchange: it is sent as text, and no context size is learned."""

from dataclasses import replace
import json
from typing import Any, override

from aiohttp import web
import pytest

from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import Window
from tests.providers.byte_server import CALLS, DONE, STOP, ByteServer, fragment, text, usage
from tests.providers.overflow_bodies import BODIES

from .conftest import Take, provider

ANSWER = (text("Good day."), STOP, DONE)
EMPTY = (STOP, usage(prompt_tokens=36_000, completion_tokens=0), DONE)
CALL = (fragment('{"name": "kitchen light"}', "intent__HassTurnOn", index=0, id="call_1"), CALLS, DONE)
UNEXPLAINED = BODIES["lm_studio"]


@pytest.fixture
async def acted(take: Take, byte_question: Question, byte_server: ByteServer) -> None:
    """Take a turn without a tool call, and then one with a tool call."""
    byte_server.set_reply(*ANSWER)
    await take("remember that the number 7 is lucky", asked=byte_question)
    byte_server.set_reply(*CALL)
    byte_server.add_reply(*ANSWER)
    await take("make the kitchen cosier", asked=byte_question)
    byte_server.requests.clear()


def refuse(server: ByteServer, times: int) -> None:
    """Make the server refuse the next requests without a reason, and answer the requests after them."""
    server.set_reply(UNEXPLAINED.content, status=UNEXPLAINED.status, headers=UNEXPLAINED.headers)
    for _ in range(times - 1):
        server.add_reply(UNEXPLAINED.content, status=UNEXPLAINED.status, headers=UNEXPLAINED.headers)
    server.add_reply(*ANSWER)


def roles(request: Any) -> list[str]:
    return [message["role"] for message in request["messages"]]


def called(request: Any) -> bool:
    return any(message.get("tool_calls") for message in request["messages"])


@pytest.mark.usefixtures("acted")
async def test_calls_of_an_ended_exchange_are_sent_as_text_after_an_unexplained_refusal(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse(byte_server, 1)

    outcome = await take("hello", asked=byte_question)

    refused, served = byte_server.requests
    assert outcome.error is None
    assert called(refused)
    assert roles(served) == ["system", "user", "assistant", "user", "assistant", "user"]
    assert (
        '[For this, intent__HassTurnOn was called with {"name": "kitchen light"}: ' in served["messages"][3]["content"]
    )


@pytest.mark.usefixtures("acted")
async def test_exchange_whose_form_was_refused_stays_text_and_nothing_is_learned(
    take: Take, window: Window, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse(byte_server, 1)
    await take("hello", asked=byte_question)
    await take("hello again", asked=byte_question)

    assert len(byte_server.requests) == 3
    assert not called(byte_server.requests[-1])
    assert byte_question.model.size.get_context_tokens() is None
    assert window.stats().evicted_messages == 0
    assert any(message.tool_calls for message in window.messages())


@pytest.mark.usefixtures("acted")
async def test_exchange_that_was_served_before_keeps_its_form(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    await take("hello", asked=byte_question)
    byte_server.set_reply(*CALL)
    byte_server.add_reply(*ANSWER)
    await take("make the kitchen cosier again", asked=byte_question)
    byte_server.requests.clear()
    refuse(byte_server, 1)

    await take("thank you", asked=byte_question)

    assert [sum(bool(each.get("tool_calls")) for each in sent["messages"]) for sent in byte_server.requests] == [2, 1]


@pytest.mark.usefixtures("acted")
async def test_less_is_sent_when_the_form_was_not_the_reason_and_the_form_is_kept(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse(byte_server, 2)
    await take("hello", asked=byte_question)
    byte_question.model.size.reset()
    await take("hello again", asked=byte_question)

    refused, as_text, smaller, following = byte_server.requests
    assert [called(each) for each in (refused, as_text, following)] == [True, False, True]
    assert ["lucky" in str(each) for each in (as_text, smaller)] == [True, False]


class Demanding(ByteServer):
    """A server that refuses every request with a tool call without a reason, as if its own fields were missing."""

    @override
    async def _handle(self, request: web.Request) -> web.StreamResponse:
        sent = json.loads(await request.read())
        if called(sent):
            self.set_reply(UNEXPLAINED.content, status=UNEXPLAINED.status, headers=UNEXPLAINED.headers)
        else:
            self.set_reply(*(CALL if "cosier" in sent["messages"][-1]["content"] else ANSWER))
        return await super()._handle(request)


async def test_server_that_refuses_calls_teaches_no_size_and_the_window_keeps_its_budget(
    take: Take, window: Window, question: Question, http_client: Any
) -> None:
    async with Demanding() as server:
        asked = replace(question, model=replace(question.model, provider=provider(http_client, server.url)))
        for number in range(6):
            await take(f"make the kitchen cosier {number}", asked=asked)
            outcomes = [await take(f"remember that the number {number}{each} is lucky", asked=asked) for each in "abc"]
            assert [outcome.error for outcome in outcomes] == [None] * 3

    assert asked.model.size.get_context_tokens() is None
    assert asked.model.planned_budget.context_tokens is None
    assert window.stats().evicted_messages == 0


async def test_empty_answer_to_the_largest_request_so_far_gets_one_smaller_try_and_teaches_nothing(
    take: Take, window: Window, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*ANSWER)
    for number in range(6):
        await take(f"remember that the number {number} is lucky", asked=byte_question)
    byte_server.requests.clear()
    for number in range(3):
        byte_server.set_reply(*EMPTY)
        byte_server.add_reply(*ANSWER)
        outcome = await take(f"hello {number}", asked=byte_question)

    assert outcome.sent_text == "Good day."
    empty, smaller = byte_server.requests[-2:]
    assert len(smaller["messages"]) < len(empty["messages"])
    assert byte_question.model.size.get_context_tokens() is None
    assert window.stats().evicted_messages == 0


async def test_empty_answer_to_a_request_that_fits_is_not_asked_again(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*ANSWER)
    await take("a long story " * 50, asked=byte_question)
    await take("another long story " * 50, asked=byte_question)
    byte_question.model.size.on_answered(5000)
    byte_server.requests.clear()
    byte_server.set_reply(*EMPTY)

    outcome = await take("hello", asked=byte_question)

    assert type(outcome.error).__name__ == "EmptyAnswer"
    assert len(byte_server.requests) == 1
