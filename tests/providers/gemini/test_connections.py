"""Tests for Gemini's clients: their construction, their connections, and the requests that they send."""

import ssl
import subprocess
import sys
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Request
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider
from custom_components.windowed_conversation.window import Message

from ..byte_server import ByteServer
from ..conftest import CLIENTS, over_either_client
from ..heard import Heard
from ..wires.gemini import API_KEY, STOP, GeminiWire

REQUEST = Request("gemini-made-up", (Message.user("hello"),))

BUILD = """
import asyncio, importlib, os, sys
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider

async def build(client):
    GeminiProvider(None, "a key", client)

for package in sys.argv[1:]:
    if os.fork() == 0:
        client = importlib.import_module(package).AsyncClient(verify=False)
        before = set(sys.modules)
        asyncio.run(build(client))
        print(package, *sorted(set(sys.modules) - before))
        sys.exit()
    os.wait()
"""

pytestmark = over_either_client


@pytest.mark.parametrize("model", ["gemini-made-up", "models/gemini-made-up"])
async def test_request_says_who_asks_for_what(
    model: str, asked: list[Any], provider: GeminiProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(STOP)

    await Heard().read(provider.stream(Request(model, REQUEST.messages)))

    address = f"{byte_server.address}/v1beta/models/gemini-made-up:streamGenerateContent?alt=sse"
    assert str(asked[0].url) == address
    assert asked[0].headers["x-goog-api-key"] == API_KEY


async def test_environment_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, http_client: Any, asked: list[Any], byte_server: ByteServer
) -> None:
    for name, value in {
        "GEMINI_API_KEY": "another",
        "GOOGLE_API_KEY": "another",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1",
        "GOOGLE_GENAI_API_VERSION": "v9",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_CLOUD_PROJECT": "another",
    }.items():
        monkeypatch.setenv(name, value)
    byte_server.set_reply(STOP)
    provider = GeminiProvider(byte_server.address, None, http_client)

    await Heard().read(provider.stream(REQUEST))

    assert asked[0].url.path.startswith("/v1beta/models/")
    assert asked[0].headers["x-goog-api-key"] == "none"


async def test_account_without_a_url_asks_google(http_client: Any, asked: list[Any]) -> None:
    async def refuse_to_send(request: Any) -> None:
        raise ZeroDivisionError

    http_client.event_hooks["request"].append(refuse_to_send)
    provider = GeminiProvider(None, API_KEY, http_client)

    with pytest.raises(ZeroDivisionError):
        await provider.list_models()

    assert asked[0].url.scheme == "https"
    assert asked[0].url.host == "generativelanguage.googleapis.com"


async def test_limit_of_a_short_answer_is_not_that_of_a_long_one(
    http_client: Any, asked: list[Any], byte_server: ByteServer
) -> None:
    provider = GeminiProvider(byte_server.address, API_KEY, http_client)
    byte_server.set_reply(GeminiWire().model_list(["a"]))
    await provider.list_models()
    byte_server.set_reply(STOP)

    await Heard().read(provider.stream(REQUEST))

    short, long = (set(request.extensions["timeout"].values()) for request in asked)
    assert (short, long) == ({10.0}, {None})
    assert "X-Server-Timeout" not in asked[1].headers


async def test_building_reads_no_certificates(monkeypatch: pytest.MonkeyPatch, http_client: Any) -> None:
    read: list[object] = []
    for name in ("load_default_certs", "load_verify_locations"):
        monkeypatch.setattr(ssl.SSLContext, name, lambda *args, **_: read.append(args), raising=False)

    GeminiProvider(None, API_KEY, http_client)

    assert read == []


@pytest.fixture(scope="module")
def imported(pytestconfig: pytest.Config) -> list[str]:
    """Return a line for each HTTP client, with its package and the modules imported by building a provider with it."""
    arguments = [sys.executable, "-c", BUILD, *CLIENTS]
    return subprocess.run(
        arguments, cwd=pytestconfig.rootpath, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.long
def test_building_imports_nothing(http_client: Any, imported: list[str]) -> None:
    assert type(http_client).__module__.partition(".")[0] in imported
