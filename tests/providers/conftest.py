"""The provider over either HTTP client, the scripted model server, and a server of given bytes."""

from collections.abc import AsyncIterator, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.providers.events import Event, Request, ToolSchema
from custom_components.windowed_conversation.providers.openai.chat import ChatCompletions
from custom_components.windowed_conversation.window import Message
from demo.model_server import ModelServer

from .byte_server import ByteServer

KEY = "sk-a-made-up-key"
TOOLS = tuple(
    ToolSchema(name, "", {"type": "object", "properties": {}})
    for name in ("homeassistant__GetLiveContext", "intent__HassTurnOff", "intent__HassTurnOn")
)

# Home Assistant shares a client of httpx up to 2026.10, of httpx2 from 2026.11 on, which comes without httpx. The SDK
# takes both, and each raises and closes in its own way.
CLIENTS = [name for name in ("httpx", "httpx2") if find_spec(name)]
over_either_client = pytest.mark.parametrize("http_client", CLIENTS, indirect=True)

type Connect = Callable[..., ChatCompletions]
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


@pytest.fixture
def connect(http_client: Any) -> Connect:
    """Return a function from a base URL to a provider; `timeout` is in seconds."""

    def connect(url: str, *, timeout: float = 10.0) -> ChatCompletions:
        sdk = AsyncOpenAI(api_key=KEY, base_url=url, http_client=http_client, max_retries=0, timeout=timeout)
        return ChatCompletions(sdk)

    return connect


@pytest.fixture
def ask(connect: Connect, model_server: ModelServer) -> Ask:
    """Ask the scripted model; the arguments after the text change its model id and its timeout."""

    def ask(text: str, model: str = "scripted", *, timeout: float = 10.0) -> AsyncIterator[Event]:
        messages = (Message.system("You are a voice assistant."), Message.user(text))
        return connect(model_server.url, timeout=timeout).stream(Request(model, messages, TOOLS))

    return ask


@pytest.fixture
def ask_bytes(connect: Connect, byte_server: ByteServer) -> Ask:
    """Ask the server of given bytes; `earlier` are messages before the user's."""

    def ask_bytes(text: str = "hello", *earlier: Message) -> AsyncIterator[Event]:
        return connect(byte_server.url).stream(Request("model", (*earlier, Message.user(text)), TOOLS))

    return ask_bytes
