"""Fixtures for the Gemini provider over either HTTP client, with a byte server."""

from typing import Any

import pytest

from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider

from ..byte_server import ByteServer
from ..wires.gemini import GeminiWire

JSON = {"Content-Type": "application/json; charset=UTF-8"}


@pytest.fixture
def provider(http_client: Any, byte_server: ByteServer) -> GeminiProvider:
    return GeminiWire().connect(byte_server.address, http_client)


@pytest.fixture
def asked(http_client: Any) -> list[Any]:
    """Return the list to which the HTTP client's requests are added."""
    requests: list[Any] = []

    async def record_request(request: Any) -> None:
        requests.append(request)

    http_client.event_hooks["request"] = [record_request]
    return requests
