"""Fixtures for tests that run for every format with a byte server: one contract, but different bytes per format."""

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
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.parts import Wire

QUESTION = "is the pelican in?"


@pytest.fixture(params=ALL_WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Return the wire format of the test."""
    found: Wire = request.param
    return found


@pytest.fixture
async def http_client(request: pytest.FixtureRequest, wire: Wire) -> AsyncIterator[Any]:
    """Yield an HTTP client of the package that Home Assistant shares, or that the test's parameter names.

    If the format's SDK does not run on that package, the client is of one that it runs on.
    """
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
    """Yield a port whose queue of connections is full: a new connection is neither accepted nor refused."""
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
    """Yield a port that accepts every connection but never sends anything."""
    loop = asyncio.get_running_loop()
    async with await loop.create_server(asyncio.Protocol, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        server.close_clients()


@pytest.fixture
def provider(wire: Wire, http_client: Any, byte_server: ByteServer) -> Provider:
    """Return the format's provider for the byte server."""
    return wire.connect(byte_server.address, http_client)


@pytest.fixture
def ask(provider: Provider) -> Ask:
    """Return a function that sends a question to the byte server; `earlier` are the messages before the question."""

    def ask(*earlier: Message, model: str = "model") -> AsyncIterator[Event]:
        return provider.stream(Request(model, (*earlier, Message.user(QUESTION)), TOOLS))

    return ask
