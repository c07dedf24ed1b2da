"""Fixtures: a scripted model server, and OpenAI's SDK as its client."""

from collections.abc import AsyncIterator
from typing import Any

from openai import AsyncOpenAI
import pytest

from demo.model_server import ModelServer

from .model_talk import SYSTEM, TOOLS, Ask, Heard, user


@pytest.fixture(autouse=True)
def _idle_clock_only(idle_clock):
    """Keep the tests independent of the machine's speed."""


@pytest.fixture
async def server(socket_enabled) -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running


@pytest.fixture
async def client(server) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key="made-up", base_url=server.url, max_retries=0, timeout=5) as sdk:
        yield sdk


@pytest.fixture
def ask(client) -> Ask:
    """Return a function that sends a system message and the given messages, and returns the streamed answer."""

    async def stream(*messages: Any, model: str = "scripted", tools: Any = TOOLS) -> Heard:
        async with await client.chat.completions.create(
            model=model,
            messages=[SYSTEM, *(user(each) if isinstance(each, str) else each for each in messages)],
            tools=tools,
            stream=True,
            stream_options={"include_usage": True},
        ) as chunks:
            return Heard([chunk async for chunk in chunks])

    return stream
