"""Tests for answers with metadata: it is neither spoken nor executed, and no turn ends without answer or error."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from itertools import count, pairwise
from typing import override

import pytest

from custom_components.windowed_conversation.turn.errors import EmptyAnswer
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.reply import ReplyDelta
from custom_components.windowed_conversation.window import INTERRUPTED_ANSWER, Message, Window
from tests.providers.byte_server import CALLS, DONE, STOP, ByteServer, fragment, text

from .conftest import Take
from .spoken import JSON_CALL, SECTIONS
from .world import Ear, Home, take_turn

LOOK = fragment("{}", "homeassistant__GetLiveContext", index=0, id="call_0") + CALLS + DONE
TEXT_CALL = "<tool_call>{}</tool_call>"


def said(words: str) -> bytes:
    """Return an answer that consists of this text."""
    return text(words) + STOP + DONE


@pytest.mark.parametrize(
    "answer",
    [
        "<think>hm</think>",
        "  \n",
        "\u200b \ufeff",
        "[CONTEXT: area: Attic]",
        "<|im_end|>",
        SECTIONS,
        INTERRUPTED_ANSWER,
        "<|channel|>analysis<|message|>hm<|end|>",
        TEXT_CALL,
        JSON_CALL,
        'tool_call: HassTurnOn(name="kitchen light")',
    ],
)
async def test_answer_of_which_nothing_is_spoken_is_empty(
    answer: str, take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(said(answer))

    outcome = await take("hello", asked=byte_question)

    assert isinstance(outcome.error, EmptyAnswer)
    assert home.ran == []


async def test_model_that_acts_and_then_only_thinks_has_succeeded(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(LOOK)
    byte_server.add_reply(said("<think>It is on.</think>"))

    outcome = await take("hello", asked=byte_question)

    assert (outcome.error, outcome.sent_text) == (None, "Done.")


async def test_model_that_acts_and_then_writes_a_call_as_text_has_not_succeeded(
    take: Take, byte_question: Question, byte_server: ByteServer, window: Window, home: Home
) -> None:
    byte_server.set_reply(LOOK)
    byte_server.add_reply(said(TEXT_CALL))

    outcome = await take("hello", asked=byte_question)

    assert isinstance(outcome.error, EmptyAnswer)
    assert outcome.sent_text == ""
    assert home.ran == ["look"]
    assert window.messages()[-1].content == INTERRUPTED_ANSWER


async def test_call_as_text_where_none_is_allowed_is_no_failure(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(LOOK)
    byte_server.add_reply(said(TEXT_CALL))

    outcome = await take("hello", asked=byte_question, max_tool_rounds=1)

    assert (outcome.error, outcome.sent_text) == (None, "Done.")


async def test_answer_that_ends_like_the_beginning_of_a_mark_is_spoken_whole(
    take: Take, byte_question: Question, byte_server: ByteServer, reply: Ear
) -> None:
    byte_server.set_reply(said("Type <th"))

    outcome = await take("hello", asked=byte_question)

    assert outcome.sent_text == reply.text == "Type <th"


class Listener(Ear):
    """An `Ear` that records for each piece of text how often another task has run before it."""

    ran: list[int]

    @override
    async def add_deltas(self, deltas: AsyncIterator[ReplyDelta]) -> AsyncGenerator[Message]:
        self.ran, turns = [], count()

        async def run() -> None:
            while True:
                next(turns)
                await asyncio.sleep(0)

        async def noted() -> AsyncGenerator[ReplyDelta]:
            async for delta in deltas:
                self.ran.append(next(turns))
                yield delta

        other = asyncio.create_task(run())
        async for message in super().add_deltas(noted()):
            yield message
        other.cancel()


async def test_others_have_their_turn_while_a_long_text_is_read(
    byte_question: Question, byte_server: ByteServer, window: Window, home: Home
) -> None:
    byte_server.set_reply(said("a<|im_end|>" * 40_000))
    listener = Listener(home.tools)

    await take_turn(window, "hello", byte_question, listener)

    assert listener.text == "a" * 40_000
    assert len(listener.heard) > 10
    assert all(later > earlier + 1 for earlier, later in pairwise(listener.ran))
