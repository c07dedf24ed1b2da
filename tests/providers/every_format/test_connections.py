"""Tests that a cancelled answer releases its connection at once, and that the HTTP client stays open for its owner."""

import asyncio
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import ProviderError
from custom_components.windowed_conversation.providers.events import Request
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import ByteServer, ForEver, Piece
from tests.providers.conftest import Ask, Hear, over_either_client
from tests.providers.heard import Heard, closing
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.parts import Call, Calls, End, Text, Wire
from tests.waiting import until

AT_ONCE = 0.05

pytestmark = over_either_client


async def freed(byte_server: ByteServer) -> None:
    """Wait until the server has no open connection, which should happen at once."""
    await until(lambda: byte_server.open_connections == 0, within=AT_ONCE)


@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_cancelling_frees_the_connection(pieces: int, wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    byte_server.set_reply(*wire.answer(Text(("yes", "and", "no")))[:pieces], asyncio.Event())
    listening = asyncio.create_task(Heard().read(ask()))
    await until(lambda: byte_server.open_connections == 1 and bool(byte_server.requests))

    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening

    await freed(byte_server)


async def test_closing_early_frees_the_connection(wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    byte_server.set_reply(*wire.answer(Text(("yes",)), end=End.NONE), asyncio.Event())

    async with closing(ask()) as events:
        await anext(events)

    await freed(byte_server)


async def test_failed_answer_frees_the_connection(wire: Wire, byte_server: ByteServer, fail: Hear) -> None:
    await fail(ProviderError, *wire.answer(Text(("yes",)), end=End.NONE), wire.error_event(), asyncio.Event())

    await freed(byte_server)


async def test_stream_that_nobody_began_sends_nothing(ask: Ask, byte_server: ByteServer) -> None:
    async with closing(ask()):
        pass

    assert byte_server.requests == []


async def test_client_stays_its_owners(
    wire: Wire, http_client: Any, ask: Ask, byte_server: ByteServer, fail: Hear
) -> None:
    await fail(ProviderError, *wire.answer(Text(("yes",)), end=End.NONE), cut=True)
    byte_server.set_reply(*wire.answer(Text(("hello", " there"))))
    async with closing(ask()) as events:
        await anext(events)

    heard = await Heard().read(ask())

    assert heard.text == "hello there"
    assert not http_client.is_closed


async def test_streams_side_by_side_do_not_mix(wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    byte_server.set_reply()
    for n in range(8):
        byte_server.add_reply(*wire.answer(Text((str(n), str(n)))))
    await Heard().fail(ask())

    heard = await asyncio.gather(*(Heard().read(ask()) for _ in range(8)))

    assert sorted(each.text for each in heard) == [f"{n}{n}" for n in range(8)]


async def twenty(wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    """Send twenty requests one after another; every other answer contains a tool call."""
    call = Calls((Call("call_a", "intent__HassTurnOn", ("{}",)),))
    for number in range(20):
        byte_server.set_reply(*wire.answer(call if number % 2 else Text(("yes",))))
        await Heard().read(ask())


@pytest.mark.parametrize("wire", [*ALL_WIRES, ChatWire(Dialect.OPENAI)], ids=lambda wire: wire.name)
async def test_twenty_answers_use_one_connection(wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    await twenty(wire, ask, byte_server)

    assert byte_server.connections == 1


@pytest.mark.parametrize("end", [ForEver(b":\n\n"), b" " * 2**20, asyncio.Event()], ids=["pings", "much", "silence"])
async def test_what_comes_after_an_answer_is_not_waited_for(
    end: Piece, wire: Wire, ask: Ask, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*wire.answer(Text(("yes",))), end)

    async with asyncio.timeout(1):
        heard = await Heard().read(ask())

    assert heard.text == "yes"


async def test_end_of_a_chat_is_waited_for_a_tenth_of_a_second(http_client: Any, byte_server: ByteServer) -> None:
    wire = ChatWire()
    byte_server.set_reply(*wire.answer(Text(("yes",))), asyncio.Event())
    request = Request("model", (Message.user("hello"),))

    async with asyncio.timeout(0.2):
        heard = await Heard().read(wire.connect(byte_server.address, http_client).stream(request))

    assert heard.text == "yes"
