"""Tests for requests to Gemini, compared key by key, and for the order of contents that it requires."""

from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
import json
import re
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import ModelSettings, Request, ToolSchema
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider
from custom_components.windowed_conversation.providers.gemini.encoding import NO_SIGNATURE, gemini_name
from custom_components.windowed_conversation.providers.models import (
    Effort,
    ModelProfile,
    ReasoningStyle,
    Vendor,
    find_profile,
)
from custom_components.windowed_conversation.window import Attachment, Message, NativeData, ToolCall

from ..byte_server import ByteServer
from ..conftest import over_either_client
from ..heard import Heard
from ..wires.gemini import STOP, text

MODEL = "gemini-made-up"
SYSTEM = Message.system("You are a voice assistant.")
LIGHT = ToolSchema(
    "intent__HassTurnOn",
    "Turns on a device",
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "brightness_pct": {"type": ["integer", "null"]}},
        "allOf": [{"not": {"required": ["name", "area"]}}],
        "additionalProperties": False,
    },
)
ON, CLOCK = ToolCall("a", "intent__HassTurnOn", {"name": "Küche", "x": [1, {"y": None}]}), ToolCall("b", "clock", {})
RESULT_ON, CLOCK_RESULT = Message.tool("a", ON.name, '{"success": []}'), Message.tool("b", "clock", '{"time": "8"}')
GEMINI_3 = ModelProfile(reasoning=ReasoningStyle.LEVEL)
SIGNATURE = b"\xff\x00 signed"

type Send = Callable[..., Awaitable[Any]]


def encoded(data: bytes) -> str:
    """Return bytes in the base64 alphabet that the SDK uses."""
    return urlsafe_b64encode(data).decode()


def make_native(**parts: Any) -> NativeData:
    """Return residue of an answer of the same model."""
    return NativeData("gemini", MODEL, {"ids": {}, "signatures": {}, "texts": [], **parts})


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


CALL_ON = {"functionCall": {"name": ON.name, "args": {"name": "Küche", "x": [1, {"y": None}]}}}
CALL_CLOCK = {"functionCall": {"name": "clock", "args": {}}}
OUTPUT_ON = {"functionResponse": {"name": ON.name, "response": {"output": {"success": []}}}}
OUTPUT_CLOCK = {"functionResponse": {"name": "clock", "response": {"output": {"time": "8"}}}}


@pytest.fixture
def send(provider: GeminiProvider, byte_server: ByteServer) -> Send:
    """Return a function that sends a request and returns the received body; `fields` are those of the request."""

    async def send(*messages: Message, **fields: Any) -> Any:
        byte_server.set_reply(text("hello"), STOP)
        await Heard().read(provider.stream(Request(MODEL, messages, **fields)))
        return byte_server.requests[-1]

    return send


@over_either_client
async def test_request_without_tools_names_none(send: Send) -> None:
    assert await send(SYSTEM, Message.user("hello")) == {
        "contents": [user({"text": "hello"})],
        "systemInstruction": user({"text": "You are a voice assistant."}),
        "generationConfig": {},
    }


async def test_tools_are_sent_with_their_schemas_as_they_are(send: Send) -> None:
    body = await send(Message.user("light"), tools=(LIGHT, ToolSchema("clock", "", {"type": "object"})))

    assert body["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "intent__HassTurnOn",
                    "description": "Turns on a device",
                    "parametersJsonSchema": dict(LIGHT.parameters),
                },
                {"name": "clock", "description": "", "parametersJsonSchema": {"type": "object", "properties": {}}},
            ]
        }
    ]


async def test_results_come_in_the_order_of_their_calls(send: Send) -> None:
    body = await send(Message.user("x"), Message.assistant(tool_calls=(ON, CLOCK)), CLOCK_RESULT, RESULT_ON)

    assert body["contents"][-1] == user(OUTPUT_ON, OUTPUT_CLOCK)


async def test_steps_of_one_turn_follow_each_other(send: Send) -> None:
    body = await send(
        Message.user("x"),
        Message.assistant(tool_calls=(ON,)),
        RESULT_ON,
        Message.assistant(tool_calls=(CLOCK,)),
        CLOCK_RESULT,
    )

    assert body["contents"][1:] == [model(CALL_ON), user(OUTPUT_ON), model(CALL_CLOCK), user(OUTPUT_CLOCK)]


async def test_messages_of_one_role_are_merged_but_not_with_results(send: Send) -> None:
    body = await send(
        Message.user("one"),
        Message.user("two"),
        Message.assistant("three"),
        Message.assistant(tool_calls=(CLOCK,)),
        CLOCK_RESULT,
        Message.user("four"),
    )

    assert body["contents"] == [
        user({"text": "one"}, {"text": "two"}),
        model({"text": "three"}, CALL_CLOCK),
        user(OUTPUT_CLOCK),
        user({"text": "four"}),
    ]


async def test_empty_texts_are_not_sent(send: Send) -> None:
    body = await send(Message.user(""), Message.assistant(""), Message.user("hello"))

    assert body["contents"] == [user({"text": " "}, {"text": "hello"})]


@pytest.mark.parametrize(
    ("content", "response"),
    [
        ("[Shortened result]", {"output": "[Shortened result]"}),
        ("", {"output": ""}),
        ("[1, null]", {"output": [1, None]}),
        ('{"error": {"code": 5}}', {"error": {"code": 5}}),
        ('{"error": "no", "data": 1}', {"output": {"error": "no", "data": 1}}),
        ('{"error": NaN}', {"output": '{"error": NaN}'}),
        ("1e999", {"output": "1e999"}),
        ("[" * 5000, {"output": "[" * 5000}),
        ('{"name": "\\ud83d"}', {"output": {"name": "\N{REPLACEMENT CHARACTER}"}}),
    ],
)
async def test_result_is_output_or_error(content: str, response: Any, send: Send) -> None:
    body = await send(Message.user("x"), Message.assistant(tool_calls=(CLOCK,)), Message.tool("b", "clock", content))

    assert body["contents"][-1]["parts"][0]["functionResponse"]["response"] == response


async def test_ids_of_gemini_go_back_with_call_and_result(send: Send) -> None:
    native = make_native(ids={"b": "its-own"})
    body = await send(
        Message.user("x"), Message.assistant(tool_calls=(ON, CLOCK), native=native), RESULT_ON, CLOCK_RESULT
    )

    calls, results = (content["parts"] for content in body["contents"][1:])
    assert [part["functionCall"].get("id") for part in calls] == [None, "its-own"]
    assert [part["functionResponse"].get("id") for part in results] == [None, "its-own"]


async def test_signature_goes_back_on_the_call_that_it_came_on(send: Send) -> None:
    native = make_native(signatures={"b": encoded(SIGNATURE).replace("_", "/")})
    body = await send(
        Message.user("x"),
        Message.assistant("Hm.", tool_calls=(ON, CLOCK), native=native),
        RESULT_ON,
        CLOCK_RESULT,
        Message.user("y"),
        profile=GEMINI_3,
    )

    assert body["contents"][1] == model(
        {"text": "Hm."}, CALL_ON, {**CALL_CLOCK, "thoughtSignature": encoded(SIGNATURE)}
    )


@pytest.mark.parametrize(
    ("texts", "parts"),
    [
        ([[0, 0]], [{"text": "Hello there"}, {"text": "", "signed": True}]),
        ([[5, 0]], [{"text": "Hello "}, {"text": "there", "signed": True}]),
        ([[11, 5]], [{"text": "Hello ", "signed": True}, {"text": "there"}]),
        ([[11, 5], [5, 0]], [{"text": "Hello ", "signed": True}, {"text": "there", "signed": True}]),
        ([[12, 5]], [{"text": "Hello there"}]),
        ([[5, 7]], [{"text": "Hello there"}]),
    ],
)
async def test_signed_text_goes_back_in_a_part_of_its_own(texts: Any, parts: Any, send: Send) -> None:
    signature = encoded(b"signed")
    native = make_native(texts=[[*where, signature] for where in texts])
    body = await send(Message.user("x"), Message.assistant("Hello there", native=native), Message.user("y"))

    expected = json.loads(json.dumps(parts).replace('"signed": true', f'"thoughtSignature": "{signature}"'))
    assert body["contents"][1] == model(*expected)


@pytest.mark.parametrize(
    "native",
    [
        None,
        NativeData("gemini", "another-model", {"ids": {"b": "x"}, "signatures": {"b": "AAAA"}, "texts": []}),
        NativeData("openai_responses", MODEL, {"ids": {"b": "x"}, "signatures": {"b": "AAAA"}, "texts": []}),
        NativeData("gemini", MODEL, None),
        NativeData("gemini", MODEL, {}),
        NativeData("gemini", MODEL, {"ids": [], "signatures": {}, "texts": []}),
        NativeData("gemini", MODEL, {"ids": {}, "signatures": {"b": "no base64!"}, "texts": []}),
        NativeData("gemini", MODEL, {"ids": {}, "signatures": {"b": 5}, "texts": [[1]]}),
    ],
)
async def test_residue_of_another_model_or_form_stays_at_home(native: NativeData | None, send: Send) -> None:
    body = await send(
        Message.user("x"),
        Message.assistant("Hm.", tool_calls=(CLOCK,), native=native),
        CLOCK_RESULT,
        Message.user("y"),
        profile=GEMINI_3,
    )

    assert body["contents"][1] == model({"text": "Hm."}, CALL_CLOCK)


async def test_first_call_of_each_foreign_step_of_this_turn_has_the_placeholder(send: Send) -> None:
    body = await send(
        Message.user("before"),
        Message.assistant(tool_calls=(ToolCall("c", "clock", {}),)),
        Message.tool("c", "clock", "{}"),
        Message.assistant("done"),
        Message.user("now"),
        Message.assistant(tool_calls=(ON, CLOCK)),
        RESULT_ON,
        CLOCK_RESULT,
        Message.assistant(tool_calls=(ToolCall("d", "clock", {}),)),
        Message.tool("d", "clock", "{}"),
        profile=GEMINI_3,
    )

    calls = [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]
    placeholder = encoded(NO_SIGNATURE)
    assert [part.get("thoughtSignature") for part in calls] == [None, placeholder, None, placeholder]


@pytest.mark.parametrize("style", [ReasoningStyle.NONE, ReasoningStyle.BUDGET])
async def test_model_that_does_not_insist_gets_no_placeholder(style: ReasoningStyle, send: Send) -> None:
    body = await send(
        Message.user("x"), Message.assistant(tool_calls=(CLOCK,)), CLOCK_RESULT, profile=ModelProfile(reasoning=style)
    )

    assert body["contents"][1] == model(CALL_CLOCK)


@pytest.mark.parametrize(
    ("mime_type", "sent"),
    [("image/png", "image/png"), ("image/jpg", "image/jpeg"), ("application/pdf", "application/pdf")],
)
async def test_image_is_sent_inline(mime_type: str, sent: str, send: Send) -> None:
    image = Attachment(mime_type, b"\xff\xfe", "name")
    body = await send(Message.user("what is it?", attachments=(image,)), profile=ModelProfile(images=True))

    inline = {"inlineData": {"mimeType": sent, "data": "__4="}}
    assert body["contents"] == [user(inline, {"text": "what is it?"})]


@pytest.mark.parametrize(
    ("fields", "config"),
    [
        ({"max_answer_tokens": 500}, {"maxOutputTokens": 500}),
        ({"max_answer_tokens": 500, "profile": ModelProfile(output_tokens=400)}, {"maxOutputTokens": 400}),
        ({"profile": ModelProfile(output_tokens=400)}, {}),
        ({"settings": ModelSettings(temperature=0.0)}, {"temperature": 0.0}),
        ({"settings": ModelSettings(temperature=0.5), "profile": ModelProfile(sampling=False)}, {}),
        ({"settings": ModelSettings(effort=Effort.HIGH)}, {}),
        ({"profile": GEMINI_3}, {}),
    ],
)
async def test_only_what_the_model_accepts_is_sent(fields: Any, config: Any, send: Send) -> None:
    body = await send(Message.user("x"), **fields)

    assert body["generationConfig"] == config


@pytest.mark.parametrize(
    ("style", "effort", "max_answer_tokens", "thinking"),
    [
        (ReasoningStyle.LEVEL, Effort.NONE, None, {"thinkingLevel": "LOW"}),
        (ReasoningStyle.LEVEL, Effort.MINIMAL, None, {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        (ReasoningStyle.LEVEL, Effort.LOW, None, {"includeThoughts": True, "thinkingLevel": "LOW"}),
        (ReasoningStyle.LEVEL, Effort.MEDIUM, None, {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
        (ReasoningStyle.LEVEL, Effort.HIGH, 100, {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        (ReasoningStyle.BUDGET, Effort.NONE, None, {"thinkingBudget": 0}),
        (ReasoningStyle.BUDGET, Effort.LOW, None, {"includeThoughts": True, "thinkingBudget": 1024}),
        (ReasoningStyle.BUDGET, Effort.MEDIUM, 1500, {"includeThoughts": True, "thinkingBudget": 750}),
        (ReasoningStyle.BUDGET, Effort.MEDIUM, 9192, {"includeThoughts": True, "thinkingBudget": 8168}),
        (ReasoningStyle.BUDGET, Effort.HIGH, None, {"includeThoughts": True, "thinkingBudget": 24576}),
    ],
)
async def test_effort_is_a_level_or_a_budget(
    style: ReasoningStyle, effort: Effort, max_answer_tokens: int | None, thinking: Any, send: Send
) -> None:
    body = await send(
        Message.user("x"),
        profile=ModelProfile(reasoning=style),
        settings=ModelSettings(effort=effort),
        max_answer_tokens=max_answer_tokens,
    )

    assert body["generationConfig"]["thinkingConfig"] == thinking


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("gemini-2.5-flash", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", {"thinkingBudget": 128}),
        ("gemini-3.1-flash-lite", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.1-pro", {"thinkingLevel": "LOW"}),
    ],
)
async def test_no_effort_is_the_least_that_the_model_takes(model: str, thinking: Any, send: Send) -> None:
    body = await send(
        Message.user("x"), profile=find_profile(Vendor.GOOGLE, model), settings=ModelSettings(effort=Effort.NONE)
    )

    assert body["generationConfig"]["thinkingConfig"] == thinking


@pytest.mark.parametrize("name", ["intent__HassTurnOn", "a", "_a.b:c-d", "x" * 128])
def test_valid_name_stays(name: str) -> None:
    assert gemini_name(name) == name


@pytest.mark.parametrize("name", ["", "1st", "-a", "get/weather", "wetter für heute", "x" * 129, "照明", "\ud83d"])
async def test_invalid_name_becomes_valid_in_tools_calls_and_results(name: str, send: Send) -> None:
    tool = ToolSchema(name, "", {"type": "object"})
    other = ToolSchema(f"{name}/", "", {"type": "object"})
    called = Message.assistant(tool_calls=(ToolCall("a", name, {}),))
    body = await send(Message.user("x"), called, Message.tool("a", name, "{}"), tools=(tool, other))

    first, second = (each["name"] for each in body["tools"][0]["functionDeclarations"])
    assert first != second
    assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", first)
    assert body["contents"][1]["parts"][0]["functionCall"]["name"] == first
    assert body["contents"][2]["parts"][0]["functionResponse"]["name"] == first
