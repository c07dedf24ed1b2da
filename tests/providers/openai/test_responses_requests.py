"""Tests for Responses requests, compared key by key, and for the residue that is sent back to its own server."""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import replace
import json
from typing import Any

from openai.types.responses import ToolParam
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter
import pytest

from custom_components.windowed_conversation.providers.errors import BadRequest, BadStream, ProviderError
from custom_components.windowed_conversation.providers.events import (
    ModelSettings,
    Request,
    ToolSchema,
)
from custom_components.windowed_conversation.providers.models import (
    UNKNOWN_MODEL,
    Caching,
    Effort,
    ModelProfile,
    ReasoningStyle,
)
from custom_components.windowed_conversation.window import Attachment, Message, NativeData, ToolCall

from ..byte_server import JSON, ByteServer
from ..heard import Heard
from ..wires.parts import Call, Calls, Reasoning, Text
from ..wires.responses import ResponsesWire

WIRE = ResponsesWire()
PARAMETERS = TypeAdapter(ResponseCreateParamsStreaming)
TOOLS = TypeAdapter(list[ToolParam])
SYSTEM = Message.system("You are a voice assistant.")
REASONS = ModelProfile(sampling=False, reasoning=ReasoningStyle.EFFORT, caching=Caching.OPTIONS, images=True)
LIGHT = ToolSchema(
    "intent__HassTurnOn",
    "Turns on a device",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
BASE_BODY = {"model": "gpt-5.5", "stream": True, "store": False}

type Send = Callable[[Request], Awaitable[Any]]


@pytest.fixture
def sent(http_client: Any, byte_server: ByteServer) -> Send:
    """Return a function that sends a request and returns the body that the server received.

    The body is checked against the SDK's types.
    """

    async def sent(request: Request) -> Any:
        byte_server.set_reply(*WIRE.answer(Text(("hello",))))
        await Heard().read(WIRE.connect(byte_server.address, http_client).stream(request))
        body = byte_server.requests[-1]
        PARAMETERS.validate_python(body)
        TOOLS.validate_python(body.get("tools", []))
        return body

    return sent


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def assistant(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, **fields}


def call_item(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def result_item(call_id: str, output: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def native(*items: Any, provider: str = "openai_responses", model: str = "gpt-5.5") -> NativeData:
    return NativeData(provider, model, list(items))


def reasoning(id_: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": id_, "encrypted_content": f"gAAAA-{id_}", "summary": []}


def message(start: int, end: int, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "start": start, "end": end, **fields}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id}


async def test_request_asks_for_nothing_that_nobody_wants(sent: Send) -> None:
    assert await sent(Request("gpt-5.5", (Message.user("hello"),))) == {**BASE_BODY, "input": [user("hello")]}


@pytest.mark.parametrize(("effort", "asks"), [(Effort.MINIMAL, False), (Effort.LOW, True), (None, True)])
async def test_calls_in_parallel_are_not_asked_for_where_there_is_minimal_effort(
    effort: Effort | None, sent: Send, *, asks: bool
) -> None:
    body = await sent(
        Request("gpt-5", (Message.user("hello"),), (LIGHT,), REASONS, settings=ModelSettings(effort=effort))
    )

    assert ("parallel_tool_calls" in body) is asks


async def test_request_to_a_model_that_does_not_reason(sent: Send) -> None:
    settings = ModelSettings(effort=Effort.LOW, temperature=0.5)
    body = await sent(Request("gpt-4o", (Message.user("hello"),), settings=settings))

    assert body == {**BASE_BODY, "model": "gpt-4o", "input": [user("hello")], "temperature": 0.5}


@pytest.mark.parametrize(
    ("caching", "asked"),
    [
        (Caching.AUTOMATIC, {}),
        (Caching.BREAKPOINTS, {}),
        (Caching.KEY, {"prompt_cache_key": "k"}),
        (Caching.RETENTION, {"prompt_cache_key": "k", "prompt_cache_retention": "24h"}),
        (Caching.OPTIONS, {"prompt_cache_key": "k", "prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}),
    ],
)
async def test_cache_is_asked_for_what_the_model_takes(
    caching: Caching, asked: dict[str, Any], sent: Send, http_client: Any, byte_server: ByteServer
) -> None:
    profile = replace(UNKNOWN_MODEL, caching=caching)
    request = Request("gpt-5.5", (Message.user("hello"),), profile=profile, cache_key="k")

    body = await sent(request)

    assert {name: value for name, value in body.items() if name.startswith("prompt_cache")} == asked
    assert WIRE.connect(byte_server.address, http_client).cache_settings(request) == asked


async def test_cache_key_is_as_long_as_the_format_takes(sent: Send) -> None:
    profile = replace(UNKNOWN_MODEL, caching=Caching.KEY)
    bodies = [
        await sent(Request("gpt-5.5", (Message.user("hello"),), profile=profile, cache_key=key))
        for key in ("a" * 64, "a" * 65, "a" * 66)
    ]

    keys = [body["prompt_cache_key"] for body in bodies]
    assert [len(key) for key in keys] == [64, 64, 64]
    assert len(set(keys)) == 3


async def test_id_of_another_provider_is_shortened_alike_in_call_and_result(sent: Send) -> None:
    ids = ["x" * 100 + end for end in "ab"]
    body = await sent(
        Request(
            "gpt-5.5",
            (
                Message.user("hello"),
                Message.assistant(tool_calls=tuple(ToolCall(each, "time", {}) for each in ids)),
                *(Message.tool(each, "time", "{}") for each in ids),
            ),
        )
    )

    sent_ids = [item["call_id"] for item in body["input"][1:]]
    assert sent_ids[:2] == sent_ids[2:]
    assert len({*sent_ids}) == 2
    assert max(map(len, sent_ids)) == 64


IMAGE = Attachment("image/png", b"\x89PNG", "door.png")
PHOTO = Attachment("image/jpg", b"\xff\xd8", "garden.jpg")
PDF = Attachment("application/pdf", b"%PDF", "manual.pdf")


async def test_images_and_files_of_a_user(sent: Send) -> None:
    messages = (Message.user("who is there?", attachments=(IMAGE, PHOTO, PDF, replace(PDF, name=""))),)

    body = await sent(Request("gpt-5.5", messages, profile=REASONS))

    pdf = f"data:application/pdf;base64,{b64encode(b'%PDF').decode()}"
    assert body["input"][0]["content"] == [
        {"type": "input_text", "text": "who is there?"},
        {
            "type": "input_image",
            "image_url": f"data:image/png;base64,{b64encode(IMAGE.data).decode()}",
            "detail": "auto",
        },
        {
            "type": "input_image",
            "image_url": f"data:image/jpeg;base64,{b64encode(PHOTO.data).decode()}",
            "detail": "auto",
        },
        {"type": "input_file", "filename": "manual.pdf", "file_data": pdf},
        {"type": "input_file", "filename": "attachment.pdf", "file_data": pdf},
    ]


async def test_image_without_words_is_sent_without_words(sent: Send) -> None:
    body = await sent(Request("gpt-5.5", (Message.user("", attachments=(IMAGE,)),), profile=REASONS))

    assert [part["type"] for part in body["input"][0]["content"]] == ["input_image"]


TURN_ON = ToolCall("call_1", "turn_on", {})
TIME = ToolCall("call_2", "time", {})


COMPACTION = {"type": "compaction", "id": "c", "encrypted_content": "gAAAA"}
DONE = message(0, 5)

# The residue of an answer, and the items of it that are sent before the answer's text.
BEFORE_THE_WORDS: dict[str, tuple[NativeData, list[Any]]] = {
    "reasoning_without_its_following_item": (native(reasoning("rs_1")), []),
    "reasoning_for_a_call_that_is_gone": (
        native(reasoning("rs_1"), call("call_9"), reasoning("rs_2"), DONE),
        [reasoning("rs_2")],
    ),
    "reasoning_for_an_item_that_is_not_sent_back": (native(reasoning("rs_1"), {"type": "web_search_call"}, DONE), []),
    "reasoning_that_was_not_encrypted": (native(reasoning("rs_1"), {"type": "reasoning"}, DONE), []),
    "compaction": (native(COMPACTION, DONE), [COMPACTION]),
    "reasoning_that_was_compacted": (native(reasoning("rs_1"), COMPACTION, DONE), [COMPACTION]),
    "another_model": (native(reasoning("rs_1"), DONE, model="gpt-5.4"), []),
    "another_provider": (native(reasoning("rs_1"), DONE, provider="anthropic"), []),
    "residue_of_another_form": (NativeData("openai_responses", "gpt-5.5", {"of": "another version"}), []),
}


@pytest.mark.parametrize(
    ("said", "items"),
    [
        pytest.param(
            Message.assistant("Hello.", native=native(reasoning("rs_1"), message(0, 6))),
            [reasoning("rs_1"), assistant("Hello.")],
            id="reasoning_before_text",
        ),
        pytest.param(
            Message.assistant(
                "Well. Done.",
                tool_calls=(TURN_ON, TIME),
                native=native(
                    message(0, 5, phase="commentary"),
                    reasoning("rs_1"),
                    call("call_1"),
                    call("call_2"),
                    reasoning("rs_2"),
                    reasoning("rs_3"),
                    message(6, 11, phase="final_answer"),
                ),
            ),
            [
                assistant("Well.", phase="commentary"),
                reasoning("rs_1"),
                call_item("call_1", "turn_on", "{}"),
                call_item("call_2", "time", "{}"),
                reasoning("rs_2"),
                reasoning("rs_3"),
                assistant("Done.", phase="final_answer"),
            ],
            id="order_and_phases",
        ),
        pytest.param(
            Message.assistant(
                "Well.", native=native(message(0, 9), reasoning("rs_1"), message(9, 20, phase="final_answer"))
            ),
            [reasoning("rs_1"), assistant("Well.", phase="final_answer")],
            id="text_of_which_some_was_kept_back",
        ),
        pytest.param(
            Message.assistant("Done.", tool_calls=(TURN_ON,), native=native(reasoning("rs_1"), message(0, 5))),
            [reasoning("rs_1"), assistant("Done."), call_item("call_1", "turn_on", "{}")],
            id="call_that_the_residue_does_not_know",
        ),
        *(
            pytest.param(Message.assistant("Done.", native=residue), [*items, assistant("Done.")], id=name)
            for name, (residue, items) in BEFORE_THE_WORDS.items()
        ),
    ],
)
async def test_residue_goes_back_in_its_place(said: Message, items: list[Any], sent: Send) -> None:
    results = tuple(Message.tool(each.id, each.name, "{}") for each in said.tool_calls)
    body = await sent(Request("gpt-5.5", (Message.user("hello"), said, *results, Message.user("and now?")), ()))

    assert body["input"][1 : -1 - len(results)] == items


async def test_answer_goes_back_as_it_came(sent: Send, http_client: Any, byte_server: ByteServer) -> None:
    provider = WIRE.connect(byte_server.address, http_client)
    byte_server.set_reply(*WIRE.answer(Reasoning(("hm",)), Text(("I ", "look.")), Calls((Call("call_1", "time", ()),))))
    heard = await Heard().read(provider.stream(Request("gpt-5.5", (Message.user("hello"),))))
    residue = NativeData(provider.name, "gpt-5.5", json.loads(json.dumps(heard.done_events[0].native_value)))
    said = Message.assistant(heard.text, tool_calls=tuple(heard.calls), native=residue)

    body = await sent(Request("gpt-5.5", (Message.user("hello"), said, Message.tool("call_1", "time", "8"))))

    assert body["input"][1:] == [
        {
            "type": "reasoning",
            "id": "rs_0",
            "encrypted_content": "gAAAA-0",
            "summary": [{"type": "summary_text", "text": "hm"}],
        },
        assistant("I look."),
        call_item("call_1", "time", "{}"),
        result_item("call_1", "8"),
    ]


UNREADABLE_ERROR_BODY = b'{"error": {"message": "Made up.", "type": "x", "code": "invalid_encrypted_content"}}'


@pytest.mark.parametrize(("residue", "attempts"), [(native(reasoning("rs_1"), message(0, 5)), 2), (None, 1)])
async def test_request_is_sent_again_only_where_it_becomes_another(
    residue: NativeData | None, attempts: int, http_client: Any, byte_server: ByteServer
) -> None:
    byte_server.set_reply(UNREADABLE_ERROR_BODY, status=400, headers=JSON)
    messages = (Message.user("hello"), Message.assistant("Done.", native=residue), Message.user("and now?"))

    await Heard().fail(WIRE.connect(byte_server.address, http_client).stream(Request("gpt-5.5", messages)), BadRequest)

    assert len(byte_server.requests) == attempts


async def test_tokens_are_counted_by_the_server(http_client: Any, byte_server: ByteServer) -> None:
    byte_server.set_reply(b'{"object": "response.input_tokens", "input_tokens": 42}', headers=JSON)
    provider = WIRE.connect(byte_server.address, http_client)

    counted = await provider.count_tokens(
        Request("gpt-5.5", (SYSTEM, Message.user("hello")), (LIGHT,), REASONS, "k", 3000, ModelSettings(Effort.HIGH))
    )

    assert counted == 42
    body = byte_server.requests[-1]
    assert body.pop("tools")[0]["name"] == "intent__HassTurnOn"
    assert body == {
        "model": "gpt-5.5",
        "instructions": "You are a voice assistant.",
        "input": [user("hello")],
        "parallel_tool_calls": True,
        "reasoning": {"effort": "high"},
    }


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, b"{}", BadRequest),
        (200, b"{}", BadStream),
        (200, b'{"input_tokens": "many"}', BadStream),
        (200, b"[]", BadStream),
        (200, b"{", BadStream),
    ],
)
async def test_server_that_does_not_count_says_so(
    status: int, body: bytes, error: type[ProviderError], http_client: Any, byte_server: ByteServer
) -> None:
    byte_server.set_reply(body, status=status, headers=JSON)

    with pytest.raises(error):
        await WIRE.connect(byte_server.address, http_client).count_tokens(Request("gpt-5.5", (Message.user("hello"),)))
