"""Tests for every way in which an answer fails, and the error that it becomes."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

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
from custom_components.windowed_conversation.providers.events import Provider, Request, Usage
from custom_components.windowed_conversation.window import Message, ToolCall
from tests.providers.byte_server import JSON, ByteServer
from tests.providers.conftest import Hear, over_either_client
from tests.providers.heard import Heard
from tests.providers.wires import FRAGMENTING_WIRES
from tests.providers.wires.parts import Call, Calls, End, Text, Wire

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
