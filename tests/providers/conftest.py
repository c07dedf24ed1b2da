"""The HTTP clients that a provider runs on, and what most tests ask with."""

from collections.abc import AsyncIterator, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Event, ToolSchema

KEY = "sk-a-made-up-key"
TOOLS = tuple(
    ToolSchema(name, "", {"type": "object", "properties": {}})
    for name in ("homeassistant__GetLiveContext", "intent__HassTurnOff", "intent__HassTurnOn")
)

# Home Assistant shares a client of httpx up to 2026.10, of httpx2 from 2026.11 on, which comes without httpx. The SDK
# takes both, and each raises and closes in its own way.
CLIENTS = [name for name in ("httpx", "httpx2") if find_spec(name)]
over_either_client = pytest.mark.parametrize("http_client", CLIENTS, indirect=True)

type Ask = Callable[..., AsyncIterator[Event]]


@pytest.fixture(autouse=True)
def _on_any_machine(idle_clock: None) -> None:
    """Have no test depend on the speed of the machine."""


@pytest.fixture
async def http_client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """Return a client as this Home Assistant shares one, or what `over_either_client` asks for."""
    package = import_module(getattr(request, "param", CLIENTS[0]))
    async with package.AsyncClient(verify=False) as client:
        yield client
