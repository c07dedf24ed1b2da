"""Every format over a server of given bytes: the contract is the same, the bytes are each format's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from importlib import import_module
import socket
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Event, Provider, Request
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import ByteServer
from tests.providers.conftest import CLIENTS, TOOLS, Ask
from tests.providers.wires import WIRES
from tests.providers.wires.parts import Wire

QUESTION = "is the pelican in?"


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Return a format."""
    found: Wire = request.param
    return found


@pytest.fixture
async def http_client(request: pytest.FixtureRequest, wire: Wire) -> AsyncIterator[Any]:
    """Return a client as this Home Assistant shares one, or the one of `over_either_client` if the SDK runs on it."""
    asked_for = getattr(request, "param", CLIENTS[0])
    name = asked_for if asked_for in wire.clients else wire.clients[0]
    async with import_module(name).AsyncClient(verify=False) as client:
        yield client


@pytest.fixture
async def unused_port(socket_enabled: None) -> int:
    """Return a port on which nothing listens."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


@pytest.fixture
async def full_port(socket_enabled: None) -> AsyncIterator[int]:
    """Return a port whose queue of connections is full: a connection to it is neither taken nor refused."""
    loop = asyncio.get_running_loop()
    with ExitStack() as sockets:
        listening = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                while True:
                    waiting = sockets.enter_context(socket.socket())
                    waiting.setblocking(False)
                    await loop.sock_connect(waiting, listening.getsockname())
        yield listening.getsockname()[1]


@pytest.fixture
async def silent_port(socket_enabled: None) -> AsyncIterator[int]:
    """Return a port where every connection is taken and nothing is ever said."""
    loop = asyncio.get_running_loop()
    async with await loop.create_server(asyncio.Protocol, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        server.close_clients()


@pytest.fixture
def provider(wire: Wire, http_client: Any, byte_server: ByteServer) -> Provider:
    """Return the format's provider for the server of given bytes."""
    return wire.connect(byte_server.address, http_client)


@pytest.fixture
def ask(provider: Provider) -> Ask:
    """Ask the server of given bytes; `earlier` are the messages before the user's."""

    def ask(*earlier: Message, model: str = "model") -> AsyncIterator[Event]:
        return provider.stream(Request(model, (*earlier, Message.user(QUESTION)), TOOLS))

    return ask
