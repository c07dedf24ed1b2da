"""Tests for Gemini's list of models with their limits, and for its token counts of requests."""

import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import BadStream, RateLimited
from custom_components.windowed_conversation.providers.events import (
    ListedModel,
    Request,
    ToolSchema,
)
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider
from custom_components.windowed_conversation.window import Message, ToolCall

from ..byte_server import ByteServer
from ..conftest import over_either_client
from ..heard import Heard
from ..wires.gemini import STOP, error, model
from .conftest import JSON
from .test_errors import delay


@over_either_client
async def test_models_are_listed_sorted_with_their_limits(provider: GeminiProvider, byte_server: ByteServer) -> None:
    models = [model("b"), model("a", inputTokenLimit=5, outputTokenLimit=3)]
    byte_server.set_reply(json.dumps({"models": models}).encode(), headers=JSON)

    assert await provider.list_models() == [ListedModel("a", 5, 3), ListedModel("b", 1048576, 65536)]


async def test_models_that_generate_no_text_are_omitted(provider: GeminiProvider, byte_server: ByteServer) -> None:
    models = [model("a", supportedGenerationMethods=["embedContent"]), model("b"), {"name": "models/c", "new": 1}]
    byte_server.set_reply(json.dumps({"models": models}).encode(), headers=JSON)

    assert await provider.list_models() == [ListedModel("b", 1048576, 65536), ListedModel("c")]


@pytest.mark.parametrize("limit", ["many", -1, True, 1.5, 10**10, None])
async def test_limit_that_is_no_figure_does_not_cost_the_model(
    limit: Any, provider: GeminiProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(json.dumps({"models": [model("a", inputTokenLimit=limit)]}).encode(), headers=JSON)

    assert await provider.list_models() == [ListedModel("a", None, 65536)]


@over_either_client
@pytest.mark.parametrize("name", ["gemini-made-up", "models/gemini-made-up"])
async def test_counted_request_is_the_one_of_an_answer(
    name: str, provider: GeminiProvider, byte_server: ByteServer
) -> None:
    call = ToolCall("a", "act", {"brightness_pct": None})
    messages = Message.user("hello"), Message.assistant(tool_calls=(call,)), Message.tool("a", "act", "{}")
    tool = ToolSchema("act", "Acts", {"type": "object", "properties": {"brightness_pct": {"type": "integer"}}})
    request = Request(name, (Message.system("Be brief."), *messages), (tool,))
    byte_server.set_reply(STOP)
    await Heard().read(provider.stream(request))
    byte_server.set_reply(b'{"totalTokens": 31, "promptTokensDetails": []}', headers=JSON)

    assert await provider.count_tokens(request) == 31
    answered, counted = byte_server.requests
    inner = {field: value for field, value in answered.items() if field != "generationConfig"}
    assert inner.keys() == {"contents", "systemInstruction", "tools"}
    assert counted == {"generateContentRequest": {"model": "models/gemini-made-up", **inner}}


async def test_count_that_is_refused_is_an_error_of_ours(
    provider: GeminiProvider, byte_server: ByteServer, asked: list[Any]
) -> None:
    byte_server.set_reply(error(429, delay("34s")), status=429, headers=JSON)

    with pytest.raises(RateLimited) as caught:
        await provider.count_tokens(Request("gemini-made-up", (Message.user("hello"),)))

    assert caught.value.retry_after == 34.0
    assert asked[0].url.path == "/v1beta/models/gemini-made-up:countTokens"


@pytest.mark.parametrize("body", [b"{}", b"{", b"[]", b"null", b"<html></html>", b'{"totalTokens": "many"}'])
async def test_answer_of_another_form_is_no_count(
    body: bytes, provider: GeminiProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(body, headers=JSON)

    with pytest.raises(BadStream):
        await provider.count_tokens(Request("gemini-made-up", (Message.user("hello"),)))


async def test_nothing_is_asked_of_the_prompt_cache(provider: GeminiProvider) -> None:
    assert provider.cache_settings(Request("gemini-made-up", (Message.user("hello"),))) == {}
