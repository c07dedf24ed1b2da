"""Fixtures for tests of the Anthropic provider: the HTTP client that the installed SDK accepts, and a `ByteServer`."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.anthropic.clients import HttpClient, MessagesProvider
from custom_components.windowed_conversation.providers.events import Event, Request, ToolSchema
from custom_components.windowed_conversation.window import Message, NativeData

from ..byte_server import ByteServer
from ..conftest import Ask
from ..wires.anthropic import AnthropicWire

MODEL = "claude-haiku-4-5"
TOOLS = (ToolSchema("intent__HassTurnOn", "Turns on a device", {"type": "object", "properties": {}}),)
LIGHT = ToolSchema(
    "intent__HassTurnOn",
    "Turns on a device",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)

type Connect = Callable[..., MessagesProvider]


def native(*residue: Any, model: str = MODEL, provider: str = "anthropic") -> NativeData:
    return NativeData(provider, model, list(residue))


@pytest.fixture
async def http_client() -> AsyncIterator[Any]:
    """Yield an HTTP client of the package that the SDK runs on."""
    async with HttpClient(verify=False) as client:
        yield client


@pytest.fixture
def connect(http_client: Any, byte_server: ByteServer) -> Connect:
    """Return a function that creates a provider for the byte server; `timeout` is in seconds."""

    def connect(*, timeout: float = 10.0) -> Any:
        return AnthropicWire().connect(byte_server.address, http_client, timeout=timeout)

    return connect


@pytest.fixture
def ask(connect: Connect) -> Ask:
    """Return a function that sends a request to the byte server and returns its events; `fields` are the request's."""

    def ask(*earlier: Message, timeout: float = 10.0, **fields: Any) -> AsyncIterator[Event]:
        messages = (*earlier, Message.user("hello"))
        return connect(timeout=timeout).stream(Request(MODEL, messages, **{"tools": TOOLS, **fields}))

    return ask
