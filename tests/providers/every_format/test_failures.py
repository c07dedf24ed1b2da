"""Every way in which an answer fails, and the error that it becomes."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import (
    AuthError,
    BadRequest,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    Incomplete,
    ProviderError,
    RateLimited,
    Refused,
    Unavailable,
)
from custom_components.windowed_conversation.providers.events import Provider, Request, Usage
from custom_components.windowed_conversation.window import Message, ToolCall
from tests.providers.byte_server import ByteServer
from tests.providers.conftest import over_either_client
from tests.providers.heard import Heard
from tests.providers.wires import FRAGMENTING_WIRES
from tests.providers.wires.parts import Call, Calls, End, Text, Wire

from .conftest import AskWire

JSON = {"Content-Type": "application/json"}
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


def called(call: ToolCall) -> tuple[Message, ...]:
    """Return a conversation with a call in it."""
    return Message.user("hello"), Message.assistant(tool_calls=(call,)), Message.tool(call.id, call.name, HALF)


async def failure(stream: Any, heard: Heard | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await (heard or Heard()).listen(stream)
    return raised.value


@over_either_client
@pytest.mark.parametrize(("status", "error"), STATUSES.items())
async def test_status_becomes_an_error_of_ours(
    status: int, error: type[ProviderError], wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(wire.error_body(status), status=status, headers=JSON)

    assert isinstance(await failure(ask_wire()), error)


@pytest.mark.parametrize("status", STATUSES)
async def test_error_is_silent_about_what_was_said(
    status: int, wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(wire.error_body(status), status=status, headers=JSON)

    assert SECRET not in str(await failure(ask_wire()))


@pytest.mark.parametrize("status", [401, 429, 500, 502])
async def test_page_instead_of_an_error_is_told_by_its_status(
    status: int, wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(PAGE, status=status, headers=HTML)

    assert isinstance(await failure(ask_wire()), STATUSES[status])


async def test_page_instead_of_an_answer_is_no_answer(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(PAGE, headers=HTML)

    assert isinstance(await failure(ask_wire()), BadStream)


async def test_delay_that_the_server_asks_for_is_kept(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(wire.error_body(429), status=429, headers={**JSON, "Retry-After": "7"})

    error = await failure(ask_wire())

    assert isinstance(error, RateLimited)
    assert error.retry_after == 7


async def test_error_is_told_after_one_attempt(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(wire.error_body(503), status=503, headers=JSON)

    await failure(ask_wire())

    assert len(byte_server.requests) == 1


async def test_stream_of_nothing_is_no_answer(ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply()

    assert isinstance(await failure(ask_wire()), BadStream)


@over_either_client
async def test_connection_cut_before_the_first_byte_is_told(ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(cut=True)

    assert isinstance(await failure(ask_wire()), Unavailable)


@over_either_client
async def test_connection_cut_inside_of_an_event_is_told(
    wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    first, second, *_ = wire.answer(Text(("yes", "and no")))
    byte_server.reply(first, second[: len(second) // 2], cut=True)

    assert isinstance(await failure(ask_wire()), Unavailable | BadStream)


async def test_connection_cut_after_the_last_word_is_told(
    wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(*wire.answer(Text(("yes",)), end=End.NONE), cut=True)
    heard = Heard()

    error = await failure(ask_wire(), heard)

    assert isinstance(error, Unavailable | BadStream)
    assert heard.text == "yes"


async def test_stream_without_its_terminal_marker_is_an_error(
    wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(*wire.answer(Text(("yes",)), end=End.NONE))
    heard = Heard()

    assert isinstance(await failure(ask_wire(), heard), BadStream)
    assert heard.finished == []


async def test_call_of_a_stream_without_its_terminal_marker_is_no_success(
    wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(*wire.answer(Calls((Call("call_a", "act", ("{}",)),)), end=End.NONE))

    assert isinstance(await failure(ask_wire()), BadStream)


async def test_error_in_the_stream_is_told_after_what_was_said(
    wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(*wire.answer(Text(("yes",)), end=End.NONE), wire.error_event())
    heard = Heard()

    assert isinstance(await failure(ask_wire(), heard), Unavailable)
    assert heard.text == "yes"


async def test_event_that_is_no_json_is_told(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    events = wire.answer(Text(("yes", "and no")))
    place = next(place for place, event in enumerate(events) if b"and no" in event)
    byte_server.reply(*events[:place], events[place].rstrip()[:-2] + b"\n\n", *events[place + 1 :])

    assert isinstance(await failure(ask_wire()), BadStream)


async def test_answer_that_is_too_long_is_incomplete(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(*wire.answer(Text(("yes",)), end=End.LENGTH))
    heard = Heard()

    assert isinstance(await failure(ask_wire(), heard), Incomplete)
    assert heard.text == "yes"


@pytest.mark.parametrize("wire", FRAGMENTING_WIRES, ids=lambda wire: wire.name)
async def test_call_that_was_cut_off_is_incomplete(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    call = Calls((Call("call_a", "act", ('{"name": "la',)),))
    byte_server.reply(*wire.answer(Text(("One moment.",)), call, end=End.LENGTH))

    assert isinstance(await failure(ask_wire()), Incomplete)


async def test_refusal_is_told_with_the_providers_reason(
    wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    byte_server.reply(*wire.answer(end=End.REFUSED))

    error = await failure(ask_wire())

    assert isinstance(error, Refused)
    assert error.reason


@over_either_client
async def test_server_that_is_not_there_is_told(wire: Wire, http_client: Any, unused_port: int) -> None:
    provider = wire.connect(f"http://127.0.0.1:{unused_port}", http_client)

    assert isinstance(await failure(provider.stream(Request("model", (Message.user("hello"),)))), Unavailable)


@over_either_client
@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_silence_is_told_apart_from_an_end(
    pieces: int, wire: Wire, http_client: Any, byte_server: ByteServer
) -> None:
    provider = wire.connect(byte_server.address, http_client, timeout=0.2)
    byte_server.reply(*wire.answer(Text(("yes", "and", "no")))[:pieces], asyncio.Event())

    assert isinstance(await failure(provider.stream(Request("model", (Message.user("hello"),)))), DeadlineExceeded)


@over_either_client
async def test_server_that_takes_no_connection_is_told(wire: Wire, http_client: Any, full_port: int) -> None:
    provider = wire.connect(f"http://127.0.0.1:{full_port}", http_client, timeout=0.2)

    assert isinstance(await failure(provider.stream(Request("model", (Message.user("hello"),)))), DeadlineExceeded)


@over_either_client
async def test_server_that_sends_no_headers_is_told(wire: Wire, http_client: Any, silent_port: int) -> None:
    provider = wire.connect(f"http://127.0.0.1:{silent_port}", http_client, timeout=0.2)

    assert isinstance(await failure(provider.stream(Request("model", (Message.user("hello"),)))), DeadlineExceeded)


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
    byte_server.reply(*wire.answer(Text(("yes",))))

    with suppress(BadRequest):
        assert (await Heard().listen(provider.stream(request_))).text == "yes"


async def test_usage_is_in_the_same_terms_everywhere(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(*wire.answer(Text(("yes",)), usage=Usage(input=1000, cached=600, output=50)))

    heard = await Heard().listen(ask_wire())

    (usage,) = heard.usages
    assert (usage.input, usage.cached, usage.output) == (1000, 600, 50)


async def test_reasoning_is_part_of_the_output(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(*wire.answer(Text(("yes",)), usage=Usage(input=10, output=50, reasoning=40)))

    heard = await Heard().listen(ask_wire())

    assert (heard.usages[0].output, heard.usages[0].reasoning) == (50, 40)


async def test_answer_without_usage_is_whole(wire: Wire, ask_wire: AskWire, byte_server: ByteServer) -> None:
    byte_server.reply(*wire.answer(Text(("yes",))))

    heard = await Heard().listen(ask_wire())

    assert heard.text == "yes"
    assert heard.finished != []


@pytest.mark.parametrize(("place", "output"), [(1, 7), (2, 7), (-1, 50)])
async def test_usage_that_is_told_twice_counts_once(
    place: int, output: int, wire: Wire, ask_wire: AskWire, byte_server: ByteServer
) -> None:
    events = wire.answer(Text(("yes", "sir")), usage=Usage(input=1000, cached=600, output=50))
    events.insert(place, wire.usage_event(Usage(input=1000, cached=600, output=output)))
    byte_server.reply(*events)

    heard = await Heard().listen(ask_wire())

    assert heard.text == "yessir"
    assert [(usage.input, usage.cached, usage.output) for usage in heard.usages] == [(1000, 600, 50)]
