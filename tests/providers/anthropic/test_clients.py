"""Tests for the Anthropic provider: its construction, its requests other than streams, and closed connections."""

import json
import ssl
import sys
from typing import Any

import anthropic
import pytest

from custom_components.windowed_conversation.providers.anthropic.clients import (
    HttpClient,
    create_anthropic_messages,
    supports_client,
)
from custom_components.windowed_conversation.providers.errors import AuthError, BadStream, ProviderError
from custom_components.windowed_conversation.providers.events import (
    ListedModel,
    ModelSettings,
    Provider,
    Request,
)
from custom_components.windowed_conversation.window import Message

from ..byte_server import JSON, ByteServer
from ..conftest import CLIENTS
from ..heard import Heard
from ..wires.anthropic import API_KEY, AnthropicWire, event, model_page
from ..wires.parts import Text
from .conftest import MODEL, Connect

HELLO = Request(MODEL, (Message.user("hello"),))


async def test_client_of_the_package_that_the_sdk_runs_on_is_accepted(http_client: Any) -> None:
    assert supports_client(http_client)


async def test_client_of_another_package_is_not_accepted() -> None:
    assert not supports_client(type("AsyncClient", (), {"__module__": "another_package"})())


async def test_one_of_the_clients_that_are_installed_is_accepted() -> None:
    modules = [__import__(name) for name in CLIENTS]

    assert HttpClient in [module.AsyncClient for module in modules]


async def test_provider_is_built_without_a_context_of_its_own(
    http_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssl, "create_default_context", None)

    assert isinstance(create_anthropic_messages(None, API_KEY, http_client), Provider)


@pytest.mark.parametrize(
    ("url", "asked"), [(None, "https://api.anthropic.com"), ("http://127.0.0.1:1", "http://127.0.0.1:1")]
)
async def test_address_is_the_accounts_and_not_the_environments(
    url: str | None, asked: str, http_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://elsewhere")

    base_url = create_anthropic_messages(url, API_KEY, http_client)._client.base_url

    assert str(base_url).rstrip("/") == asked


@pytest.mark.parametrize("key", [None, ""])
async def test_server_without_a_key_is_asked_all_the_same(
    key: str | None, http_client: Any, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*AnthropicWire().answer(Text(("hello",))))

    heard = await Heard().read(create_anthropic_messages(byte_server.address, key, http_client).stream(HELLO))

    assert heard.text == "hello"


async def test_key_of_other_characters_is_a_wrong_key(http_client: Any, byte_server: ByteServer) -> None:
    byte_server.set_reply(AnthropicWire().error_body(401), status=401, headers=JSON)
    provider = create_anthropic_messages(byte_server.address, "sk-pelican-…", http_client)

    heard = await Heard().fail(provider.stream(HELLO), AuthError)

    assert "pelican" not in repr(heard.error)


async def test_models_are_listed_sorted_with_their_limits(connect: Connect, byte_server: ByteServer) -> None:
    models: list[dict[str, Any]] = [
        {"id": "b", "max_input_tokens": 200_000, "max_tokens": 64_000},
        {"id": "c"},
        {"id": "a", "max_input_tokens": None, "max_tokens": 0},
    ]
    byte_server.set_reply(model_page(models), headers=JSON)

    assert await connect().list_models() == [
        ListedModel("a"),
        ListedModel("b", 200_000, 64_000),
        ListedModel("c"),
    ]


async def test_tokens_are_counted_by_the_server(connect: Connect, byte_server: ByteServer) -> None:
    byte_server.set_reply(b'{"input_tokens": 2095}', headers=JSON)

    assert await connect().count_tokens(HELLO) == 2095
    assert byte_server.requests == [
        {"model": MODEL, "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]}
    ]


@pytest.mark.parametrize("body", [b"{}", b"5", b"null", b'{"input_tokens": "many"}', b"{", b"<html></html>"])
async def test_answer_of_another_form_counts_nothing(body: bytes, connect: Connect, byte_server: ByteServer) -> None:
    byte_server.set_reply(body, headers=JSON)

    with pytest.raises(BadStream):
        await connect().count_tokens(HELLO)


async def test_nothing_of_the_sdk_is_imported_while_requests_run(connect: Connect, byte_server: ByteServer) -> None:
    provider, wire = connect(), AnthropicWire()
    before = {name for name in sys.modules if name.startswith(anthropic.__name__)}

    byte_server.set_reply(*wire.answer(Text(("hello",))))
    await Heard().read(provider.stream(HELLO))
    byte_server.set_reply(wire.model_list(["a"]), headers=JSON)
    await provider.list_models()
    byte_server.set_reply(b'{"input_tokens": 1}', headers=JSON)
    await provider.count_tokens(HELLO)
    for status in (400, 529):
        byte_server.set_reply(wire.error_body(status), status=status, headers=JSON)
        with pytest.raises(ProviderError):
            await provider.list_models()
    byte_server.set_reply(event(json.loads(wire.error_body(529))))
    await Heard().fail(provider.stream(HELLO))

    assert {name for name in sys.modules if name.startswith(anthropic.__name__)} == before


async def test_temperature_reaches_the_server(connect: Connect, byte_server: ByteServer) -> None:
    byte_server.set_reply(*AnthropicWire().answer(Text(("hello",))))

    await Heard().read(connect().stream(Request(MODEL, HELLO.messages, settings=ModelSettings(temperature=0.5))))

    assert byte_server.requests == [
        {
            "model": MODEL,
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
            "stream": True,
            "temperature": 0.5,
        }
    ]
