"""Fixtures for a complete turn without Home Assistant: window, provider, scripted model server, home, and reply."""

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

import httpx2
from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.providers.openai.clients import ChatCompletionsProvider
from custom_components.windowed_conversation.turn import asking, limits
from custom_components.windowed_conversation.turn.limits import Budget
from custom_components.windowed_conversation.turn.model import Model, Question
from custom_components.windowed_conversation.turn.routing import RoutingMode
from custom_components.windowed_conversation.turn.state import Turn
from custom_components.windowed_conversation.window import EstimatedCounter, Window, WindowPolicy
from demo.model_server import ModelServer
from tests.providers.byte_server import ByteServer

from .world import TOOLS, Ear, Home, Local, take_turn

PREFIX = "[CONTEXT: time: Monday 2026-11-23 08:00; area: Attic]\n\n"

type Take = Callable[..., Coroutine[Any, Any, Turn]]


@pytest.fixture(autouse=True)
def _no_real_waits(leaping_clock: None) -> None:
    """Make the tests independent of the machine's speed: the clock leaps over every wait."""


@pytest.fixture
async def http_client() -> AsyncIterator[Any]:
    async with httpx2.AsyncClient(verify=False) as client:
        yield client


@pytest.fixture
def window() -> Window:
    return Window("conversation", WindowPolicy(), EstimatedCounter())


@pytest.fixture
def home() -> Home:
    return Home({"kitchen light": "off", "bedroom light": "off"})


@pytest.fixture
def reply(home: Home) -> Ear:
    return Ear(home.tools)


@pytest.fixture
def question(http_client: Any, model_server: ModelServer) -> Question:
    """Return a question whose model is served by the scripted model server."""
    return Question(
        model=Model("own", provider(http_client, model_server.url), "scripted", Budget(WindowPolicy())),
        system_prompt="You are a voice assistant.",
        stamp_prefix=PREFIX,
        tools=TOOLS,
        empty_answer_phrase="Done.",
    )


def provider(http_client: Any, url: str) -> ChatCompletionsProvider:
    sdk = AsyncOpenAI(api_key="made-up", base_url=url, http_client=http_client, max_retries=0)
    return ChatCompletionsProvider(sdk)


@pytest.fixture
def byte_question(http_client: Any, byte_server: ByteServer, question: Question) -> Question:
    """Return a question whose model is served by the server that replies with given bytes."""
    return replace(question, model=replace(question.model, provider=provider(http_client, byte_server.url)))


@pytest.fixture
def take(window: Window, reply: Ear, question: Question, monkeypatch: pytest.MonkeyPatch) -> Take:
    """Return a function that takes a turn with the given text.

    Its other arguments are the question, the routing, the local answer, and the limits of the turn: its times in
    seconds, and the rounds of its tool loop.
    """

    async def take(
        text: str,
        *,
        asked: Question | Exception | None = None,
        routing: RoutingMode = RoutingMode.MODEL_ONLY,
        local: Local | None = None,
        idle_timeout: float = limits.IDLE_TIMEOUT,
        max_tool_rounds: int = 10,
        turn_timeout: float = limits.DEFAULT_TURN_TIMEOUT,
    ) -> Turn:
        monkeypatch.setattr(limits, "IDLE_TIMEOUT", idle_timeout)
        monkeypatch.setattr(asking, "MAX_TOOL_ROUNDS", max_tool_rounds)
        more: dict[str, Any] = {"routing": routing, "local": local, "turn_timeout": turn_timeout}
        return await take_turn(window, text, asked or question, reply, **more)

    return take
