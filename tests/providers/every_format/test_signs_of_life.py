"""Tests that every byte of an answer counts as a sign of life, even if it does not result in an event."""

import asyncio
from collections.abc import Callable

import pytest

from custom_components.windowed_conversation.providers.events import Provider, Request
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import ByteServer
from tests.providers.heard import Heard
from tests.providers.wires.parts import Text, Wire
from tests.waiting import until

from .conftest import QUESTION

SIGNS = {
    "a comment": (b": keep-alive\n\n",),
    "a ping": (b'event: ping\ndata: {"type": "ping"}\n\n',),
    "in progress": (b'data: {"type": "response.in_progress"}\n\n',),
    "keepalive": (b'event: keepalive\ndata: {"type": "keepalive", "sequence_number": 3}\n\n',),
    "half an event": (b'data: {"ty',),
    "a byte order mark": (b"\xef\xbb\xbf",),
}

type Observe = Callable[[tuple[bytes, ...]], tuple[Heard, list[None], asyncio.Task[Heard]]]


@pytest.fixture
def observed(wire: Wire, provider: Provider, byte_server: ByteServer) -> Observe:
    """Return a function that listens to the given bytes, followed by silence, and records the signs of life."""

    def observe(sent: tuple[bytes, ...]) -> tuple[Heard, list[None], asyncio.Task[Heard]]:
        heard, signs = Heard(), list[None]()
        byte_server.set_reply(*sent, asyncio.Event())
        request = Request("model", (Message.user(QUESTION),))
        stream = provider.stream(request, lambda: signs.append(None))
        return heard, signs, asyncio.create_task(heard.read(stream))

    return observe


@pytest.mark.parametrize("sent", SIGNS.values(), ids=SIGNS)
async def test_all_that_is_sent_before_an_answer_is_a_sign_of_life(sent: tuple[bytes, ...], observed: Observe) -> None:
    heard, signs, listening = observed(sent)
    await until(lambda: len(signs) == len(sent))
    listening.cancel()

    assert heard.events == []


async def test_each_part_of_an_answer_is_a_sign_of_life(wire: Wire, observed: Observe) -> None:
    answer = b"".join(wire.answer(Text(("hello",))))
    _, signs, listening = observed((answer[:7], answer[7:9], answer[9:]))

    await until(lambda: len(signs) == 3)
    listening.cancel()
