"""Tests for every way in which an answer fails, the error that it becomes, and how long its end is waited for."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import streaming
from custom_components.windowed_conversation.providers.errors import (
    AnswerRefused,
    AuthError,
    BadRequest,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    Incomplete,
    ProviderError,
    RateLimited,
    Unavailable,
)
from custom_components.windowed_conversation.providers.events import Event, FinishReason, Provider, Request, Usage
from custom_components.windowed_conversation.turn.attempts import IdleTimer
from custom_components.windowed_conversation.turn.limits import IDLE_TIMEOUT
from custom_components.windowed_conversation.window import Message, ToolCall
from tests.providers.byte_server import JSON, ByteServer, ForEver, Piece
from tests.providers.conftest import Hear, over_either_client
from tests.providers.heard import Heard
from tests.providers.wires import ALL_WIRES, FRAGMENTING_WIRES
from tests.providers.wires.chat import DONE
from tests.providers.wires.parts import Call, Calls, End, Text, Wire
from tests.waiting import until

HTML = {"Content-Type": "text/html"}
PAGE = b"<html><body><h1>Something went wrong</h1></body></html>"
SECRET = "pelican"

STATUSES: dict[int, type[ProviderError]] = {
    400: BadRequest,
    401: AuthError,
    403: AuthError,
    404: BadRequest,
    413: ContextOverflow,
    429: RateLimited,
    500: Unavailable,
    502: Unavailable,
    503: Unavailable,
    529: Unavailable,
}


HALF = "half \ud83d"
HELLO = Request("model", (Message.user("hello"),))


def called(call: ToolCall) -> tuple[Message, ...]:
    """Return a conversation that contains a tool call."""
    return Message.user("hello"), Message.assistant(tool_calls=(call,)), Message.tool(call.id, call.name, HALF)


@over_either_client
@pytest.mark.parametrize(("status", "error"), STATUSES.items())
async def test_status_becomes_an_error_of_ours(status: int, error: type[ProviderError], wire: Wire, fail: Hear) -> None:
    await fail(error, wire.error_body(status), status=status, headers=JSON)


@pytest.mark.parametrize("status", STATUSES)
async def test_error_is_silent_about_what_was_said(status: int, wire: Wire, fail: Hear) -> None:
    heard = await fail(ProviderError, wire.error_body(status), status=status, headers=JSON)

    assert SECRET not in str(heard.error)


@pytest.mark.parametrize("status", [401, 429, 500, 502])
async def test_page_instead_of_an_error_is_told_by_its_status(status: int, fail: Hear) -> None:
    await fail(STATUSES[status], PAGE, status=status, headers=HTML)


async def test_page_instead_of_an_answer_is_no_answer(fail: Hear) -> None:
    await fail(BadStream, PAGE, headers=HTML)


async def test_delay_that_the_server_asks_for_is_kept(wire: Wire, fail: Hear) -> None:
    heard = await fail(RateLimited, wire.error_body(429), status=429, headers={**JSON, "Retry-After": "7"})

    assert heard.error.retry_after == 7


async def test_error_is_told_after_one_attempt(wire: Wire, fail: Hear, byte_server: ByteServer) -> None:
    await fail(ProviderError, wire.error_body(503), status=503, headers=JSON)

    assert len(byte_server.requests) == 1


async def test_stream_of_nothing_is_no_answer(fail: Hear) -> None:
    await fail(BadStream)


@over_either_client
async def test_connection_cut_before_the_first_byte_is_told(fail: Hear) -> None:
    await fail(Unavailable, cut=True)


@over_either_client
async def test_connection_cut_inside_of_an_event_is_told(wire: Wire, fail: Hear) -> None:
    first, second, *_ = wire.answer(Text(("yes", "and no")))

    await fail((Unavailable, BadStream), first, second[: len(second) // 2], cut=True)


async def test_connection_cut_after_the_last_word_is_told(wire: Wire, fail: Hear) -> None:
    heard = await fail((Unavailable, BadStream), *wire.answer(Text(("yes",)), end=End.NONE), cut=True)

    assert heard.text == "yes"


async def test_stream_without_its_terminal_marker_is_an_error(wire: Wire, fail: Hear) -> None:
    heard = await fail(BadStream, *wire.answer(Text(("yes",)), end=End.NONE))

    assert heard.done_events == []


async def test_call_of_a_stream_without_its_terminal_marker_is_no_success(wire: Wire, fail: Hear) -> None:
    await fail(BadStream, *wire.answer(Calls((Call("call_a", "act", ("{}",)),)), end=End.NONE))


async def test_error_in_the_stream_is_told_after_what_was_said(wire: Wire, fail: Hear) -> None:
    heard = await fail(Unavailable, *wire.answer(Text(("yes",)), end=End.NONE), wire.error_event())

    assert heard.text == "yes"


@pytest.mark.parametrize(
    "data", [b"5", b"[]", b"null", b'"a text"', b"{", b"\xff\xfe", pytest.param(b"[" * 200_000, id="deep")]
)
async def test_event_that_is_no_object_is_an_error_after_the_words_before_it(
    data: bytes, wire: Wire, fail: Hear
) -> None:
    heard = await fail(BadStream, *wire.answer(Text(("yes",)), end=End.NONE), b"data: " + data + b"\n\n")

    assert heard.text == "yes"


async def test_answer_that_is_too_long_is_incomplete(wire: Wire, fail: Hear) -> None:
    heard = await fail(Incomplete, *wire.answer(Text(("yes",)), end=End.LENGTH))

    assert heard.text == "yes"


@pytest.mark.parametrize("wire", FRAGMENTING_WIRES, ids=lambda wire: wire.name)
async def test_call_that_was_cut_off_is_incomplete(wire: Wire, fail: Hear) -> None:
    call = Calls((Call("call_a", "act", ('{"name": "la',)),))

    await fail(Incomplete, *wire.answer(Text(("One moment.",)), call, end=End.LENGTH))


async def test_refusal_is_told_with_the_providers_reason(wire: Wire, fail: Hear) -> None:
    heard = await fail(AnswerRefused, *wire.answer(end=End.REFUSED))

    assert heard.error.reason


@over_either_client
async def test_server_that_is_not_there_is_told(wire: Wire, http_client: Any, unused_port: int) -> None:
    provider = wire.connect(f"http://127.0.0.1:{unused_port}", http_client)

    await Heard().fail(provider.stream(HELLO), Unavailable)


@over_either_client
@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_silence_is_told_apart_from_an_end(
    pieces: int, wire: Wire, http_client: Any, byte_server: ByteServer
) -> None:
    provider = wire.connect(byte_server.address, http_client, timeout=0.2)
    byte_server.set_reply(*wire.answer(Text(("yes", "and", "no")))[:pieces], asyncio.Event())

    await Heard().fail(provider.stream(HELLO), DeadlineExceeded)


@over_either_client
async def test_server_that_takes_no_connection_is_told(wire: Wire, http_client: Any, full_port: int) -> None:
    provider = wire.connect(f"http://127.0.0.1:{full_port}", http_client, timeout=0.2)

    await Heard().fail(provider.stream(HELLO), DeadlineExceeded)


@over_either_client
async def test_server_that_sends_no_headers_is_told(wire: Wire, http_client: Any, silent_port: int) -> None:
    provider = wire.connect(f"http://127.0.0.1:{silent_port}", http_client, timeout=0.2)

    await Heard().fail(provider.stream(HELLO), DeadlineExceeded)


@over_either_client
@pytest.mark.parametrize(
    "request_",
    [
        Request("model", (Message.user(HALF),)),
        Request("model", (Message.system(HALF), Message.user("hello"))),
        Request("model", (Message.user("hello"), Message.assistant(HALF), Message.user("hello"))),
        Request("model", called(ToolCall("call", "act", {"x": HALF}))),
        Request("model", called(ToolCall(HALF, "act", {}))),
        Request("model", called(ToolCall("call", HALF, {}))),
        Request(HALF, (Message.user("hello"),)),
    ],
    ids=["said", "instructions", "answer", "arguments", "id", "tool", "model"],
)
async def test_half_a_character_is_sent_whole_or_is_a_bad_request(
    request_: Request, wire: Wire, provider: Provider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*wire.answer(Text(("yes",))))

    with suppress(BadRequest):
        assert (await Heard().read(provider.stream(request_))).text == "yes"


async def test_usage_is_in_the_same_terms_everywhere(wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Text(("yes",)), usage=Usage(input=1000, cached=600, output=50)))

    (usage,) = heard.usages
    assert (usage.input, usage.cached, usage.output) == (1000, 600, 50)


@pytest.mark.parametrize("end", [End.LENGTH, End.REFUSED])
async def test_usage_of_an_answer_that_failed_is_billed(end: End, wire: Wire, fail: Hear) -> None:
    heard = await fail(ProviderError, *wire.answer(Text(("yes",)), end=end, usage=Usage(input=1000, output=50)))

    assert [usage.output for usage in heard.usages] == [50]


async def test_reasoning_is_part_of_the_output(wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Text(("yes",)), usage=Usage(input=10, output=50, reasoning=40)))

    assert (heard.usages[0].output, heard.usages[0].reasoning) == (50, 40)


@pytest.mark.parametrize(("place", "output"), [(1, 7), (2, 7), (-1, 50)])
async def test_usage_that_is_told_twice_counts_once(place: int, output: int, wire: Wire, hear: Hear) -> None:
    events = wire.answer(Text(("yes", "sir")), usage=Usage(input=1000, cached=600, output=50))
    events.insert(place, wire.usage_event(Usage(input=1000, cached=600, output=output)))
    heard = await hear(*events)

    assert heard.text == "yessir"
    assert [(usage.input, usage.cached, usage.output) for usage in heard.usages] == [(1000, 600, 50)]


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
