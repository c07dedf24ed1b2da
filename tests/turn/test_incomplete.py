"""Tests of turns that fail or are cancelled anywhere: calls that may have run and heard text stay in the window."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import DeadlineExceeded, ProviderError
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import (
    EstimatedCounter,
    Message,
    Role,
    ToolCall,
    Window,
    WindowPolicy,
    WindowRegistry,
)
from demo.model_server import ModelServer, call, words
from tests.providers.byte_server import ByteServer, fragment, text
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.parts import Wire
from tests.suspensions import cancel_at_each_point
from tests.window.turns import begin_turn

from .answers import TURN_ON, calls
from .conftest import Take
from .world import Ear, Home, Tool, take_turn

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


BEFORE = (Message.user("my name is Ada"), Message.assistant("Nice to meet you, Ada."))
# The task of a server connection, which outlives the requests on it.
_SERVER_TASK_NAME = "RequestHandler.start"

type Turn = Callable[[str, str], Awaitable[None]]


@dataclass
class SlowHome:
    """A home whose tools take some time, and its `Ear`; `on_tool_run` is called when a tool has run."""

    home: Home = field(default_factory=lambda: Home({"kitchen light": "off", "bedroom light": "off"}))
    on_tool_run: Callable[[], None] = lambda: None

    @property
    def reply(self) -> Ear:
        return Ear({name: self._slow_down(tool) for name, tool in self.home.tools.items()})

    def _slow_down(self, tool: Tool) -> Tool:
        async def run(**arguments: Any) -> Any:
            await asyncio.sleep(0)
            result = await tool(**arguments)
            self.on_tool_run()
            await asyncio.sleep(0)
            return result

        return run


def make_window(_key: str) -> Window:
    window = Window("conversation", WindowPolicy(), EstimatedCounter())
    window.add_exchange(BEFORE)
    return window


@pytest.fixture(params=ALL_WIRES, ids=lambda wire: wire.name)
async def asked(
    request: pytest.FixtureRequest, question: Question, model_server: ModelServer
) -> AsyncIterator[Question]:
    """Yield a question for the scripted model server in each wire format."""
    wire: Wire = request.param
    async with import_module(wire.clients[0]).AsyncClient(verify=False) as client:
        model = replace(question.model, provider=wire.connect(model_server.address, client))
        yield replace(question, model=model)


def assert_valid(window: Window) -> None:
    """Assert that no exchange is open, and that every call has a result and every result a call."""
    assert not window.is_open
    for exchange in window.exchanges():
        assert exchange.messages[0].role is Role.USER
        made = [call.id for message in exchange.messages for call in message.tool_calls]
        answered = [str(message.tool_call_id) for message in exchange.messages if message.role is Role.TOOL]
        assert sorted(made) == sorted(answered)
        assert exchange.messages[-1].role is Role.ASSISTANT


def calls_in(window: Window) -> list[str]:
    """Return the calls of the newest exchange in the notation of `Home.ran`."""
    ran = {"homeassistant__GetLiveContext": "look", "intent__HassTurnOn": "on kitchen light"}
    return [ran[made.name] for message in window.exchanges()[-1].messages for made in message.tool_calls]


def running() -> set[str]:
    """Return the names of the running tasks, except for this test and the server."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    return {str(getattr(task.get_coro(), "__qualname__", task.get_coro())) for task in tasks} - {_SERVER_TASK_NAME}


async def assert_no_running_tasks() -> None:
    """Assert that no task is still running after all had the chance to end."""
    for _ in range(200):
        if not running():
            return
        await asyncio.sleep(0.001)
    assert running() == set()


async def sweep(asked: Question, text: str, begin: Callable[[SlowHome], None] = lambda broken: None) -> list[str]:
    """Cancel the turn at each suspension point, and assert that no task still runs and the window is valid.

    Returns how the turns that were not cancelled in time ended.
    """
    ended: list[str] = []
    broken, windows = SlowHome(), WindowRegistry(make_window)

    async def run_turn() -> None:
        async with begin_turn(windows, "key", timeout=0) as window:
            outcome = await take_turn(window, text, asked, broken.reply)
            ended.append(type(outcome.error).__name__ if outcome.error else outcome.sent_text)

    async def start() -> None:
        nonlocal broken, windows
        broken, windows = SlowHome(), WindowRegistry(make_window)
        begin(broken)
        await run_turn()

    async for _ in cancel_at_each_point(start):
        await assert_no_running_tasks()
        async with begin_turn(windows, "key", timeout=0) as window:
            assert_valid(window)
            assert window.exchanges()[0].messages[0].content == BEFORE[0].content
            assert len(window.exchanges()) == 2 or broken.home.ran == []
            assert [call for call in broken.home.ran if call not in calls_in(window)] == []
    return ended


async def test_turn_that_looks_acts_and_answers(asked: Question) -> None:
    assert await sweep(asked, "is the kitchen light on? if not, switch it on") == ["Done, the kitchen light is on."]


async def test_turn_that_speaks_before_it_acts_and_then_breaks(asked: Question, model_server: ModelServer) -> None:
    def begin(broken: SlowHome) -> None:
        model_server.faults.armed = None
        model_server.script(words("One moment. ") + call("HassTurnOn", name="kitchen light"))
        broken.on_tool_run = lambda: model_server.fault("cut_mid_stream")

    ended = await sweep(asked, "switch on the kitchen light", begin)

    assert ended == ["Unavailable"]


async def test_turn_in_which_another_model_takes_over(asked: Question, model_server: ModelServer) -> None:
    chain = replace(asked, fallback_agents=(replace(asked.model, agent_id="second"),))

    ended = await sweep(chain, "switch on the kitchen light", lambda broken: model_server.fault("500", 1))

    assert ended == ["Done, the kitchen light is on."]


async def test_turn_in_which_another_model_takes_over_after_a_tool_ran(
    asked: Question, model_server: ModelServer
) -> None:
    chain = replace(asked, fallback_agents=(replace(asked.model, agent_id="second"),))

    def begin(broken: SlowHome) -> None:
        model_server.faults.armed = None
        broken.on_tool_run = lambda: model_server.fault("500", 1)

    assert await sweep(chain, "switch on the kitchen light", begin) == ["Done, the kitchen light is on."]
