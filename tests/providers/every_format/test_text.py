"""Text arrives complete and in order, however its bytes are cut."""

import asyncio

import pytest

from custom_components.windowed_conversation.providers.events import Finished, FinishReason, ReasoningDelta, TextDelta
from tests.providers.byte_server import ByteServer
from tests.providers.heard import Heard
from tests.providers.wires import FRAGMENTING_WIRES
from tests.providers.wires.parts import Reasoning, Text, Wire

from .conftest import QUESTION, AskWire

WORDS = ("Grüße ", "aus 東京 ", "\N{GRINNING FACE}", "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}")


async def test_text_comes_in_the_pieces_that_the_server_sends(
    wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(*wire.answer(Text(WORDS)))

    heard = await Heard().listen(ask_wire())

    assert heard.texts == list(WORDS)


async def test_whole_answer_ends_with_its_terminal_event(
    wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(*wire.answer(Text(("yes",))))

    heard = await Heard().listen(ask_wire())

    assert [event for event in heard.events if isinstance(event, Finished)] == heard.events[-1:]
    assert heard.finished[0].reason is FinishReason.STOP


@pytest.mark.parametrize("size", [1, 2, 3, 7, 61])
async def test_stream_may_be_cut_anywhere(size: int, wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    stream = b"".join(wire.answer(Text(WORDS)))
    byte_server.reply(*(stream[at : at + size] for at in range(0, len(stream), size)))

    heard = await Heard().listen(ask_wire())

    assert heard.texts == list(WORDS)


async def test_stream_may_come_at_once(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(b"".join(wire.answer(Text(WORDS))))

    heard = await Heard().listen(ask_wire())

    assert heard.texts == list(WORDS)


async def test_text_is_heard_before_the_stream_ends(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    ends = asyncio.Event()
    *events, terminal = wire.answer(Text(("first", "second")))
    byte_server.reply(*events, ends, terminal)
    stream = ask_wire()

    assert await anext(stream) == TextDelta("first")

    ends.set()
    assert (await Heard().listen(stream)).text == "second"


async def test_ten_thousand_tiny_chunks_are_whole(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(b"".join(wire.answer(Text(tuple(str(n % 10) for n in range(10_000))))))

    heard = await Heard().listen(ask_wire())

    assert heard.text == "0123456789" * 1000


async def test_one_huge_chunk_is_whole(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(*wire.answer(Text(("word " * 200_000,))))

    heard = await Heard().listen(ask_wire())

    assert heard.text == "word " * 200_000


async def test_reasoning_is_kept_apart_from_the_text(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(*wire.answer(Reasoning(("I have ", "to think.")), Text(("yes",))))

    heard = await Heard().listen(ask_wire())

    assert (heard.reasoning, heard.text) == ("I have to think.", "yes")


async def test_reasoning_comes_while_the_model_thinks(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(*wire.answer(Reasoning(("I have ", "to think.")), Text(("yes",))))

    heard = await Heard().listen(ask_wire())

    assert [event.text for event in heard.events if isinstance(event, ReasoningDelta)] == ["I have ", "to think."]


async def test_unknown_event_is_passed_over(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    first, *others = wire.answer(Text(("yes",)))
    byte_server.reply(first, wire.unknown_event(), *others)

    heard = await Heard().listen(ask_wire())

    assert heard.text == "yes"


@pytest.mark.parametrize("wire", FRAGMENTING_WIRES, ids=lambda wire: wire.name)
async def test_comment_in_the_stream_is_passed_over(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    first, *others = wire.answer(Text(("yes",)))
    byte_server.reply(b": keep-alive\n\n", first, b": keep-alive\n\n", *others)

    heard = await Heard().listen(ask_wire())

    assert heard.text == "yes"


async def test_question_is_what_the_server_is_sent(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(*wire.answer(Text(("yes",))))

    await Heard().listen(ask_wire())

    assert wire.request_text(byte_server.requests[0]) == QUESTION


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
async def test_byte_order_mark_may_come_in_parts(
    cut: int, wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    answer = b"\xef\xbb\xbf" + b"".join(wire.answer(Text(("hello",))))
    byte_server.reply(answer[:cut], answer[cut:])

    heard = await Heard().listen(ask_wire())

    assert heard.text == "hello"
