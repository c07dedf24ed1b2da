"""Chat Completions over either HTTP client, before the scripted model server and a server of given bytes."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.providers.events import Event, Request
from custom_components.windowed_conversation.providers.openai.clients import ChatCompletions
from custom_components.windowed_conversation.window import Message
from demo.model_server import ModelServer

from ..byte_server import ByteServer
from ..conftest import KEY, SECRET, TOOLS, Ask

type Connect = Callable[..., ChatCompletions]


@pytest.fixture
def connect(http_client: Any) -> Connect:
    """Return a function from a base URL to a provider; `timeout` is in seconds."""

    def connect(url: str, *, timeout: float = 10.0) -> ChatCompletions:
        sdk = AsyncOpenAI(api_key=KEY, base_url=url, http_client=http_client, max_retries=0, timeout=timeout)
        return ChatCompletions(sdk)

    return connect


@pytest.fixture
def ask_model(connect: Connect, model_server: ModelServer) -> Ask:
    """Ask the scripted model; the arguments after the text change its model id and its timeout."""

    def ask_model(text: str, model: str = "scripted", *, timeout: float = 10.0) -> AsyncIterator[Event]:
        messages = (Message.system("You are a voice assistant."), Message.user(text))
        return connect(model_server.url, timeout=timeout).stream(Request(model, messages, TOOLS))

    return ask_model


@pytest.fixture
def ask(connect: Connect, byte_server: ByteServer) -> Ask:
    """Ask the server of given bytes; `earlier` are messages before the user's."""

    def ask(*earlier: Message) -> AsyncIterator[Event]:
        return connect(byte_server.url).stream(Request("model", (*earlier, Message.user(SECRET)), TOOLS))

    return ask
