"""Tests that text arrives complete and in order, wherever its bytes are split."""

import asyncio
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import AnswerDone, FinishReason, ReasoningDelta, TextDelta
from tests.providers.byte_server import ByteServer
from tests.providers.conftest import Ask, Hear
from tests.providers.heard import Heard
from tests.providers.wires import FRAGMENTING_WIRES
from tests.providers.wires.parts import Reasoning, Text, Wire

from .conftest import QUESTION

WORDS = ("Grüße ", "aus 東京 ", "\N{GRINNING FACE}", "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}")
MUCH = 2**20


async def test_text_comes_in_the_pieces_that_the_server_sends(wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Text(WORDS)))

    assert heard.texts == list(WORDS)


async def test_whole_answer_ends_with_its_terminal_event(wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Text(("yes",))))

    assert [event for event in heard.events if isinstance(event, AnswerDone)] == heard.events[-1:]
    assert heard.done_events[0].reason is FinishReason.STOP


@pytest.mark.parametrize("size", [1, 2, 3, 7, 61, pytest.param(MUCH, id="not at all")])
async def test_stream_may_be_cut_anywhere(size: int, wire: Wire, hear: Hear) -> None:
    stream = b"".join(wire.answer(Text(WORDS)))
    heard = await hear(*(stream[at : at + size] for at in range(0, len(stream), size)))

    assert heard.texts == list(WORDS)


async def test_text_is_heard_before_the_stream_ends(wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    ends = asyncio.Event()
    *events, terminal = wire.answer(Text(("first", "second")))
    byte_server.set_reply(*events, ends, terminal)
    stream = ask()

    assert await anext(stream) == TextDelta("first")

    ends.set()
    assert (await Heard().read(stream)).text == "second"


async def test_ten_thousand_tiny_chunks_are_whole(wire: Wire, hear: Hear) -> None:
    heard = await hear(b"".join(wire.answer(Text(tuple(str(n % 10) for n in range(10_000))))))

    assert heard.text == "0123456789" * 1000


async def test_one_huge_chunk_is_whole(wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Text(("word " * 200_000,))))

    assert heard.text == "word " * 200_000


async def test_reasoning_comes_while_the_model_thinks_and_apart_from_the_text(wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Reasoning(("I have ", "to think.")), Text(("yes",))))

    assert [event.text for event in heard.events if isinstance(event, ReasoningDelta)] == ["I have ", "to think."]
    assert heard.text == "yes"


async def test_unknown_event_is_passed_over(wire: Wire, hear: Hear) -> None:
    first, *others = wire.answer(Text(("yes",)))
    heard = await hear(first, wire.unknown_event(), *others)

    assert heard.text == "yes"


@pytest.mark.parametrize("wire", FRAGMENTING_WIRES, ids=lambda wire: wire.name)
async def test_comment_in_the_stream_is_passed_over(wire: Wire, hear: Hear) -> None:
    first, *others = wire.answer(Text(("yes",)))
    heard = await hear(b": keep-alive\n\n", first, b": keep-alive\n\n", *others)

    assert heard.text == "yes"


async def test_question_is_what_the_server_is_sent(wire: Wire, byte_server: ByteServer, hear: Hear) -> None:
    await hear(*wire.answer(Text(("yes",))))

    assert wire.request_text(byte_server.requests[0]) == QUESTION


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
async def test_byte_order_mark_may_come_in_parts(cut: int, wire: Wire, hear: Hear) -> None:
    answer = b"\xef\xbb\xbf" + b"".join(wire.answer(Text(("hello",))))
    heard = await hear(answer[:cut], answer[cut:])

    assert heard.text == "hello"


@pytest.mark.parametrize("wire", FRAGMENTING_WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("kind", [Text, Reasoning])
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("hi \ud83d", "\ude00 there"), "hi \N{GRINNING FACE} there"),
        (("\ud83d", "!"), "\N{REPLACEMENT CHARACTER}!"),
        (("!", "\ude00"), "!\N{REPLACEMENT CHARACTER}"),
    ],
)
async def test_halves_of_characters_are_joined_or_replaced(
    kind: Any, pieces: tuple[str, ...], text: str, wire: Wire, hear: Hear
) -> None:
    heard = await hear(*wire.answer(kind(pieces)))

    assert heard.text + heard.reasoning == text
