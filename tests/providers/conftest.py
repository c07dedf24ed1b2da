"""The HTTP clients that a provider runs on, and the tools and fixtures that most tests share."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
import re
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Event, ToolSchema

from .byte_server import ByteServer, Piece
from .heard import ErrorTypes, Heard

KEY = "sk-a-made-up-key"
# A text that no error message may contain.
SECRET = "the pelican is my secret word"
TOOLS = tuple(
    ToolSchema(name, "", {"type": "object", "properties": {}})
    for name in ("homeassistant__GetLiveContext", "intent__HassTurnOff", "intent__HassTurnOn")
)

# Home Assistant shares an httpx client up to 2026.10 and an httpx2 client from 2026.11 on, which comes without httpx.
# The SDK accepts both, but they differ in the errors they raise and in how they close connections.
CLIENTS = [name for name in ("httpx", "httpx2") if find_spec(name)]
over_either_client = pytest.mark.parametrize("http_client", CLIENTS, indirect=True)

_FOLDER = Path(__file__).parent
_SDK_IMPORT_PATTERN = re.compile(r"^(from|import) (openai|anthropic|google|\S*sdk_types)\b", re.MULTILINE)

type Ask = Callable[..., AsyncIterator[Event]]
type Hear = Callable[..., Awaitable[Heard]]


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Mark the tests that use an SDK, which a newer version of it may break. Requests to Gemini use none."""
    for item in items:
        if item.path.is_relative_to(_FOLDER) and (_imports_sdk(item.path) or _sends_with_sdk(item)):
            item.add_marker("sdk")


def _sends_with_sdk(item: pytest.Function) -> bool:
    return "http_client" in item.fixturenames and "gemini" not in item.nodeid


@cache
def _imports_sdk(path: Path) -> bool:
    return _SDK_IMPORT_PATTERN.search(path.read_text()) is not None


@pytest.fixture(autouse=True)
def _no_deadline_waits(leaping_clock: None) -> None:
    """Make tests independent of the speed of the machine, without waiting for deadlines."""


@pytest.fixture
async def http_client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """Yield an HTTP client of the package that Home Assistant shares, or of the one named by `over_either_client`."""
    package = import_module(getattr(request, "param", CLIENTS[0]))
    async with package.AsyncClient(verify=False) as client:
        yield client


@pytest.fixture
def hear(ask: Ask, byte_server: ByteServer) -> Hear:
    """Return a function that makes the server reply with the given pieces and returns the resulting `Heard` events.

    Its keyword arguments are passed to `ask`.
    """

    async def hear(*pieces: Piece, **asked: Any) -> Heard:
        byte_server.set_reply(*pieces)
        return await Heard().read(ask(**asked))

    return hear


@pytest.fixture
def fail(ask: Ask, byte_server: ByteServer) -> Hear:
    """Return a function that makes the server reply with the given pieces and returns the events up to this error.

    Its keyword arguments are passed to `ByteServer.set_reply`.
    """

    async def fail(error: ErrorTypes, *pieces: Piece, **reply: Any) -> Heard:
        byte_server.set_reply(*pieces, **reply)
        return await Heard().fail(ask(), error)

    return fail
