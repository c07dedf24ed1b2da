"""Tests for the list of models, which is also used to validate an account."""

import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import (
    AuthError,
    BadStream,
    ProviderError,
    RateLimited,
    Unavailable,
)
from custom_components.windowed_conversation.providers.events import Provider
from tests.providers.byte_server import JSON, ByteServer
from tests.providers.conftest import over_either_client
from tests.providers.wires.parts import Wire


@over_either_client
async def test_models_are_listed_by_their_ids(wire: Wire, provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(wire.model_list(["zebra", "ant"]), headers=JSON)

    assert [model.id for model in await provider.list_models()] == ["ant", "zebra"]


@pytest.mark.parametrize(("status", "error"), [(401, AuthError), (429, RateLimited), (500, Unavailable)])
async def test_status_of_the_list_becomes_an_error_of_ours(
    status: int, error: type[ProviderError], wire: Wire, provider: Provider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(wire.error_body(status), status=status, headers=JSON)

    with pytest.raises(error):
        await provider.list_models()


@pytest.mark.parametrize(
    "answer",
    [b"<html>Welcome to my router</html>", b"", b"{", b"\xff\xfe", b"[" * 200_000, b"null", b"[]", b'"models"'],
    ids=lambda answer: repr(answer[:9]),
)
async def test_what_lists_no_models_is_refused(answer: bytes, provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(answer, headers=JSON)

    with pytest.raises(BadStream):
        await provider.list_models()


@pytest.mark.parametrize("models", [5, "ab", None, ["a"], [{}], [{"id": 5, "name": 5}]], ids=repr)
async def test_list_of_another_form_is_refused(
    models: Any, wire: Wire, provider: Provider, byte_server: ByteServer
) -> None:
    page = json.loads(wire.model_list(["a"]))
    (field,) = (name for name, value in page.items() if isinstance(value, list))
    byte_server.set_reply(json.dumps({**page, field: models}).encode(), headers=JSON)

    with pytest.raises(BadStream):
        await provider.list_models()


async def test_server_may_have_no_models(wire: Wire, provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(wire.model_list([]), headers=JSON)

    assert await provider.list_models() == []


@over_either_client
async def test_server_that_is_not_there_lists_nothing(wire: Wire, http_client: Any, unused_port: int) -> None:
    with pytest.raises(Unavailable):
        await wire.connect(f"http://127.0.0.1:{unused_port}", http_client).list_models()
