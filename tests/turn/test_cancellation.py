"""Tests that cancel a turn at each suspension point, in each format: the window must stay valid and complete."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import pytest

from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import (
    EstimatedCounter,
    Message,
    Role,
    Window,
    WindowPolicy,
    WindowRegistry,
)
from demo.model_server import ModelServer, call, words
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.parts import Wire
from tests.suspensions import cancel_at_each_point

from .world import Ear, Home, Tool, take_turn

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
        async with windows.begin_turn("key", timeout=0) as window:
            outcome = await take_turn(window, text, asked, broken.reply)
            ended.append(type(outcome.error).__name__ if outcome.error else outcome.sent_text)

    async def start() -> None:
        nonlocal broken, windows
        broken, windows = SlowHome(), WindowRegistry(make_window)
        begin(broken)
        await run_turn()

    async for _ in cancel_at_each_point(start):
        await assert_no_running_tasks()
        async with windows.begin_turn("key", timeout=0) as window:
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
