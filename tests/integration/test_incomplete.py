"""Tests for tool calls of an interrupted turn: the next request still contains the item that the tool added."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
import json
from typing import Any

from homeassistant.components import conversation
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from demo.model_server import ModelServer, call
from tests.suspensions import cancel_at_each_point

from .conftest import AGENT, SayFn, SetUpFn, ShoppingList, get_speech, start, stop, until

ADD_MILK = "we are out of milk"
ADD_MILK_CALL = call("HassListAddItem", item="milk", name="shopping list")


@pytest.fixture(params=["broken stream", "interrupted after the tool", "interrupted beside the tool"])
def way(request: pytest.FixtureRequest, entry: MockConfigEntry) -> str:
    """Set up an agent and return the name of a way to interrupt a turn."""
    return str(request.param)


@pytest.fixture
async def milk_added(way: str, shopping: ShoppingList, say: SayFn, model_server: ModelServer) -> None:
    """Have milk added to the shopping list in a turn that is then interrupted."""
    model_server.script(ADD_MILK_CALL)
    await {
        "broken stream": break_stream,
        "interrupted after the tool": interrupt_after,
        "interrupted beside the tool": interrupt_beside,
    }[way](shopping, say, model_server)
    shopping.on_added = lambda: None
    model_server.change(delay=0)


async def break_stream(shopping: ShoppingList, say: SayFn, model_server: ModelServer) -> None:
    """Cut the stream of the answer that follows the tool call."""
    shopping.on_added = lambda: model_server.fault("cut_mid_stream", 1)
    assert "cannot be reached" in get_speech(await say(ADD_MILK))


async def interrupt_after(shopping: ShoppingList, say: SayFn, model_server: ModelServer) -> None:
    """Cancel the turn while the answer that follows the tool call is streamed."""
    shopping.on_added = lambda: model_server.change(delay=0.2)
    await interrupt(say, lambda: len(model_server.requests) > 1)


async def interrupt_beside(shopping: ShoppingList, say: SayFn, model_server: ModelServer) -> None:
    """Cancel the turn while the answer that contains the tool call is still streamed."""
    model_server.change(delay=0.2)
    await interrupt(say, lambda: shopping.item_names != [])


async def interrupt(say: SayFn, is_time: Callable[[], bool]) -> None:
    """Start a turn that adds milk, and cancel it as soon as `is_time` returns true."""
    turn = asyncio.create_task(say(ADD_MILK))
    await until(is_time)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
async def test_next_request_holds_the_call_its_result_and_the_line(
    *,
    home: HomeAssistant,
    entry: MockConfigEntry,
    shopping: ShoppingList,
    milk_added: None,
    say: SayFn,
    model_server: ModelServer,
    is_restarted: bool,
) -> None:
    if is_restarted:
        await stop(home, entry)
        await start(home, entry)

    await say("did you add it?")

    _, _, answer, result, *rest = model_server.requests[-1].body["messages"]
    (made,) = answer["tool_calls"]
    assert json.loads(made["function"]["arguments"])["item"] == "milk"
    assert result["tool_call_id"] == made["id"]
    assert shopping.item_names == ["Milk"]
    assert "interrupted" in str(rest[:-1])
    assert model_server.requests[-1].violations == []


async def test_turn_that_breaks_before_the_tool_leaves_no_trace(
    shopping: ShoppingList, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up()
    model_server.fault("500", 1)
    await say(ADD_MILK)

    await say("did you add it?")

    assert [message["role"] for message in model_server.requests[-1].body["messages"]] == ["system", "user"]
    assert shopping.item_names == []


async def test_milk_that_was_added_is_known_wherever_the_turn_is_cancelled(
    home: HomeAssistant, shopping: ShoppingList, set_up: SetUpFn, model_server: ModelServer
) -> None:
    (agent,) = (await set_up()).runtime_data.agents.values()
    conversations = (f"conversation {number}" for number in count())

    def begin() -> Coroutine[Any, Any, Any]:
        model_server.script(ADD_MILK_CALL)
        return conversation.async_converse(home, ADD_MILK, next(conversations), Context(), "en", AGENT)

    async for _ in cancel_at_each_point(begin):
        await home.async_block_till_done()
        window = next(iter(agent.windows.loaded_windows().values()), None)
        made = [each for message in window.messages() for each in message.tool_calls] if window else []
        assert len(shopping.item_names) == len(made)
        assert window is None or not window.is_open
        agent.windows.drop(next(iter([*agent.windows.stats()]), ""))
        shopping.clear()
