"""Who stops listening to an answer in either format frees the connection within 50 ms."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Event, Request
from custom_components.windowed_conversation.window import Message

from ..byte_server import ByteServer
from ..conftest import over_either_client
from ..heard import Heard
from ..openai_chat.test_connections import until
from ..wires.chat import ChatWire
from ..wires.parts import End, Text
from ..wires.responses import ResponsesWire

WITHIN = 0.05

pytestmark = over_either_client

type Wire = ChatWire | ResponsesWire
type Ask = Callable[[], AsyncIterator[Event]]


@pytest.fixture(params=[ChatWire(), ResponsesWire()], ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Return either format."""
    return request.param


@pytest.fixture
def ask(wire: Wire, http_client: Any, byte_server: ByteServer) -> Ask:
    """Say hello to a server that says a word and falls silent."""
    byte_server.reply(*wire.answer(Text(("once",)), end=End.NONE), asyncio.Event())
    request = Request("a-model", (Message.user("hello"),))
    return lambda: wire.connect(byte_server.address, http_client).stream(request)


async def test_cancelling_frees_the_connection(ask: Ask, byte_server: ByteServer) -> None:
    heard = Heard()
    listening = asyncio.create_task(heard.listen(ask()))
    await until(lambda: heard.text == "once")

    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening

    await until(lambda: byte_server.open_connections == 0, within=WITHIN)


async def test_cancelling_before_the_first_event_frees_the_connection(ask: Ask, byte_server: ByteServer) -> None:
    byte_server.reply(asyncio.Event())
    listening = asyncio.create_task(Heard().listen(ask()))
    await until(lambda: byte_server.open_connections == 1 and bool(byte_server.requests))

    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening

    await until(lambda: byte_server.open_connections == 0, within=WITHIN)


async def test_closing_early_frees_the_connection(ask: Ask, byte_server: ByteServer) -> None:
    async with aclosing(ask()) as events:
        await anext(events)

    await until(lambda: byte_server.open_connections == 0, within=WITHIN)
