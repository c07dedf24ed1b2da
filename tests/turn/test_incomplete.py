"""Tests of turns that fail or are interrupted: tool calls that may have run and heard text stay in the window."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import DeadlineExceeded, ProviderError
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import (
    Role,
    ToolCall,
    Window,
)
from demo.model_server import ModelServer, words
from tests.providers.byte_server import ByteServer, fragment, text
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.parts import Wire

from .answers import TURN_ON, calls
from .conftest import Take
from .world import Ear, Home

DONE_RESULT = '{"response_type": "action_done"}'
SWITCH = "switch on the kitchen light"
STORY = "Once upon a time there was a little house which stood on a hill and had seven doors."


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


@pytest.fixture(params=(*ALL_WIRES, ChatWire(Dialect.OPENAI)), ids=lambda wire: wire.name)
async def storyteller(request: pytest.FixtureRequest, question: Question, model_server: ModelServer) -> Any:
    """Yield a question for a model that tells a story, in each wire format."""
    wire: Wire = request.param
    model_server.script(words(STORY))
    async with import_module(wire.clients[0]).AsyncClient(verify=False) as client:
        yield replace(question, model=replace(question.model, provider=wire.connect(model_server.address, client)))


async def cut_by_its_length(take: Take, asked: Question, model_server: ModelServer, _reply: Ear) -> None:
    model_server.fault("length", 1)
    await take("tell me a long story", asked=asked)


async def break_off(take: Take, asked: Question, model_server: ModelServer, _reply: Ear) -> None:
    model_server.fault("cut_mid_stream", 1)
    await take("tell me a long story", asked=asked)


async def barge_in(take: Take, asked: Question, model_server: ModelServer, reply: Ear) -> None:
    model_server.fault("silence_mid_stream", 1)
    turn = asyncio.create_task(take("tell me a long story", asked=asked))
    await reply.spoke.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


@pytest.mark.parametrize("end_early", [cut_by_its_length, break_off, barge_in])
async def test_next_request_has_the_heard_part_of_a_story_once(
    *, end_early: Any, storyteller: Question, take: Take, reply: Ear, window: Window, model_server: ModelServer
) -> None:
    await end_early(take, storyteller, model_server, reply)
    heard = reply.text.strip()
    assert_marked_incomplete(window)

    await take("go on", asked=storyteller)

    newest = model_server.requests[-1]
    assert STORY.startswith(heard)
    assert heard != STORY
    assert [str(newest.body).count(each) for each in ("tell me a long story", heard, "interrupted")] == [1, 1, 1]
    assert newest.violations == []


@pytest.mark.parametrize("fault", ["500", "silence_after_headers", "refusal", "content_filter"])
async def test_turn_without_a_first_token_or_with_a_refused_answer_leaves_no_trace(
    fault: str, take: Take, window: Window, model_server: ModelServer
) -> None:
    model_server.fault(fault)

    outcome = await take("tell me a long story", idle_timeout=0.3)

    assert outcome.error is not None
    assert window.exchanges() == ()
