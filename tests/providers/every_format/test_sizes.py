"""Tests for servers that send too much, whose error names the exceeded limit, and for the limit of an answer."""

from collections.abc import Awaitable, Callable, Iterable
import gzip
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import streaming
from custom_components.windowed_conversation.providers.errors import BadStream, Incomplete, Unavailable
from custom_components.windowed_conversation.providers.events import Provider, Request
from custom_components.windowed_conversation.providers.models import ModelProfile
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import JSON, ByteServer, ForEver, Piece
from tests.providers.conftest import Ask, Hear
from tests.providers.heard import Heard
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.parts import Call, Calls, End, Reasoning, Text, Wire
from tests.waiting import until

KILOBYTE, MEGABYTE = 2**10, 2**20
# Each comment has a kilobyte instead of three bytes, because reading a third of a million lines per megabyte takes
# seconds.
COMMENT = b":" + b" " * (KILOBYTE - 3) + b"\n\n"

ANSWER = "the answer is longer than 4 MB"
EVENT = "an event is longer than 4 MB"
SENT = "the server sent more than it may"
ENCODED = "the answer is in an encoding that was not asked for"


def split_text(text: str, size: int) -> tuple[str, ...]:
    return tuple(text[at : at + size] for at in range(0, len(text), size))


def call(number: int, length: int) -> Call:
    """Return a call whose arguments have this length in characters."""
    arguments = f'{{"text": "{"x" * (length - 12)}"}}'
    return Call(f"call_{number}", "act", split_text(arguments, 64 * KILOBYTE))


async def failure(asked: Awaitable[Any], byte_server: ByteServer) -> BadStream:
    """Return the error that the awaitable raises, after waiting until the connection is closed."""
    with pytest.raises(BadStream) as raised:
        await asked
    await until(lambda: byte_server.open_connections == 0)
    return raised.value


@pytest.fixture
def refused(ask: Ask, byte_server: ByteServer) -> Callable[[Iterable[bytes]], Awaitable[str]]:
    """Return a function that returns the error message for an endless answer that begins with the given events."""

    async def refused(events: Iterable[bytes]) -> str:
        byte_server.set_reply(*events, ForEver(b":\n\n"))
        return str(await failure(Heard().read(ask()), byte_server))

    return refused


type Refused = Callable[[Iterable[bytes]], Awaitable[str]]


def calls(number: int) -> Calls:
    """Return `number` short calls."""
    return Calls(tuple(Call(f"call_{at}", "act", ('{"a": 1}',)) for at in range(number)))


LONG = split_text("x" * (4 * MEGABYTE + 1), MEGABYTE)
MANY_VALUES = json.dumps({"x": [0] * 10_000}, separators=(",", ":"))
# For each kind of answer, the error message and the events that cause it.
ANSWERS: dict[str, tuple[str, Callable[[Wire], Iterable[bytes]]]] = {
    "text": (ANSWER, lambda wire: wire.answer(Text(LONG), end=End.NONE)),
    "reasoning": (ANSWER, lambda wire: wire.answer(Reasoning(LONG), end=End.NONE)),
    "event": (EVENT, lambda _: (b"data: ", b"x" * (4 * MEGABYTE))),
    "values": (
        "an event has more than 50000 values",
        lambda _: (b'data: {"x": [0' + b",{}" * 50_000 + b"]}\n\n",),
    ),
    "arguments": (
        "the arguments of a tool call are longer than 256 KB",
        lambda wire: wire.answer(Calls((call(0, 256 * KILOBYTE + 100),)), end=End.NONE),
    ),
    "arguments_together": (
        "the arguments of the tool calls are longer than 1 MB",
        lambda wire: wire.answer(Calls(tuple(call(at, 250 * KILOBYTE) for at in range(5))), end=End.NONE),
    ),
    "values_of_arguments": (
        "the arguments of a tool call have more than 10000 values",
        lambda wire: wire.answer(Calls((Call("call_0", "act", (MANY_VALUES,)),))),
    ),
    "calls": ("the answer has more than 64 tool calls", lambda wire: wire.answer(calls(65), end=End.NONE)),
}


@pytest.mark.parametrize(("limit", "events"), ANSWERS.values(), ids=ANSWERS)
async def test_answer_over_a_limit_is_refused(
    limit: str, events: Callable[[Wire], Iterable[bytes]], wire: Wire, refused: Refused
) -> None:
    assert await refused(events(wire)) == limit


BOMB = gzip.compress(COMMENT * 33 * KILOBYTE)
GZIP = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}


@pytest.mark.parametrize(
    ("limit", "pieces", "reply"),
    [
        pytest.param(EVENT, (b"data: ", ForEver(b"x" * 256 * KILOBYTE)), {}, id="line"),
        pytest.param(ANSWER, (b'{"x": "', ForEver(b"x" * 256 * KILOBYTE)), {"headers": JSON}, id="json"),
        pytest.param(SENT, (ForEver(COMMENT * KILOBYTE),), {}, id="comments"),
        pytest.param(SENT, (ForEver(b" " * MEGABYTE),), {}, id="white_space"),
        pytest.param(ENCODED, (BOMB,), {"headers": GZIP}, id="compressed"),
    ],
)
async def test_answer_without_an_end_is_refused(
    limit: str, pieces: tuple[Piece, ...], reply: dict[str, Any], ask: Ask, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*pieces, **reply)

    assert str(await failure(Heard().read(ask()), byte_server)) == limit


async def test_text_of_4_mb_is_heard(wire: Wire, fail: Hear) -> None:
    words = split_text("x" * (4 * MEGABYTE - KILOBYTE), MEGABYTE)
    heard = await fail(Incomplete, *wire.answer(Text(words), end=End.LENGTH))

    assert len(heard.text) == 4 * MEGABYTE - KILOBYTE


async def test_text_in_too_many_pieces_is_refused(
    wire: Wire, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_MAX_EVENTS", 100)

    assert await refused(wire.answer(Text(("x",) * 101), end=End.NONE)) == "the answer has more than 100 pieces"


async def test_64_calls_are_heard(wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    byte_server.set_reply(*wire.answer(calls(64)))

    assert len((await Heard().read(ask())).calls) == 64


async def test_error_over_64_kb_is_told_by_its_status(byte_server: ByteServer, fail: Hear) -> None:
    await fail(Unavailable, b'{"error": {"message": "', ForEver(b"x" * 256 * KILOBYTE), status=500, headers=JSON)

    await until(lambda: byte_server.open_connections == 0)


async def test_list_over_8_mb_is_refused(wire: Wire, provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(wire.model_list(["a"])[:-1], ForEver(b" " * 256 * KILOBYTE), headers=JSON)

    assert str(await failure(provider.list_models(), byte_server)) == SENT


async def test_error_over_64_kb_of_the_list_is_told_by_its_status(provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(b'{"error": "', ForEver(b"x" * 256 * KILOBYTE), status=500, headers=JSON)

    with pytest.raises(Unavailable):
        await provider.list_models()

    await until(lambda: byte_server.open_connections == 0)


async def test_list_of_many_values_is_refused(wire: Wire, provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(wire.model_list(["a"]).rstrip()[:-1] + b', "x": [0' + b",{}" * 250_000 + b"]}", headers=JSON)

    with pytest.raises(BadStream, match=r"^the list of models has more than 250000 values$"):
        await provider.list_models()


async def test_list_of_many_models_is_refused(wire: Wire, provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(wire.model_list([str(number) for number in range(10_001)]), headers=JSON)

    with pytest.raises(BadStream, match=r"^the server lists more than 10000 models$"):
        await provider.list_models()


NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
EVERY = pytest.mark.parametrize(
    "wire", [*ALL_WIRES, ChatWire(Dialect.OPENAI)], ids=lambda w: f"{w.name}{len(w.no_calls)}"
)


def limits(body: dict[str, Any]) -> list[int]:
    """Return the limits of the answer in a request body, whatever their names."""
    fields = {**body, **body.get("generationConfig", {})}
    return [fields[name] for name in NAMES if name in fields]


@EVERY
@pytest.mark.parametrize(("written", "sent"), [(None, 9000), (64_000, 9000), (8192, 8192)])
async def test_limit_is_sent_and_no_more_than_the_model_writes(
    written: int | None, sent: int, wire: Wire, provider: Provider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*wire.answer(Text(("ok",))))
    profile = ModelProfile(output_tokens=written)

    await Heard().read(
        provider.stream(Request("model", (Message.user("hello"),), profile=profile, max_answer_tokens=9000))
    )

    assert limits(byte_server.requests[-1]) == [sent]
