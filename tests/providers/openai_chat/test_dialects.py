"""Tests for the two dialects of Chat Completions: the parameters for OpenAI itself and for compatible servers."""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter
import pytest

from custom_components.windowed_conversation.providers import SELECTABLE_EFFORTS, UNSEEN_NOTE
from custom_components.windowed_conversation.providers.errors import AnswerRefused, BadRequest
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
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.window import Attachment, Message, ToolCall

from ..byte_server import JSON, ByteServer
from ..conftest import Ask, Hear
from ..heard import Heard
from ..wires.chat import DONE, ChatWire, chunk
from ..wires.parts import End, Text

PARAMETERS = TypeAdapter(CompletionCreateParamsStreaming)
REASONS = ModelProfile(sampling=False, reasoning=ReasoningStyle.EFFORT, caching=Caching.RETENTION, images=True)
SEES = replace(UNKNOWN_MODEL, images=True)
BASE_BODY = {"model": "a-model", "stream": True, "stream_options": {"include_usage": True}}
HELLO = {"role": "user", "content": "hello"}
SAID = (Message.user("hello"),)
IMAGE = Attachment("image/png", b"\x89PNG", "door.png")
PDF = Attachment("application/pdf", b"%PDF", "manual.pdf")

with_each_dialect = pytest.mark.parametrize("dialect", Dialect)

type Send = Callable[..., Awaitable[Any]]


@pytest.fixture
def sent(http_client: Any, byte_server: ByteServer) -> Send:
    """Return a function that sends a request and returns the body that the server received.

    The body is checked against the SDK's types.
    """

    async def sent(dialect: Dialect, *messages: Message, **fields: Any) -> Any:
        wire = ChatWire(dialect)
        byte_server.set_reply(*wire.answer(Text(("hello",))))
        provider = wire.connect(byte_server.address, http_client)
        await Heard().read(provider.stream(Request("a-model", messages, **fields)))
        PARAMETERS.validate_python(byte_server.requests[-1])
        return byte_server.requests[-1]

    return sent


@pytest.fixture
def ask(http_client: Any, byte_server: ByteServer) -> Ask:
    """Return a function that sends a request to the byte server."""
    return lambda: ChatWire().connect(byte_server.address, http_client).stream(Request("a-model", SAID))


SAMPLING = ModelSettings(temperature=0.5)
OPTIONS = {"prompt_cache_key": "k", "prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}


@pytest.mark.parametrize(
    ("dialect", "profile", "settings", "parameters"),
    [
        (
            Dialect.OPENAI,
            REASONS,
            replace(SAMPLING, effort=Effort.LOW),
            {
                "max_completion_tokens": 3000,
                "reasoning_effort": "low",
                "prompt_cache_key": "k",
                "prompt_cache_retention": "24h",
            },
        ),
        (
            Dialect.OPENAI,
            ModelProfile(caching=Caching.OPTIONS),
            replace(SAMPLING, effort=Effort.LOW),
            {"max_completion_tokens": 3000, "temperature": 0.5, **OPTIONS},
        ),
        (
            Dialect.COMPATIBLE,
            replace(REASONS, sampling=True),
            SAMPLING,
            {"max_tokens": 3000, "temperature": 0.5},
        ),
    ],
)
async def test_server_is_sent_the_parameters_that_it_and_the_model_take(
    dialect: Dialect, profile: ModelProfile, settings: ModelSettings, parameters: dict[str, Any], sent: Send
) -> None:
    body = await sent(
        dialect, Message.user("hello"), profile=profile, cache_key="k", max_answer_tokens=3000, settings=settings
    )

    assert body == {**BASE_BODY, "messages": [HELLO], **parameters}


@pytest.mark.parametrize("effort", SELECTABLE_EFFORTS)
async def test_compatible_server_is_asked_for_the_effort_that_the_user_has_set(effort: Effort, sent: Send) -> None:
    body = await sent(Dialect.COMPATIBLE, Message.user("hello"), settings=ModelSettings(effort=effort))

    assert body == {**BASE_BODY, "messages": [HELLO], "reasoning_effort": effort.value}


@pytest.mark.parametrize("status", [400, 422])
async def test_effort_that_a_server_refuses_is_not_sent_again(
    status: int, http_client: Any, byte_server: ByteServer
) -> None:
    wire = ChatWire(Dialect.COMPATIBLE)
    provider = wire.connect(byte_server.address, http_client)
    request = Request("a-model", SAID, settings=ModelSettings(effort=Effort.HIGH))
    byte_server.set_reply(b'{"error": {"message": "a-model does not support thinking"}}', status=status, headers=JSON)
    byte_server.add_reply(*wire.answer(Text(("hello",))))

    heard = [await Heard().read(provider.stream(request)) for _ in range(2)]

    assert [each.text for each in heard] == ["hello", "hello"]
    assert [each.get("reasoning_effort") for each in byte_server.requests] == ["high", None, None]


async def test_effort_is_sent_again_if_the_server_refuses_the_request_without_it(
    http_client: Any, byte_server: ByteServer
) -> None:
    wire = ChatWire(Dialect.COMPATIBLE)
    provider = wire.connect(byte_server.address, http_client)
    request = Request("a-model", SAID, settings=ModelSettings(effort=Effort.HIGH))
    byte_server.set_reply(b"{}", status=400, headers=JSON)

    for _ in range(2):
        await Heard().fail(provider.stream(request), BadRequest)

    assert [each.get("reasoning_effort") for each in byte_server.requests] == ["high", None] * 2


@pytest.mark.parametrize(
    ("dialect", "asked"),
    [
        (Dialect.OPENAI, {"prompt_cache_key": "k", "prompt_cache_retention": "24h"}),
        (Dialect.COMPATIBLE, {}),
    ],
)
async def test_record_of_the_caching_is_what_was_asked(
    dialect: Dialect, asked: dict[str, Any], http_client: Any, byte_server: ByteServer
) -> None:
    provider = ChatWire(dialect).connect(byte_server.address, http_client)

    assert provider.cache_settings(Request("a-model", (), profile=REASONS, cache_key="k")) == asked


async def test_compatible_server_is_sent_no_tools_that_may_not_be_called(sent: Send) -> None:
    tools = (ToolSchema("time", "", {"type": "object", "properties": {}}),)
    body = await sent(Dialect.COMPATIBLE, Message.user("hello"), tools=tools, may_call=False)

    assert body == {**BASE_BODY, "messages": [HELLO]}


@with_each_dialect
async def test_image_is_sent_to_a_model_that_sees(dialect: Dialect, sent: Send) -> None:
    body = await sent(dialect, Message.user("who is there?", attachments=(IMAGE,)), profile=SEES)

    url = f"data:image/png;base64,{b64encode(IMAGE.data).decode()}"
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "who is there?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]


async def test_file_is_sent_to_openai(sent: Send) -> None:
    body = await sent(Dialect.OPENAI, Message.user("", attachments=(PDF,)), profile=SEES)

    data = f"data:application/pdf;base64,{b64encode(PDF.data).decode()}"
    assert body["messages"][0]["content"] == [
        {"type": "file", "file": {"filename": "manual.pdf", "file_data": data}},
    ]


async def test_model_of_a_compatible_server_is_told_of_a_file(sent: Send) -> None:
    body = await sent(Dialect.COMPATIBLE, Message.user("read this", attachments=(IMAGE, PDF)), profile=SEES)

    words, image = body["messages"][0]["content"]
    assert words == {"type": "text", "text": f"read this\n\n{UNSEEN_NOTE}"}
    assert image["type"] == "image_url"


@with_each_dialect
async def test_messages_of_one_role_in_a_row_become_one(dialect: Dialect, sent: Send) -> None:
    call = ToolCall("call_1", "time", {})
    body = await sent(
        dialect,
        Message.user("hello"),
        Message.user("are you there?", attachments=(IMAGE,)),
        Message.assistant(""),
        Message.user("hello?"),
        Message.assistant("Yes."),
        Message.assistant("I look.", tool_calls=(call,)),
        Message.tool("call_1", "time", "8"),
        Message.assistant("Eight."),
        profile=SEES,
    )

    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert body["messages"][0]["content"][0]["text"] == "hello\n\nare you there?\n\nhello?"
    assert body["messages"][0]["content"][1]["type"] == "image_url"
    assert body["messages"][1]["content"] == "Yes.\n\nI look."
    assert [each["id"] for each in body["messages"][1]["tool_calls"]] == [body["messages"][2]["tool_call_id"]]


async def test_results_in_a_row_stay_apart(sent: Send) -> None:
    calls = (ToolCall("call_1", "time", {}), ToolCall("call_2", "time", {}))
    results = (Message.tool("call_1", "time", "8"), Message.tool("call_2", "time", "9"))

    body = await sent(Dialect.COMPATIBLE, Message.user("hello"), Message.assistant(tool_calls=calls), *results)

    ids = [call["id"] for call in body["messages"][1]["tool_calls"]]
    assert [message.get("tool_call_id") for message in body["messages"]] == [None, None, *ids]


@pytest.mark.parametrize(("dialect", "longest"), [(Dialect.OPENAI, 40), (Dialect.COMPATIBLE, 9)])
async def test_long_ids_of_others_are_shortened(dialect: Dialect, longest: int, sent: Send) -> None:
    call = ToolCall("x" * 100, "time", {})

    body = await sent(
        dialect, Message.user("hello"), Message.assistant(tool_calls=(call,)), Message.tool("x" * 100, "time", "8")
    )

    assert body["messages"][1]["tool_calls"][0]["id"] == body["messages"][2]["tool_call_id"]
    assert len(body["messages"][2]["tool_call_id"]) == longest


@with_each_dialect
async def test_tool_of_any_name_can_be_offered_and_called(
    dialect: Dialect, http_client: Any, byte_server: ByteServer
) -> None:
    wire, tool = ChatWire(dialect), ToolSchema("home.turn on", "", {"type": "object", "oneOf": []})
    said = (
        Message.user("hello"),
        Message.assistant(tool_calls=(ToolCall("call_1", tool.name, {}),)),
        Message.tool("call_1", tool.name, "{}"),
    )
    request = Request("a-model", said, (tool,))
    provider = wire.connect(byte_server.address, http_client)
    byte_server.set_reply(*wire.answer(Text(("hello",))))
    await Heard().read(provider.stream(request))
    offered = byte_server.requests[-1]["tools"][0]["function"]

    function = {"name": offered["name"], "arguments": "{}"}
    called = chunk({"tool_calls": [{"index": 0, "id": "call_2", "type": "function", "function": function}]})
    byte_server.set_reply(called, chunk({}, "tool_calls"), DONE)
    heard = await Heard().read(provider.stream(request))

    assert offered["parameters"] == {"type": "object", "properties": {}}
    assert byte_server.requests[-1]["messages"][1]["tool_calls"][0]["function"]["name"] == offered["name"]
    assert heard.called == [("home.turn on", {})]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ChatWire().answer(end=End.REFUSED), "refusal"),
        ([chunk({"content": "once"}), chunk({}, "content_filter"), DONE], "content_filter"),
    ],
)
async def test_refusal_has_the_providers_reason(answer: list[bytes], reason: str, fail: Hear) -> None:
    heard = await fail(AnswerRefused, *answer)

    assert heard.error.reason == reason


async def test_format_has_nobody_to_count_its_tokens(http_client: Any, byte_server: ByteServer) -> None:
    provider = ChatWire().connect(byte_server.address, http_client)

    assert await provider.count_tokens(Request("a-model", (Message.user("hello"),))) is None
    assert byte_server.requests == []
