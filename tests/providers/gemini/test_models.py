"""Gemini's list of models with their limits, and its own count of the tokens of a request."""

import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import BadStream
from custom_components.windowed_conversation.providers.events import CountsTokens, ListedModel, Request, ToolSchema
from custom_components.windowed_conversation.providers.gemini.clients import Gemini
from custom_components.windowed_conversation.window import Message, ToolCall

from ..byte_server import ByteServer
from ..conftest import over_either_client
from ..wires.gemini import model
from .conftest import JSON


@over_either_client
async def test_models_are_listed_sorted_with_their_limits(provider: Gemini, byte_server: ByteServer) -> None:
    models = [model("b"), model("a", inputTokenLimit=5, outputTokenLimit=3)]
    byte_server.reply(json.dumps({"models": models}).encode(), headers=JSON)

    assert await provider.list_models() == [ListedModel("a", 5, 3), ListedModel("b", 1048576, 65536)]


async def test_models_that_generate_no_text_are_omitted(provider: Gemini, byte_server: ByteServer) -> None:
    models = [model("a", supportedGenerationMethods=["embedContent"]), model("b"), {"name": "models/c", "new": 1}]
    byte_server.reply(json.dumps({"models": models}).encode(), headers=JSON)

    assert await provider.list_models() == [ListedModel("b", 1048576, 65536), ListedModel("c")]


async def test_further_pages_are_asked_for(provider: Gemini, byte_server: ByteServer) -> None:
    byte_server.reply(json.dumps({"models": [model("b")], "nextPageToken": "next"}).encode(), headers=JSON)
    byte_server.then_reply(json.dumps({"models": [model("a")]}).encode())

    assert [each.id for each in await provider.list_models()] == ["a", "b"]


@pytest.mark.parametrize("limit", ["many", -1, True, 1.5, 10**10, None])
async def test_limit_that_is_no_figure_does_not_cost_the_model(
    limit: Any, provider: Gemini, byte_server: ByteServer
) -> None:
    byte_server.reply(json.dumps({"models": [model("a", inputTokenLimit=limit)]}).encode(), headers=JSON)

    assert await provider.list_models() == [ListedModel("a", None, 65536)]


async def test_pages_that_say_the_same_again_are_no_list(provider: Gemini, byte_server: ByteServer) -> None:
    byte_server.reply(json.dumps({"models": [model("a")], "nextPageToken": "next"}).encode(), headers=JSON)

    with pytest.raises(BadStream, match="again and again"):
        await provider.list_models()


@over_either_client
async def test_whole_request_is_counted(provider: Gemini, byte_server: ByteServer) -> None:
    byte_server.reply(b'{"totalTokens": 31, "promptTokensDetails": []}', headers=JSON)
    call = ToolCall("a", "act", {"brightness_pct": None})
    request = Request(
        "gemini-made-up",
        (
            Message.system("Be brief."),
            Message.user("hello"),
            Message.assistant(tool_calls=(call,)),
            Message.tool("a", "act", "{}"),
        ),
        (ToolSchema("act", "Acts", {"type": "object", "properties": {"brightness_pct": {"type": "integer"}}}),),
    )

    assert await provider.count_tokens(request) == 31
    assert byte_server.requests == [
        {
            "contents": [],
            "generateContentRequest": {
                "model": "models/gemini-made-up",
                "contents": [
                    {"role": "user", "parts": [{"text": "hello"}]},
                    {"role": "model", "parts": [{"functionCall": {"name": "act", "args": {"brightness_pct": None}}}]},
                    {"role": "user", "parts": [{"functionResponse": {"name": "act", "response": {"output": {}}}}]},
                ],
                "systemInstruction": {"parts": [{"text": "Be brief."}], "role": "user"},
                "tools": [
                    {
                        "functionDeclarations": [
                            {
                                "name": "act",
                                "description": "Acts",
                                "parametersJsonSchema": {
                                    "type": "object",
                                    "properties": {"brightness_pct": {"type": "integer"}},
                                },
                            }
                        ]
                    }
                ],
            },
        }
    ]


async def test_request_without_system_and_tools_is_counted(provider: Gemini, byte_server: ByteServer) -> None:
    byte_server.reply(b'{"totalTokens": 3}', headers=JSON)

    await provider.count_tokens(Request("models/gemini-made-up", (Message.user("hello"),)))

    contents = [{"role": "user", "parts": [{"text": "hello"}]}]
    assert byte_server.requests[0]["generateContentRequest"] == {
        "model": "models/gemini-made-up",
        "contents": contents,
    }


@pytest.mark.parametrize("body", [b"{}", b"{", b"[]", b'{"totalTokens": "many"}'])
async def test_answer_of_another_form_is_no_count(body: bytes, provider: Gemini, byte_server: ByteServer) -> None:
    byte_server.reply(body, headers=JSON)

    with pytest.raises(BadStream):
        await provider.count_tokens(Request("gemini-made-up", (Message.user("hello"),)))


async def test_gemini_is_a_provider_that_counts(provider: Gemini) -> None:
    assert isinstance(provider, CountsTokens)


async def test_nothing_is_asked_of_the_prompt_cache(provider: Gemini) -> None:
    assert provider.caching(Request("gemini-made-up", (Message.user("hello"),))) == {}
