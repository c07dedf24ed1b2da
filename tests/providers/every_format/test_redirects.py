"""Tests for redirects: none is followed, the new address does not receive the key, and the error contains it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.anthropic import clients as anthropic_clients
from custom_components.windowed_conversation.providers.anthropic.clients import create_anthropic_messages
from custom_components.windowed_conversation.providers.errors import BadRequest, Redirected
from custom_components.windowed_conversation.providers.events import Provider, Request
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider
from custom_components.windowed_conversation.providers.openai.clients import (
    AzureServer,
    create_azure_chat,
    create_azure_responses,
    create_compatible_chat,
    create_openai_chat,
    create_openai_responses,
)
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import ByteServer
from tests.providers.conftest import CLIENTS, KEY, over_either_client
from tests.providers.heard import Heard

REQUEST = Request("model", (Message.user("hello"),))
NEW_PATH = "/elsewhere"

type Build = Callable[[str, Any], Provider]
type Ask = Callable[[Provider], Awaitable[Any]]


def _gemini(address: str, http_client: Any) -> Provider:
    return GeminiProvider(address, KEY, http_client)


BUILDERS: dict[str, Build] = {
    "compatible": lambda address, client: create_compatible_chat(f"{address}/v1", KEY, client),
    "openai-chat": lambda address, client: create_openai_chat(KEY, client, f"{address}/v1"),
    "openai-responses": lambda address, client: create_openai_responses(KEY, client, f"{address}/v1"),
    "azure-chat": lambda address, client: create_azure_chat(AzureServer(address, KEY), client),
    "azure-classic": lambda address, client: create_azure_chat(AzureServer(address, KEY, "2024-10-21"), client),
    "azure-responses": lambda address, client: create_azure_responses(AzureServer(address, KEY), client),
    "anthropic": lambda address, client: create_anthropic_messages(address, KEY, client),
    "gemini": _gemini,
}
COUNTING = ("openai-responses", "azure-responses", "anthropic", "gemini")

ASK: dict[str, Ask] = {
    "stream": lambda provider: Heard().read(provider.stream(REQUEST)),
    "models": lambda provider: provider.list_models(),
}


@pytest.fixture(params=BUILDERS)
def builder_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
async def http_client(request: pytest.FixtureRequest, builder_name: str) -> AsyncIterator[Any]:
    """Yield a client of the package for Anthropic's SDK or `over_either_client`, configured to follow redirects."""
    packages = {"anthropic": anthropic_clients.HttpClient.__module__.partition(".")[0]}
    name = packages.get(builder_name, getattr(request, "param", CLIENTS[0]))
    async with import_module(name).AsyncClient(verify=False, follow_redirects=True) as client:
        yield client


@pytest.fixture
async def elsewhere(socket_enabled: None) -> AsyncIterator[ByteServer]:
    """Yield the server at the new address."""
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(ByteServer())


@pytest.fixture
def provider(builder_name: str, http_client: Any, byte_server: ByteServer) -> Provider:
    return BUILDERS[builder_name](byte_server.address, http_client)


async def redirected(asked: Awaitable[Any], status: int, byte_server: ByteServer, address: str) -> Redirected:
    """Return the error that a redirect to this address causes."""
    byte_server.set_reply(b"moved", status=status, headers={"Location": f"{address}?key=secret#part"})
    with pytest.raises(BadRequest) as raised:
        await asked
    assert isinstance(raised.value, Redirected)
    return raised.value


@over_either_client
@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nobody_follows_a_redirect(
    status: int, ask: Ask, provider: Provider, byte_server: ByteServer, elsewhere: ByteServer
) -> None:
    address = f"{elsewhere.address}{NEW_PATH}"

    error = await redirected(ask(provider), status, byte_server, address)

    assert error.address == address
    assert elsewhere.requests == []
    assert elsewhere.open_connections == 0
    assert len(byte_server.requests) == 1


@pytest.mark.parametrize("builder_name", COUNTING, indirect=True)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nobody_follows_a_redirect_of_a_count(
    status: int, provider: Provider, byte_server: ByteServer, elsewhere: ByteServer
) -> None:
    address = f"{elsewhere.address}{NEW_PATH}"

    error = await redirected(provider.count_tokens(REQUEST), status, byte_server, address)

    assert error.address == address
    assert elsewhere.requests == []


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
async def test_redirect_to_the_same_server_is_not_followed_either(
    ask: Ask, provider: Provider, byte_server: ByteServer
) -> None:
    error = await redirected(ask(provider), 308, byte_server, NEW_PATH)

    assert error.address == f"{byte_server.address}{NEW_PATH}"
    assert len(byte_server.requests) == 1
