"""The list of models: the request of account set-up to find out whether there is a server behind the address."""

import json
from typing import Any

from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.providers.errors import BadStream
from custom_components.windowed_conversation.providers.events import ListedModel
from custom_components.windowed_conversation.providers.openai.clients import ChatCompletions

from ..byte_server import JSON, ByteServer
from ..conftest import KEY
from .conftest import Connect


async def test_client_that_checks_what_it_reads_makes_no_difference(http_client: Any, byte_server: ByteServer) -> None:
    byte_server.reply(b"<html></html>", headers={"Content-Type": "text/html"})
    sdk = AsyncOpenAI(api_key=KEY, base_url=byte_server.url, http_client=http_client, _strict_response_validation=True)

    with pytest.raises(BadStream):
        await ChatCompletions(sdk).list_models()


@pytest.mark.parametrize(
    "value",
    [
        5,
        [{"id": "a"}],
        {},
        {"data": None},
        {"data": 5},
        {"data": "ab"},
        {"data": {"id": "a"}},
        {"data": [5]},
        {"data": ["a"]},
        {"data": [None]},
        {"data": [{}]},
        {"data": [{"name": "a"}]},
        {"data": [{"id": 5}]},
        {"data": [{"id": "a"}, {"id": None}]},
        {"error": {"message": "no"}},
    ],
)
async def test_answer_of_another_form_is_no_list(value: Any, connect: Connect, byte_server: ByteServer) -> None:
    byte_server.reply(json.dumps(value).encode(), headers=JSON)

    with pytest.raises(BadStream):
        await connect(byte_server.url).list_models()


async def test_models_may_have_an_id_only(connect: Connect, byte_server: ByteServer) -> None:
    byte_server.reply(b'{"data": [{"id": "b"}, {"id": "a", "meta": null}]}', headers=JSON)

    assert await connect(byte_server.url).list_models() == [ListedModel("a"), ListedModel("b")]


@pytest.mark.parametrize(
    "named",
    [
        {"max_model_len": 8192},
        {"context_length": 8192},
        {"context_window": 8192},
        {"max_context_length": 8192},
        {"max_context_length": 131_072, "loaded_context_length": 8192},
        {"meta": {"n_ctx": 8192, "n_ctx_train": 131_072}},
    ],
    ids=str,
)
async def test_size_is_read_from_the_list(named: dict[str, Any], connect: Connect, byte_server: ByteServer) -> None:
    byte_server.reply(json.dumps({"data": [{"id": "a", **named}]}).encode(), headers=JSON)

    assert await connect(byte_server.url).list_models() == [ListedModel("a", context_tokens=8192)]


@pytest.mark.parametrize(
    "named", [{"max_completion_tokens": 8192}, {"top_provider": {"max_completion_tokens": 8192}}], ids=str
)
async def test_longest_answer_is_read_from_the_list(
    named: dict[str, Any], connect: Connect, byte_server: ByteServer
) -> None:
    byte_server.reply(json.dumps({"data": [{"id": "a", **named}]}).encode(), headers=JSON)

    assert await connect(byte_server.url).list_models() == [ListedModel("a", output_tokens=8192)]


_NO_SIZES: tuple[Any, ...] = (0, -1, True, "8192", 8192.5, 10**9 + 1, None, {})


@pytest.mark.parametrize(
    "named",
    [
        {"meta": {"n_ctx_train": 131_072}},
        {"meta": [8192]},
        {"top_provider": [8192]},
        *({"context_length": size} for size in _NO_SIZES),
        *({"max_completion_tokens": size} for size in _NO_SIZES),
        *({"top_provider": {"max_completion_tokens": size}} for size in _NO_SIZES),
    ],
    ids=str,
)
async def test_size_in_the_list_that_cannot_be_is_none(
    named: dict[str, Any], connect: Connect, byte_server: ByteServer
) -> None:
    byte_server.reply(json.dumps({"data": [{"id": "a", **named}]}).encode(), headers=JSON)

    assert await connect(byte_server.url).list_models() == [ListedModel("a")]
