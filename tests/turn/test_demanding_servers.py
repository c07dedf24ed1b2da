"""Tests for servers that require their own fields back, or refuse them.

Their conversations must continue, and no context size may be learned from their refusals.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from custom_components.windowed_conversation.turn.limits import Budget
from custom_components.windowed_conversation.turn.model import Model, Question
from custom_components.windowed_conversation.window import Role, Window, WindowPolicy
from demo.model_server import ModelServer
from demo.model_server.shapes import DEMAND_SHAPES
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.gemini import GeminiWire
from tests.providers.wires.parts import Wire
from tests.providers.wires.responses import ResponsesWire

from .conftest import Take
from .world import Home

ON, OFF = "switch on the kitchen light", "switch off the kitchen light"

type Ask = Callable[[Wire, str], Question]

with_each_server = pytest.mark.parametrize("server", DEMAND_SHAPES)


@pytest.fixture
def ask(question: Question, http_client: Any, model_server: ModelServer) -> Ask:
    """Return a function that builds a question for a model in a wire format; each model learns its own size."""

    def ask(wire: Wire, model: str) -> Question:
        provider = wire.connect(model_server.address, http_client)
        return replace(question, model=Model(wire.name, provider, model, Budget(WindowPolicy(), 8_000)))

    return ask


@pytest.fixture
def window(window: Window) -> Window:
    window.set_policy(WindowPolicy(history_tokens=8_000))
    return window


async def ten_turns(take: Take, asked: Question) -> list[Exception | None]:
    """Take ten turns with one tool call each. Return the error of each turn, or None."""
    outcomes = [await take(OFF if turn % 2 else ON, asked=asked) for turn in range(10)]
    return [outcome.error for outcome in outcomes]


@pytest.mark.parametrize("begun", [None, GeminiWire()], ids=lambda wire: getattr(wire, "name", "new"))
@with_each_server
async def test_ten_turns_with_tools_are_answered(
    *, server: str, begun: Wire | None, ask: Ask, take: Take, window: Window, home: Home
) -> None:
    for other in [ask(begun, "scripted+reasoning")] if begun else []:
        await take(ON, asked=other)
        await take(OFF, asked=other)
    asked = ask(ChatWire(), f"scripted+{server}")

    errors = await ten_turns(take, asked)

    assert errors == [None] * 10
    assert home.ran[-10:] == ["on kitchen light", "off kitchen light"] * 5
    assert (asked.model.size.get_context_tokens(None), window.stats().evicted_exchanges) == (None, 0)


@with_each_server
async def test_server_refuses_once_at_most(server: str, ask: Ask, take: Take, model_server: ModelServer) -> None:
    await take(ON, asked=ask(ResponsesWire(), "scripted+reasoning"))

    await ten_turns(take, ask(ChatWire(), f"scripted+{server}"))

    refused = [record for record in model_server.requests if record.status != 200]
    assert len(refused) == (server in ("deepseek", "groq"))


async def test_tool_rounds_and_turns_use_one_connection(ask: Ask, take: Take, model_server: ModelServer) -> None:
    await ten_turns(take, ask(ChatWire(), "scripted"))

    assert len({record.client for record in model_server.requests}) == 1


@pytest.mark.parametrize("shapes", ["deepseek", "deepseek+no_usage"])
async def test_what_is_sent_back_counts_in_the_window(shapes: str, ask: Ask, take: Take, window: Window) -> None:
    await take(ON, asked=ask(ChatWire(), f"scripted+{shapes}"))

    answers = [message for message in window.messages() if message.role is Role.ASSISTANT]
    assert all(message.native and message.native.tokens > 5 for message in answers)
