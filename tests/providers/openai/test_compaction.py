"""Tests for compaction by OpenAI: the request, the answer, and later requests that contain the compaction."""

import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import AuthError, BadStream, ProviderError
from custom_components.windowed_conversation.providers.events import (
    Compacted,
    Request,
    ToolSchema,
    Usage,
)
from custom_components.windowed_conversation.providers.models import Caching, ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.providers.openai.chat_encoding import encode_messages
from custom_components.windowed_conversation.providers.openai.clients import ResponsesProvider
from custom_components.windowed_conversation.window import Message, NativeData, ToolCall
from demo.model_server import ModelServer

from ..byte_server import JSON, ByteServer
from ..conftest import over_either_client
from ..heard import Heard
from ..wires.responses import ResponsesWire

WIRE = ResponsesWire()
LIGHT = ToolSchema("intent__HassTurnOn", "Turns on a device", {"type": "object", "properties": {}})
SYSTEM = Message.system("You are a voice assistant.")
HISTORY = (
    Message.user("my name is Ada"),
    Message.assistant("Nice to meet you."),
    Message.user("light on"),
    Message.assistant(tool_calls=(ToolCall("call_1", LIGHT.name, {"name": "lamp"}),)),
    Message.tool("call_1", LIGHT.name, '{"done": true}'),
    Message.assistant("The light is on."),
)
KEPT = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "user",
    "content": [{"type": "input_text", "text": "my name is Ada"}],
}
SEALED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 8},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 10},
    "total_tokens": 150,
}
PLAIN = "User: my name is Ada"


def document(**fields: Any) -> bytes:
    """Return the body of a compaction response."""
    whole = {"id": "resp_1", "object": "response.compaction", "created_at": 1763800000, "output": [KEPT, SEALED]}
    return json.dumps(whole | {"usage": USAGE} | fields).encode()


def asked(**fields: Any) -> Request:
    return Request("gpt-5.5", (SYSTEM, *HISTORY), (LIGHT,), **fields)


async def compact_request(provider: ResponsesProvider, request: Request) -> Compacted:
    """Return the compaction, and check that the server supports it."""
    compacted = await provider.compact(request)
    assert compacted is not None
    return compacted


def summary(value: Any, *, model: str = "gpt-5.5", provider: str = "openai_responses") -> tuple[Message, Message]:
    """Return the pair of messages (question and answer) in which a window stores its summary."""
    return Message.user("[What was said?]"), Message.assistant(PLAIN, native=NativeData(provider, model, value, 50))


@pytest.fixture
def provider(byte_server: ByteServer, http_client: Any) -> ResponsesProvider:
    found = WIRE.connect(byte_server.address, http_client)
    assert isinstance(found, ResponsesProvider)
    return found


@pytest.fixture
def scripted(model_server: ModelServer, http_client: Any) -> ResponsesProvider:
    """Return a provider for the scripted model server, which refuses invalid requests."""
    model_server.change(models=("gpt-5.5", "gpt-5.4"))
    found = WIRE.connect(model_server.address, http_client)
    assert isinstance(found, ResponsesProvider)
    return found


@over_either_client
async def test_what_is_sent_is_the_conversation_without_tools(
    provider: ResponsesProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(document(), headers=JSON)

    await provider.compact(asked(cache_key="agent-1", profile=ModelProfile(caching=Caching.OPTIONS, sampling=False)))

    assert byte_server.requests == [
        {
            "model": "gpt-5.5",
            "instructions": SYSTEM.content,
            "input": [
                {"type": "message", "role": "user", "content": "my name is Ada"},
                {"type": "message", "role": "assistant", "content": "Nice to meet you."},
                {"type": "message", "role": "user", "content": "light on"},
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": LIGHT.name,
                    "arguments": '{"name": "lamp"}',
                },
                {"type": "function_call_output", "call_id": "call_1", "output": '{"done": true}'},
                {"type": "message", "role": "assistant", "content": "The light is on."},
            ],
            "prompt_cache_key": "agent-1",
        }
    ]


async def test_what_comes_back_is_kept_as_it_is(provider: ResponsesProvider, byte_server: ByteServer) -> None:
    byte_server.set_reply(document(), headers=JSON)

    compacted = await compact_request(provider, asked())

    assert compacted == Compacted(
        {"compacted": [KEPT, SEALED]}, ("my name is Ada",), Usage(120, 100, 30, cache_written=8, reasoning=10)
    )
    assert json.loads(json.dumps(compacted.native_value)) == compacted.native_value


async def test_further_fields_and_items_are_kept_too(provider: ResponsesProvider, byte_server: ByteServer) -> None:
    items = [{**KEPT, "phase": "of_next_year"}, {"type": "of_next_year", "x": [1]}, SEALED]
    byte_server.set_reply(document(output=items), headers=JSON)

    assert (await compact_request(provider, asked())).native_value == {"compacted": items}


async def test_usage_may_be_missing(provider: ResponsesProvider, byte_server: ByteServer) -> None:
    byte_server.set_reply(document(usage=None), headers=JSON)

    assert (await compact_request(provider, asked())).usage == Usage()


INVALID_OUTPUTS: list[Any] = [
    None,
    [],
    "none",
    [KEPT],
    [{"type": "compaction"}],
    [{**SEALED, "encrypted_content": ""}],
    [7],
    [{"id": "x"}],
]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        *((200, document(output=output), BadStream) for output in INVALID_OUTPUTS),
        *((200, page, BadStream) for page in (b"<html>hello</html>", b"[]", b"null", b"")),
        (401, WIRE.error_body(401), AuthError),
    ],
)
async def test_answer_without_a_compaction_is_an_error(
    status: int, body: bytes, error: type[ProviderError], provider: ResponsesProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(body, status=status, headers=JSON)

    with pytest.raises(error):
        await provider.compact(asked())


@pytest.mark.parametrize("status", [400, 404])
async def test_server_that_cannot_compact_is_asked_once(
    status: int, provider: ResponsesProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(b'{"error": {"code": "404", "message": "Resource not found"}}', status=status, headers=JSON)

    assert await provider.compact(asked()) is None
    assert await provider.compact(asked()) is None
    assert len(byte_server.requests) == 1


async def test_server_that_is_in_trouble_is_asked_again(provider: ResponsesProvider, byte_server: ByteServer) -> None:
    byte_server.set_reply(WIRE.error_body(503), status=503, headers=JSON)
    with pytest.raises(ProviderError):
        await provider.compact(asked())
    byte_server.set_reply(document(), headers=JSON)

    assert await provider.compact(asked()) is not None


@over_either_client
async def test_compaction_stands_for_the_exchange_that_holds_it(
    scripted: ResponsesProvider, model_server: ModelServer
) -> None:
    compacted = await compact_request(scripted, asked())
    history = (SYSTEM, *summary(compacted.native_value), Message.user("what is my name?"))

    heard = await Heard().read(scripted.stream(Request("gpt-5.5", history, (LIGHT,))))

    assert heard.text == "Your name is Ada."
    first, second, sealed, newest = model_server.requests[-1].body["input"]
    assert [first, second, sealed] == compacted.native_value["compacted"]
    assert (first["content"][0]["text"], sealed["type"]) == ("my name is Ada", "compaction")
    assert newest == {"type": "message", "role": "user", "content": "what is my name?"}
    assert model_server.requests[-1].violations == []


async def test_compaction_can_be_compacted_again(scripted: ResponsesProvider) -> None:
    once = await compact_request(scripted, asked())
    history = (SYSTEM, *summary(once.native_value), Message.user("I like pizza"), Message.assistant("Noted."))

    twice = await compact_request(scripted, Request("gpt-5.5", history))

    assert twice.user_texts == ("my name is Ada", "light on", "I like pizza")
    assert [item["type"] for item in twice.native_value["compacted"]] == ["message"] * 3 + ["compaction"]


@pytest.mark.parametrize(
    "plain",
    [
        summary({"compacted": [KEPT, SEALED]}, model="gpt-5.4"),
        summary({"compacted": [KEPT, SEALED]}, provider="azure_eu"),
        *map(summary, ({}, {"compacted": "none"}, {"compacted": []}, "none", 7)),
    ],
)
async def test_compaction_of_another_model_server_or_form_is_sent_as_plain_text(
    plain: tuple[Message, Message], scripted: ResponsesProvider, model_server: ModelServer
) -> None:
    await Heard().read(scripted.stream(Request("gpt-5.5", (SYSTEM, *plain, Message.user("hello")))))

    request = model_server.requests[-1]
    assert request.violations == []
    assert [item["content"] for item in request.body["input"]] == ["[What was said?]", PLAIN, "hello"]


async def test_another_format_is_sent_the_plain_text(scripted: ResponsesProvider) -> None:
    compacted = await compact_request(scripted, asked())

    sent = encode_messages((SYSTEM, *summary(compacted.native_value), Message.user("hello")))

    assert [message["content"] for message in sent] == [SYSTEM.content, "[What was said?]", PLAIN, "hello"]


async def test_compaction_that_the_server_cannot_read_any_more_is_compacted_from_its_plain_text(
    scripted: ResponsesProvider,
) -> None:
    history = (
        SYSTEM,
        *summary({"compacted": [KEPT, SEALED]}),
        Message.user("I like pizza"),
        Message.assistant("Noted."),
    )

    compacted = await compact_request(scripted, Request("gpt-5.5", history))

    assert compacted.user_texts == ("[What was said?]", "I like pizza")


async def test_model_that_reasons_goes_on_after_a_compaction(
    scripted: ResponsesProvider, model_server: ModelServer
) -> None:
    profile = ModelProfile(sampling=False, reasoning=ReasoningStyle.EFFORT, caching=Caching.OPTIONS)
    compacted = await compact_request(scripted, asked(profile=profile, cache_key="agent-1"))
    history = (SYSTEM, *summary(compacted.native_value), Message.user("think about the weather"))

    heard = await Heard().read(scripted.stream(Request("gpt-5.5", history, (LIGHT,), profile)))

    assert heard.text
    assert model_server.requests[-1].violations == []
