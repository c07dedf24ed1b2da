"""Tests for requests that are refused, or answered with nothing, without a reason: less is sent."""

from dataclasses import replace
import json
from typing import Any, override

from aiohttp import web

from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import Window
from tests.providers.byte_server import CALLS, DONE, STOP, ByteServer, fragment, text, usage
from tests.providers.overflow_bodies import BODIES

from .conftest import Take, provider

ANSWER = (text("Good day."), STOP, DONE)
EMPTY = (STOP, usage(prompt_tokens=36_000, completion_tokens=0), DONE)
CALL = (fragment('{"name": "kitchen light"}', "intent__HassTurnOn", index=0, id="call_1"), CALLS, DONE)
UNEXPLAINED = BODIES["lm_studio"]


def called(request: Any) -> bool:
    return any(message.get("tool_calls") for message in request["messages"])


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


async def test_conversation_with_a_server_that_refuses_calls_of_ended_exchanges_goes_on(
    take: Take, question: Question, http_client: Any
) -> None:
    async with Demanding() as server:
        asked = replace(question, model=replace(question.model, provider=provider(http_client, server.url)))
        for number in range(6):
            await take(f"make the kitchen cosier {number}", asked=asked)
            outcomes = [await take(f"remember that the number {number}{each} is lucky", asked=asked) for each in "abc"]
            assert [outcome.error for outcome in outcomes] == [None] * 3


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
