"""Tests for the list of models, which account setup requests to find out whether a server exists at the address."""

import json
from typing import Any

from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.providers.errors import BadStream
from custom_components.windowed_conversation.providers.events import ListedModel
from custom_components.windowed_conversation.providers.openai.clients import ChatCompletionsProvider

from ..byte_server import JSON, ByteServer
from ..conftest import KEY
from .conftest import Connect


async def test_client_that_checks_what_it_reads_makes_no_difference(http_client: Any, byte_server: ByteServer) -> None:
    byte_server.set_reply(b"<html></html>", headers={"Content-Type": "text/html"})
    sdk = AsyncOpenAI(api_key=KEY, base_url=byte_server.url, http_client=http_client, _strict_response_validation=True)

    with pytest.raises(BadStream):
        await ChatCompletionsProvider(sdk).list_models()


_NO_SIZES: tuple[Any, ...] = (0, -1, True, "8192", 8192.5, 10**9 + 1, None, {})
# The expected sizes of a model, and the fields of the server's list that they are read from.
SIZES: list[tuple[ListedModel, dict[str, Any]]] = [
    *(
        (ListedModel("a", context_tokens=8192), fields)
        for fields in (
            {"max_model_len": 8192},
            {"context_length": 8192},
            {"context_window": 8192},
            {"max_context_length": 8192},
            {"max_context_length": 131_072, "loaded_context_length": 8192},
            {"meta": {"n_ctx": 8192, "n_ctx_train": 131_072}},
        )
    ),
    (ListedModel("a", output_tokens=8192), {"max_completion_tokens": 8192}),
    (ListedModel("a", output_tokens=8192), {"top_provider": {"max_completion_tokens": 8192}}),
    *((ListedModel("a"), fields) for fields in ({}, {"meta": {"n_ctx_train": 131_072}}, {"meta": [8192]})),
    (ListedModel("a"), {"top_provider": [8192]}),
    *((ListedModel("a"), {"context_length": size}) for size in _NO_SIZES),
    *((ListedModel("a"), {"max_completion_tokens": size}) for size in _NO_SIZES),
    *((ListedModel("a"), {"top_provider": {"max_completion_tokens": size}}) for size in _NO_SIZES),
]


@pytest.mark.parametrize(("model", "fields"), SIZES, ids=str)
async def test_sizes_are_read_from_the_list(
    model: ListedModel, fields: dict[str, Any], connect: Connect, byte_server: ByteServer
) -> None:
    byte_server.set_reply(json.dumps({"data": [{"id": "a", **fields}]}).encode(), headers=JSON)

    assert await connect(byte_server.url).list_models() == [model]
