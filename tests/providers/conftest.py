"""The HTTP clients that a provider runs on, and the tools and fixtures of most tests."""

from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Event, ToolSchema

from .byte_server import ByteServer, Piece
from .heard import Failure, Heard

KEY = "sk-a-made-up-key"
# A text that no error may repeat.
SECRET = "the pelican is my secret word"
TOOLS = tuple(
    ToolSchema(name, "", {"type": "object", "properties": {}})
    for name in ("homeassistant__GetLiveContext", "intent__HassTurnOff", "intent__HassTurnOn")
)

# Home Assistant shares a client of httpx up to 2026.10, of httpx2 from 2026.11 on, which comes without httpx. The SDK
# takes both, and each raises and closes in its own way.
CLIENTS = [name for name in ("httpx", "httpx2") if find_spec(name)]
over_either_client = pytest.mark.parametrize("http_client", CLIENTS, indirect=True)

type Ask = Callable[..., AsyncIterator[Event]]
type Hear = Callable[..., Awaitable[Heard]]


@pytest.fixture(autouse=True)
def _on_any_machine(leaping_clock: None) -> None:
    """Have no test depend on the speed of the machine, nor wait for a deadline."""


@pytest.fixture
async def http_client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """Return a client as this Home Assistant shares one, or the one that `over_either_client` names."""
    package = import_module(getattr(request, "param", CLIENTS[0]))
    async with package.AsyncClient(verify=False) as client:
        yield client


@pytest.fixture
def hear(ask: Ask, byte_server: ByteServer) -> Hear:
    """Have the server answer with these pieces, and return the events; `asked` are the arguments of `ask`."""

    async def hear(*pieces: Piece, **asked: Any) -> Heard:
        byte_server.reply(*pieces)
        return await Heard().listen(ask(**asked))

    return hear


@pytest.fixture
def fail(ask: Ask, byte_server: ByteServer) -> Hear:
    """Have the server answer with this error, and return the events; `reply` are arguments of `ByteServer.reply`."""

    async def fail(error: Failure, *pieces: Piece, **reply: Any) -> Heard:
        byte_server.reply(*pieces, **reply)
        return await Heard().fail(ask(), error)

    return fail
