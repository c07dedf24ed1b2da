"""Fixtures for Chat Completions over either HTTP client, with the scripted model server and a byte server."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.providers.events import Event, Request
from custom_components.windowed_conversation.providers.openai.clients import ChatCompletionsProvider
from custom_components.windowed_conversation.window import Message
from demo.model_server import ModelServer

from ..byte_server import ByteServer
from ..conftest import KEY, SECRET, TOOLS, Ask

type Connect = Callable[..., ChatCompletionsProvider]


@pytest.fixture
def connect(http_client: Any) -> Connect:
    """Return a function that creates a provider for a base URL; `timeout` is in seconds."""

    def connect(url: str, *, timeout: float = 10.0) -> ChatCompletionsProvider:
        sdk = AsyncOpenAI(api_key=KEY, base_url=url, http_client=http_client, max_retries=0, timeout=timeout)
        return ChatCompletionsProvider(sdk)

    return connect


@pytest.fixture
def ask_model(connect: Connect, model_server: ModelServer) -> Ask:
    """Return a function that sends a text to the scripted model, with an optional model id and timeout."""

    def ask_model(text: str, model: str = "scripted", *, timeout: float = 10.0) -> AsyncIterator[Event]:
        messages = (Message.system("You are a voice assistant."), Message.user(text))
        return connect(model_server.url, timeout=timeout).stream(Request(model, messages, TOOLS))

    return ask_model


@pytest.fixture
def ask(connect: Connect, byte_server: ByteServer) -> Ask:
    """Return a function that sends a question to the byte server; `earlier` are the messages before the question."""

    def ask(*earlier: Message) -> AsyncIterator[Event]:
        return connect(byte_server.url).stream(Request("model", (*earlier, Message.user(SECRET)), TOOLS))

    return ask
