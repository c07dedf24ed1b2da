"""A scripted model server, and a real SDK to talk to it."""

from collections.abc import AsyncIterator
from typing import Any

from openai import AsyncOpenAI
import pytest

from demo.model_server import ModelServer

from .model_talk import SYSTEM, TOOLS, Ask, Heard, user


@pytest.fixture(autouse=True)
def _on_any_machine(idle_clock):
    """Have no test depend on the speed of the machine."""


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
    """Streams an answer to the messages after a system message."""

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
