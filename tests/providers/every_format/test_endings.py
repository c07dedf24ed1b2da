"""Tests that a complete answer succeeds however its server ends the stream, even if the server does not end it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import streaming
from custom_components.windowed_conversation.providers.errors import DeadlineExceeded
from custom_components.windowed_conversation.providers.events import Event, FinishReason, Provider, Request, Usage
from custom_components.windowed_conversation.turn.attempts import IdleTimer
from custom_components.windowed_conversation.turn.limits import IDLE_TIMEOUT
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import ByteServer, ForEver, Piece
from tests.providers.conftest import Hear, over_either_client
from tests.providers.heard import Heard
from tests.providers.wires import ALL_WIRES, FRAGMENTING_WIRES
from tests.providers.wires.chat import DONE
from tests.providers.wires.parts import Call, Calls, End, Text, Wire
from tests.waiting import until

# The formats whose terminal marker is part of an ordinary event: usage may follow it, and text, too, if a server errs.
MARKING_WIRES = tuple(wire for wire in ALL_WIRES if wire.name in ("chat", "gemini"))
REQUEST = Request("model", (Message.user("hello"),))
USAGE = Usage(input=1000, cached=600, output=50)


def marked(wire: Wire, *words: str, usage: Usage | None = None) -> list[bytes]:
    """Return the events of an answer up to its terminal marker."""
    return [event for event in wire.answer(Text(words), usage=usage) if event != DONE]


async def stream_within(pulse: IdleTimer, events: AsyncGenerator[Event]) -> AsyncIterator[Event]:
    """Yield the events of a stream, subject to the idle timeout of `pulse`."""
    while (event := await pulse.next_event(events)) is not None:
        yield event


# The ways in which the stream of a complete answer ends, with the formats to which each applies.
ENDINGS: dict[str, tuple[tuple[Wire, ...], Callable[[Wire], tuple[Piece, ...]]]] = {
    "silence": (ALL_WIRES, lambda wire: (*marked(wire, "yes", usage=USAGE), asyncio.Event())),
    "open": (ALL_WIRES, lambda wire: (*wire.answer(Text(("yes",)), usage=USAGE), asyncio.Event())),
    "events": (ALL_WIRES, lambda wire: (*marked(wire, "yes", usage=USAGE), ForEver(wire.unknown_event()))),
    "comments": (FRAGMENTING_WIRES, lambda wire: (*marked(wire, "yes", usage=USAGE), ForEver(b": keep-alive\n\n"))),
    "late words": (
        MARKING_WIRES,
        lambda wire: (*marked(wire, "y", usage=USAGE), *marked(wire, "es"), asyncio.Event()),
    ),
}


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the provider wait only a moment for the end of an answer."""
    monkeypatch.setattr(streaming, "STREAM_END_TIMEOUT", 0.05)


@pytest.fixture
def long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the provider wait for the end of an answer longer than a test takes."""
    monkeypatch.setattr(streaming, "STREAM_END_TIMEOUT", 60)


@pytest.fixture
def patient(wire: Wire, http_client: Any, byte_server: ByteServer) -> Provider:
    """Return a provider whose HTTP client has a longer timeout than the turn."""
    return wire.connect(byte_server.address, http_client, timeout=60)


@pytest.fixture
def hear_in_a_turn(patient: Provider, byte_server: ByteServer) -> Hear:
    """Return a function that makes the server reply with the given pieces and returns the events heard by a turn.

    Like a turn, it stops listening if the server sends nothing for too long.
    """

    async def hear_in_a_turn(*pieces: Piece, **reply: Any) -> Heard:
        byte_server.set_reply(*pieces, **reply)
        pulse = IdleTimer(5)
        pulse.record_activity()
        async with aclosing(patient.stream(REQUEST)) as stream:
            return await Heard().read(stream_within(pulse, stream))

    return hear_in_a_turn


@over_either_client
@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize(
    ("wire", "pieces"),
    [
        pytest.param(wire, pieces, id=f"{wire.name}-{name}")
        for name, (wires, pieces) in ENDINGS.items()
        for wire in wires
    ],
)
async def test_stream_that_does_not_end_costs_a_whole_answer_nothing(
    wire: Wire, pieces: Callable[[Wire], tuple[Piece, ...]], byte_server: ByteServer, hear_in_a_turn: Hear
) -> None:
    heard = await hear_in_a_turn(*pieces(wire))

    assert heard.text == "yes"
    assert [usage.output for usage in heard.usages] == [50]
    assert heard.done_events == heard.events[-1:]
    await until(lambda: byte_server.open_connections == 0)
    task = asyncio.current_task()
    assert task
    assert not task.cancelling()


@over_either_client
async def test_connection_that_breaks_after_the_marker_costs_nothing(wire: Wire, hear_in_a_turn: Hear) -> None:
    heard = await hear_in_a_turn(*marked(wire, "yes"), cut=True)

    assert heard.text == "yes"
    assert heard.done_events == heard.events[-1:]


@pytest.mark.usefixtures("short_grace")
async def test_calls_of_a_stream_that_does_not_end_are_announced(wire: Wire, hear_in_a_turn: Hear) -> None:
    events = wire.answer(Calls((Call("call_a", "act", ('{"n": 1}',)),)))
    heard = await hear_in_a_turn(*(event for event in events if event != DONE), asyncio.Event())

    assert heard.called == [("act", {"n": 1})]
    assert [finished.reason for finished in heard.done_events] == [FinishReason.TOOL_CALLS]


@pytest.mark.usefixtures("short_grace")
async def test_silence_before_the_marker_stays_an_error(wire: Wire, http_client: Any, byte_server: ByteServer) -> None:
    provider = wire.connect(byte_server.address, http_client, timeout=0.5)
    byte_server.set_reply(*wire.answer(Text(("yes",)), end=End.NONE), asyncio.Event())
    heard = await Heard().fail(provider.stream(REQUEST), DeadlineExceeded)

    assert heard.done_events == []


@pytest.mark.parametrize("wire", MARKING_WIRES, ids=lambda wire: wire.name)
@pytest.mark.usefixtures("long_grace")
async def test_usage_that_comes_late_counts(wire: Wire, patient: Provider, byte_server: ByteServer) -> None:
    counted = asyncio.Event()
    byte_server.set_reply(*marked(wire, "yes"), counted, wire.usage_event(USAGE))
    heard = Heard()
    listening = asyncio.create_task(heard.read(patient.stream(REQUEST)))
    await until(lambda: heard.text != "")

    counted.set()
    await listening

    assert [(usage.input, usage.cached, usage.output) for usage in heard.usages] == [(1000, 600, 50)]


@pytest.mark.parametrize("wire", MARKING_WIRES, ids=lambda wire: wire.name)
@pytest.mark.usefixtures("long_grace")
async def test_words_that_come_after_the_marker_are_heard_at_once(
    wire: Wire, patient: Provider, byte_server: ByteServer
) -> None:
    ends = asyncio.Event()
    byte_server.set_reply(*marked(wire, "yes"), *marked(wire, ", sir"), ends)
    heard = Heard()
    listening = asyncio.create_task(heard.read(patient.stream(REQUEST)))

    await until(lambda: heard.text == "yes, sir")

    ends.set()
    await listening


@over_either_client
@pytest.mark.usefixtures("long_grace")
async def test_cancelling_the_wait_for_the_end_frees_the_connection(
    wire: Wire, patient: Provider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*marked(wire, "yes"), asyncio.Event())
    heard = Heard()
    listening = asyncio.create_task(heard.read(patient.stream(REQUEST)))
    await until(lambda: heard.text != "")
    await asyncio.sleep(0.05)

    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening

    assert heard.done_events == []
    await until(lambda: byte_server.open_connections == 0)


def test_wait_for_the_end_is_shorter_than_the_idle_timeout() -> None:
    assert streaming.STREAM_END_TIMEOUT < IDLE_TIMEOUT


async def test_error_after_the_answer_takes_nothing_back(wire: Wire, hear: Hear) -> None:
    heard = await hear(*marked(wire, "hello"), wire.error_event())

    assert heard.text == "hello"
    assert len(heard.done_events) == 1
