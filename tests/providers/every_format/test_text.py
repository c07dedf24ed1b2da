"""Tests that text arrives complete and in order, wherever its bytes are split and whatever shape the answer has."""

import asyncio
from collections.abc import Callable
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import AuthError, ProviderError, Unavailable
from custom_components.windowed_conversation.providers.events import (
    AnswerDone,
    FinishReason,
    Provider,
    ReasoningDelta,
    Request,
    TextDelta,
    Usage,
)
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import JSON, ByteServer
from tests.providers.conftest import Ask, Hear
from tests.providers.heard import Heard
from tests.providers.wires import FRAGMENTING_WIRES
from tests.providers.wires.parts import Call, Calls, Reasoning, Text, Wire
from tests.waiting import until

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


ARGUMENTS = {"name": "kitchen", "level": 5}
WRITTEN = json.dumps(ARGUMENTS)
SAID = "It is on, \N{GRINNING FACE}."

CHAT = {
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": SAID,
                "tool_calls": [{"id": "call_a", "type": "function", "function": {"name": "act", "arguments": WRITTEN}}],
            },
        }
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
}
MESSAGE = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": SAID},
        {"type": "tool_use", "id": "call_a", "name": "act", "input": ARGUMENTS},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
RESPONSE = {
    "object": "response",
    "status": "completed",
    "error": None,
    "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]},
        {"type": "function_call", "call_id": "call_a", "name": "act", "arguments": WRITTEN},
    ],
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
GENERATED = {
    "candidates": [
        {
            "content": {
                "parts": [{"text": SAID}, {"functionCall": {"id": "call_a", "name": "act", "args": ARGUMENTS}}]
            },
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3},
}
WHOLE: dict[str, Any] = {"anthropic": MESSAGE, "chat": CHAT, "gemini": GENERATED, "responses": RESPONSE}


@pytest.mark.parametrize("indent", [None, 2])
async def test_plain_json_is_read_as_the_answer(
    indent: int | None, wire: Wire, ask: Ask, byte_server: ByteServer
) -> None:
    byte_server.set_reply(json.dumps(WHOLE[wire.name], indent=indent).encode(), headers=JSON)

    heard = await Heard().read(ask())

    assert heard.text == SAID
    assert [(call.id, call.name, dict(call.arguments)) for call in heard.calls] == [("call_a", "act", ARGUMENTS)]
    assert heard.usages == [Usage(input=7, output=3)]
    assert heard.done_events[0].reason is FinishReason.TOOL_CALLS


async def test_plain_json_may_come_byte_by_byte_and_be_called_a_stream(wire: Wire, hear: Hear) -> None:
    body = b"\r\n " + json.dumps(WHOLE[wire.name], ensure_ascii=False).encode()
    heard = await hear(*(body[at : at + 1] for at in range(len(body))))

    assert heard.text == SAID


@pytest.mark.parametrize("body", [b"{}", b"[]", b"[5]", b'{"choices": 5}', b'{"output": [5]}', b'{"content": "hello"}'])
async def test_json_that_is_no_answer_is_an_error(body: bytes, fail: Hear) -> None:
    await fail(ProviderError, body, headers=JSON)


async def test_error_with_a_good_status_is_an_error(wire: Wire, fail: Hear) -> None:
    await fail(Unavailable, wire.error_body(503), headers=JSON)


async def test_last_event_needs_no_blank_line(wire: Wire, hear: Hear) -> None:
    stream = b"".join(wire.answer(Text(("hello",))))
    heard = await hear(stream.removesuffix(b"data: [DONE]\n\n").rstrip(b"\r\n"))

    assert heard.text == "hello"
    assert len(heard.done_events) == 1


@pytest.mark.parametrize("wire", FRAGMENTING_WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("written", ["null", " ", "\n", " null "])
async def test_arguments_that_say_nothing_are_none(written: str, wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Calls((Call("call_a", "act", (written,)),))))

    assert heard.called == [("act", {})]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
async def test_number_that_json_has_not_is_null(number: str, wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Calls((Call("call_a", "act", (f'{{"x": [{number}], "y": 1.5}}',)),))))

    assert heard.called == [("act", {"x": [None], "y": 1.5})]


@pytest.mark.parametrize("status", [400, 403, 404, 429, 500])
async def test_401_is_a_refused_key_whatever_the_body_says(status: int, wire: Wire, fail: Hear) -> None:
    await fail(AuthError, wire.error_body(status), status=401, headers=JSON)


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
