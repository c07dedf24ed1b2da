"""Fixtures for a provider of each format and a server that replies with a recorded stream."""

from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import ProviderError
from custom_components.windowed_conversation.providers.events import Request
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import ByteServer
from tests.providers.heard import Heard
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.parts import Wire

from .reading import Called, Reading, UsageCounts

type Replay = Callable[[list[bytes]], Any]


@pytest.fixture
def wire(format_: str) -> Wire:
    """Return the wire format that the test names."""
    return next(wire for wire in ALL_WIRES if wire.name == format_)


@pytest.fixture
async def http_client(wire: Wire) -> AsyncIterator[Any]:
    """Yield an HTTP client that the format's SDK runs on."""
    async with import_module(wire.clients[0]).AsyncClient(verify=False) as client:
        yield client


@pytest.fixture
def replay(wire: Wire, http_client: Any, byte_server: ByteServer) -> Replay:
    """Return a function that replays the pieces of a stream and returns the provider's events."""
    provider = wire.connect(byte_server.address, http_client)

    async def replay(pieces: list[bytes]) -> Reading:
        byte_server.set_reply(*pieces)
        heard, error = Heard(), ""
        try:
            await heard.read(provider.stream(Request("model", (Message.user("hello"),))))
        except ProviderError as err:
            error = type(err).__name__
        return _reading(heard, error)

    return replay


def _reading(heard: Heard, error: str) -> Reading:
    ending = error or heard.done_events[0].reason.value
    calls = tuple(Called(call.id, call.name, call.arguments) for call in heard.calls)
    usage = heard.usages[-1] if heard.usages else None
    figures = (
        usage
        if usage is None
        else UsageCounts(usage.input, usage.cached, usage.output, usage.cache_written, usage.reasoning, usage.cleared)
    )
    return Reading(heard.text, heard.reasoning, calls, figures, ending)
