"""Tests that tool calls stay in the window if a turn fails or is interrupted after a tool may have run."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import DeadlineExceeded, ProviderError
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import (
    Role,
    ToolCall,
    Window,
)
from demo.model_server import ModelServer
from tests.providers.byte_server import ByteServer, fragment, text

from .answers import TURN_ON, calls
from .conftest import Take
from .world import Ear, Home

DONE_RESULT = '{"response_type": "action_done"}'
SWITCH = "switch on the kitchen light"


def made(window: Window) -> list[ToolCall]:
    return [call for message in window.messages() for call in message.tool_calls]


def results(window: Window) -> list[str]:
    return [message.content for message in window.messages() if message.role is Role.TOOL]


def assert_marked_incomplete(window: Window) -> None:
    """Assert that every call of the newest exchange has a result, and that it is marked as interrupted."""
    exchange = window.exchanges()[-1]
    assert {"incomplete", "route:model"} <= exchange.tags
    assert "interrupted" in exchange.messages[-1].content
    answered = [message.tool_call_id for message in exchange.messages if message.role is Role.TOOL]
    assert answered == [call.id for message in exchange.messages for call in message.tool_calls]
    assert not window.is_open


@pytest.fixture
def interrupt(take: Take) -> Callable[..., Awaitable[None]]:
    """Return a function that takes a turn and cancels it when an event is set."""

    async def interrupt(words: str, has_come: asyncio.Event, **more: Any) -> None:
        turn = asyncio.create_task(take(words, **more))
        await has_come.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    return interrupt


@pytest.mark.parametrize("fault", ["500", "cut_mid_stream", "silence_mid_stream", "no_terminal"])
async def test_action_is_known_when_the_answer_after_it_fails(
    *, fault: str, take: Take, reply: Ear, home: Home, window: Window, model_server: ModelServer
) -> None:
    async def turn_on(name: str) -> Any:
        model_server.fault(fault)
        return await home.tools[TURN_ON](name=name)

    reply.tools = {TURN_ON: turn_on}

    outcome = await take(SWITCH, idle_timeout=0.3)

    assert outcome.error is not None
    assert [call.name for call in made(window)] == [TURN_ON]
    assert results(window) == [DONE_RESULT]
    assert_marked_incomplete(window)


async def test_what_was_said_before_an_interruption_after_a_tool_is_known(
    interrupt: Any, byte_question: Question, byte_server: ByteServer, window: Window, reply: Ear
) -> None:
    byte_server.set_reply(calls({"name": "lamp"}))
    byte_server.add_reply(text("It is"), asyncio.Event())

    await interrupt("hello", reply.spoke, asked=byte_question)

    assert any("It is" in message.content for message in window.messages()[-2:])
    assert results(window) == [DONE_RESULT]
    assert_marked_incomplete(window)


async def test_call_whose_answer_was_interrupted_is_known(
    *, interrupt: Any, byte_question: Question, byte_server: ByteServer, window: Window, home: Home, reply: Ear
) -> None:
    byte_server.set_reply(fragment('{"name": "lamp"}', TURN_ON, index=0), text("On it."), asyncio.Event())

    await interrupt("hello", reply.spoke, asked=byte_question)

    assert [(call.name, dict(call.arguments)) for call in made(window)] == [(TURN_ON, {"name": "lamp"})]
    assert any("On it." in message.content for message in window.messages())
    assert_marked_incomplete(window)


async def test_call_is_known_when_the_whole_turn_took_too_long(
    take: Take, window: Window, home: Home, reply: Ear
) -> None:
    async def never_ends(**_: object) -> None:
        await asyncio.Event().wait()

    reply.tools = {**home.tools, TURN_ON: never_ends}

    outcome = await take(SWITCH, turn_timeout=0.3)

    assert isinstance(outcome.error, DeadlineExceeded)
    assert_marked_incomplete(window)


async def test_call_is_known_after_a_bug_of_ours(take: Take, window: Window, reply: Ear) -> None:
    async def breaks(**_: object) -> None:
        raise ZeroDivisionError

    reply.tools = {TURN_ON: breaks}

    with pytest.raises(ZeroDivisionError):
        await take(SWITCH)

    assert_marked_incomplete(window)


async def test_model_that_takes_over_after_tools_ran_completes_the_exchange(
    take: Take, question: Question, byte_question: Question, byte_server: ByteServer, window: Window
) -> None:
    byte_server.set_reply(calls({"name": "kitchen light"}))
    byte_server.add_reply(b"")
    other = replace(question.model, agent_id="second")

    outcome = await take(SWITCH, asked=replace(byte_question, fallback_agents=(other,)))

    assert (outcome.error, outcome.answered_by) == (None, "second")
    assert "incomplete" not in window.exchanges()[-1].tags


async def test_turn_that_fails_everywhere_after_tools_ran_is_incomplete(
    take: Take, question: Question, byte_question: Question, byte_server: ByteServer, window: Window
) -> None:
    byte_server.set_reply(calls({"name": "kitchen light"}))
    byte_server.add_reply(b"")
    unreachable = replace(question.model, agent_id="second", name="no such model")

    outcome = await take(SWITCH, asked=replace(byte_question, fallback_agents=(unreachable,)))

    assert isinstance(outcome.error, ProviderError)
    assert results(window) == [DONE_RESULT]
    assert_marked_incomplete(window)
