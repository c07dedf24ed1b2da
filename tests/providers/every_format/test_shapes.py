"""Tests that answers are understood although servers deviate from their formats."""

import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import AuthError, ProviderError, Unavailable
from custom_components.windowed_conversation.providers.events import FinishReason, Usage
from tests.providers.byte_server import JSON, ByteServer
from tests.providers.conftest import Ask, Hear
from tests.providers.heard import Heard
from tests.providers.wires import FRAGMENTING_WIRES
from tests.providers.wires.parts import Call, Calls, Text, Wire

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
