"""What is sent, to the key: what is not in here, no compatible server ever sees."""

from typing import Any

from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.providers.events import Request, ToolSchema
from custom_components.windowed_conversation.providers.openai.chat import ChatCompletions
from custom_components.windowed_conversation.window import Message, Native, ToolCall

from ..byte_server import DONE, STOP, ByteServer, text
from ..conftest import KEY
from ..heard import Heard

SYSTEM = Message.system("You are a voice assistant.")
SYSTEM_SENT = {"role": "system", "content": "You are a voice assistant."}

LIGHT = ToolSchema(
    "intent__HassTurnOn",
    "Turns on a device",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
CLOCK = ToolSchema("llm__GetDateTime", "", {"type": "object", "properties": {}})


@pytest.fixture
def sent(http_client: Any, byte_server: ByteServer):
    """Send the request and return the body that the server gets."""

    async def sent(*messages: Message, tools: tuple[ToolSchema, ...] = (), may_call: bool = True) -> Any:
        byte_server.reply(text("hello"), STOP, DONE)
        sdk = AsyncOpenAI(api_key=KEY, base_url=byte_server.url, http_client=http_client, max_retries=0)
        await Heard().listen(ChatCompletions(sdk).stream(Request("a-model", messages, tools, may_call=may_call)))
        return byte_server.requests[-1]

    return sent


async def test_request_without_tools_names_none(sent) -> None:
    assert await sent(SYSTEM, Message.user("hello")) == {
        "model": "a-model",
        "messages": [SYSTEM_SENT, {"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_tools_that_may_not_be_called_are_not_sent(sent) -> None:
    without = await sent(SYSTEM, Message.user("hello"))

    assert await sent(SYSTEM, Message.user("hello"), tools=(LIGHT, CLOCK), may_call=False) == without


async def test_system_and_history_with_tools(sent) -> None:
    body = await sent(
        SYSTEM,
        Message.user("hello", tags=frozenset({"input"}), created=1.0, tokens=5),
        Message.assistant("Hello!", native=Native("another", "model", object())),
        Message.user("what time is it?"),
        tools=(LIGHT, CLOCK),
    )

    assert body == {
        "model": "a-model",
        "messages": [
            SYSTEM_SENT,
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "what time is it?"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "intent__HassTurnOn",
                    "description": "Turns on a device",
                    "parameters": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}},
                        "required": ["name"],
                    },
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "llm__GetDateTime",
                    "description": "",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_parallel_calls_and_their_results(sent) -> None:
    calls = (
        ToolCall("call_1", "intent__HassTurnOn", {"name": "Küche", "list": [1, {"a": None}]}),
        ToolCall("call_2", "llm__GetDateTime", {}),
    )
    body = await sent(
        Message.user("light, and the time"),
        Message.assistant(tool_calls=calls),
        Message.tool("call_1", "intent__HassTurnOn", '{"success": []}'),
        Message.tool("call_2", "llm__GetDateTime", '{"time": "08:00"}'),
    )

    assert body["messages"] == [
        {"role": "user", "content": "light, and the time"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "type": "function",
                    "id": "call_1",
                    "function": {
                        "name": "intent__HassTurnOn",
                        "arguments": '{"name": "Küche", "list": [1, {"a": null}]}',
                    },
                },
                {
                    "type": "function",
                    "id": "call_2",
                    "function": {"name": "llm__GetDateTime", "arguments": "{}"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": '{"success": []}'},
        {"role": "tool", "tool_call_id": "call_2", "content": '{"time": "08:00"}'},
    ]


async def test_assistant_text_with_calls(sent) -> None:
    body = await sent(
        Message.user("the time"),
        Message.assistant("One moment.", tool_calls=(ToolCall("call_1", "llm__GetDateTime", {}),)),
        Message.tool("call_1", "llm__GetDateTime", "{}"),
    )

    assert body["messages"][1] == {
        "role": "assistant",
        "content": "One moment.",
        "tool_calls": [
            {"type": "function", "id": "call_1", "function": {"name": "llm__GetDateTime", "arguments": "{}"}}
        ],
    }


@pytest.mark.parametrize("said", ["Grüße aus 東京 \N{GRINNING FACE}", 'quotes " and \\ and \n', "x" * 100_000])
async def test_text_is_sent_as_it_is(said: str, sent) -> None:
    body = await sent(Message.user(said))

    assert body["messages"] == [{"role": "user", "content": said}]
