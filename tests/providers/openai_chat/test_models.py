"""The list of models: what account set-up asks for to find out whether there is a server behind the address."""

import json
from typing import Any

from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.providers.errors import (
    AuthError,
    BadStream,
    ModelNotFound,
    ProviderError,
    RateLimited,
    Unavailable,
)
from custom_components.windowed_conversation.providers.events import ListedModel
from custom_components.windowed_conversation.providers.openai.chat import ChatCompletions
from demo.model_server import ModelServer

from ..byte_server import ByteServer
from ..conftest import KEY, over_either_client
from .conftest import Connect

JSON = {"Content-Type": "application/json"}


@over_either_client
async def test_models_are_listed_sorted(connect: Connect, model_server: ModelServer) -> None:
    model_server.change(models=("zebra", "ant"))

    models = [model.id for model in await connect(model_server.url).list_models()]

    assert {"ant", "zebra"} < set(models)
    assert models == sorted(models)


async def test_key_is_sent(connect: Connect, model_server: ModelServer) -> None:
    model_server.change(key=KEY)

    assert ListedModel("scripted") in await connect(model_server.url).list_models()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("401", AuthError),
        ("403", AuthError),
        ("404", ModelNotFound),
        ("429", RateLimited),
        ("500", Unavailable),
        ("html", Unavailable),
        ("json_200", BadStream),
        ("cut_before_headers", Unavailable),
    ],
)
async def test_fault_becomes_an_error_of_ours(
    fault: str, error: type[ProviderError], connect: Connect, model_server: ModelServer
) -> None:
    model_server.fault(fault)

    with pytest.raises(ProviderError) as caught:
        await connect(model_server.url).list_models()

    assert type(caught.value) is error


async def test_wrong_key_is_refused(connect: Connect, model_server: ModelServer) -> None:
    model_server.change(key="another key")

    with pytest.raises(AuthError):
        await connect(model_server.url).list_models()


@over_either_client
async def test_server_that_is_not_there_is_unavailable(connect: Connect, byte_server: ByteServer) -> None:
    url = byte_server.url
    await byte_server.__aexit__()

    with pytest.raises(Unavailable):
        await connect(url).list_models()


@over_either_client
async def test_address_of_a_web_page_is_no_list(connect: Connect, byte_server: ByteServer) -> None:
    byte_server.reply(b"<!DOCTYPE html><html><body>hello</body></html>", headers={"Content-Type": "text/html"})

    with pytest.raises(BadStream):
        await connect(byte_server.url).list_models()


async def test_client_that_checks_what_it_reads_makes_no_difference(http_client: Any, byte_server: ByteServer) -> None:
    byte_server.reply(b"<html></html>", headers={"Content-Type": "text/html"})
    sdk = AsyncOpenAI(api_key=KEY, base_url=byte_server.url, http_client=http_client, _strict_response_validation=True)

    with pytest.raises(BadStream):
        await ChatCompletions(sdk).list_models()


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        "a text",
        [],
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


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 200_000])
async def test_answer_that_is_no_json_is_no_list(body: bytes, connect: Connect, byte_server: ByteServer) -> None:
    byte_server.reply(body, headers=JSON)

    with pytest.raises(BadStream):
        await connect(byte_server.url).list_models()


async def test_server_may_have_no_models(connect: Connect, byte_server: ByteServer) -> None:
    byte_server.reply(b'{"object": "list", "data": []}', headers=JSON)

    assert await connect(byte_server.url).list_models() == []


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
    "named",
    [
        {"meta": {"n_ctx_train": 131_072}},
        {"meta": [8192]},
        *({"context_length": size} for size in (0, -1, True, "8192", 8192.5, 10**9 + 1, None, {})),
    ],
    ids=str,
)
async def test_size_in_the_list_that_cannot_be_is_none(
    named: dict[str, Any], connect: Connect, byte_server: ByteServer
) -> None:
    byte_server.reply(json.dumps({"data": [{"id": "a", **named}]}).encode(), headers=JSON)

    assert await connect(byte_server.url).list_models() == [ListedModel("a")]
