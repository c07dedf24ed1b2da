"""Tests for the server, address and key of a request, from the server's point of view."""

from collections.abc import AsyncIterator, Awaitable, Callable
import json
from typing import Any

from aiohttp import web
import pytest

from custom_components.windowed_conversation.providers.errors import AuthError, BadRequest, Unavailable
from custom_components.windowed_conversation.providers.events import Provider, Request
from custom_components.windowed_conversation.providers.models import Caching, ModelProfile
from custom_components.windowed_conversation.providers.openai.clients import (
    AzureServer,
    create_azure_chat,
    create_azure_responses,
    create_compatible_chat,
    create_openai_chat,
    create_openai_responses,
)
from custom_components.windowed_conversation.window import Message

from ..conftest import KEY, over_either_client
from ..heard import Heard
from ..wires.chat import ChatWire
from ..wires.parts import Text
from ..wires.responses import ResponsesWire

API_VERSION = "2024-10-21"

pytestmark = over_either_client

type Ask = Callable[[Provider], Awaitable[web.Request]]
type Build = Callable[[str, str, Any], Provider]


class Server:
    """A server that answers in either format and records the requests."""

    def __init__(self) -> None:
        self.address = ""
        self.requests: list[web.Request] = []
        self.status = 200

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        await request.read()
        if request.path.endswith("/models"):
            return web.Response(body=ChatWire().model_list(["b", "a"]), content_type="application/json")
        if request.path.endswith("/input_tokens"):
            return web.json_response({"input_tokens": 42})
        wire = ResponsesWire() if request.path.endswith("/responses") else ChatWire()
        body = b"".join(wire.answer(Text(("Hello.",))))
        return web.Response(status=self.status, body=body, content_type="text/event-stream")


@pytest.fixture
async def server(socket_enabled: None) -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server.address = f"http://{host}:{port}"
    yield server
    await runner.cleanup()


@pytest.fixture
def ask(server: Server) -> Ask:
    """Return a function that sends a request for the model `my model` and returns the request as received."""

    async def ask(provider: Provider) -> web.Request:
        heard = await Heard().read(provider.stream(Request("my model", (Message.user("hello"),))))
        assert heard.text == "Hello."
        return server.requests[-1]

    return ask


def keys(request: web.Request) -> dict[str, str]:
    return {name: request.headers[name] for name in ("Authorization", "api-key") if name in request.headers}


BEARER, API_KEY = {"Authorization": f"Bearer {KEY}"}, {"api-key": KEY}


@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda at, client: create_compatible_chat(f"{at}/v1", KEY, client), "/v1/chat/completions"),
        (lambda at, client: create_openai_chat(KEY, client, f"{at}/v1"), "/v1/chat/completions"),
        (lambda at, client: create_openai_responses(KEY, client, f"{at}/v1"), "/v1/responses"),
        (lambda at, client: create_azure_chat(AzureServer(at, KEY), client), "/openai/v1/chat/completions"),
        (lambda at, client: create_azure_responses(AzureServer(at, KEY), client), "/openai/v1/responses"),
        (
            lambda at, client: create_azure_chat(AzureServer(at, KEY, API_VERSION), client),
            f"/openai/deployments/my%20model/chat/completions?api-version={API_VERSION}",
        ),
        (
            lambda at, client: create_azure_responses(AzureServer(at, KEY, API_VERSION), client),
            f"/openai/responses?api-version={API_VERSION}",
        ),
    ],
)
async def test_server_is_asked_at_its_path_with_its_key(
    build: Callable[..., Provider], path: str, ask: Ask, server: Server, http_client: Any
) -> None:
    request = await ask(build(server.address, http_client))

    assert request.raw_path == path
    assert keys(request) == (API_KEY if path.startswith("/openai") else BEARER)
    assert json.loads(await request.read())["model"] == "my model"


@pytest.mark.parametrize("key", ["", None])
async def test_server_at_home_needs_no_key(key: str | None, ask: Ask, server: Server, http_client: Any) -> None:
    await ask(create_compatible_chat(f"{server.address}/v1/", key, http_client))


@pytest.mark.parametrize("build", [create_azure_chat, create_azure_responses])
@pytest.mark.parametrize(
    ("version", "path"), [("", "/openai/v1/models"), (API_VERSION, f"/openai/models?api-version={API_VERSION}")]
)
async def test_models_of_azure_are_listed(
    build: Callable[..., Provider], version: str, path: str, server: Server, http_client: Any
) -> None:
    models = await build(AzureServer(server.address, KEY, version), http_client).list_models()

    assert [model.id for model in models] == ["a", "b"]
    assert server.requests[-1].raw_path == path
    assert keys(server.requests[-1]) == {"api-key": KEY}


async def test_tokens_are_counted_on_azure(server: Server, http_client: Any) -> None:
    provider = create_azure_responses(AzureServer(server.address, KEY), http_client)

    assert await provider.count_tokens(Request("my model", (Message.user("hello"),))) == 42
    assert server.requests[-1].raw_path == "/openai/v1/responses/input_tokens"
    assert keys(server.requests[-1]) == {"api-key": KEY}


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://home.openai.azure.com",
        "https://home.openai.azure.com/",
        "https://home.openai.azure.com/openai",
        "https://home.openai.azure.com/openai/v1/",
        "https://home.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2025-01-01-preview",
        "https://home.openai.azure.com/openai/responses?api-version=2025-04-01-preview",
    ],
)
@pytest.mark.parametrize(("version", "path"), [("", "/openai/v1"), (API_VERSION, "/openai")])
def test_any_address_of_a_resource_will_do(endpoint: str, version: str, path: str, http_client: Any) -> None:
    assert AzureServer(endpoint, KEY, version).url == f"https://home.openai.azure.com{path}"


def test_gateway_before_azure_may_have_a_path_of_its_own(http_client: Any) -> None:
    endpoint = "https://gateway.example/home/api/projects/one/openai/v1"

    assert AzureServer(endpoint, KEY).url == "https://gateway.example/home/api/projects/one/openai/v1"


def test_part_of_a_gateways_path_may_look_like_the_api(http_client: Any) -> None:
    assert (
        AzureServer("https://gateway.example/openai-home/", KEY).url == "https://gateway.example/openai-home/openai/v1"
    )


@pytest.mark.parametrize("build", [create_azure_chat, create_azure_responses])
@pytest.mark.parametrize(("version", "asked"), [("", {"prompt_cache_key": "k"}), (API_VERSION, {})])
@pytest.mark.parametrize("caching", [Caching.RETENTION, Caching.OPTIONS])
def test_azure_is_asked_of_its_cache_what_it_knows(
    build: Callable[..., Provider], version: str, asked: dict[str, str], caching: Caching, http_client: Any
) -> None:
    provider = build(AzureServer("https://home.openai.azure.com", KEY, version), http_client)

    assert (
        provider.cache_settings(Request("my model", (), profile=ModelProfile(caching=caching), cache_key="k")) == asked
    )


def test_what_one_server_encrypted_is_not_sent_to_another(http_client: Any) -> None:
    names = {
        create_openai_responses(KEY, http_client).name,
        create_azure_responses(AzureServer("https://one.openai.azure.com", KEY), http_client).name,
        create_azure_responses(AzureServer("https://two.openai.azure.com", KEY), http_client).name,
    }

    assert len(names) == 3


@pytest.mark.parametrize("build", [create_azure_chat, create_azure_responses])
@pytest.mark.parametrize("version", ["", API_VERSION])
async def test_shared_client_is_left_as_it_was(
    build: Callable[..., Provider], version: str, ask: Ask, server: Server, http_client: Any
) -> None:
    await ask(build(AzureServer(server.address, KEY, version), http_client))

    assert http_client.event_hooks == {"request": [], "response": []}
    assert not http_client.is_closed


async def ask_once(build: Build, address: str, key: str, http_client: Any) -> None:
    """Build a provider and send one request to it."""
    await Heard().read(build(address, key, http_client).stream(Request("my model", (Message.user("hello"),))))


of_every_kind = pytest.mark.parametrize(
    "build",
    [
        lambda address, key, client: create_compatible_chat(f"{address}/v1", key, client),
        lambda address, key, client: create_openai_chat(key, client, f"{address}/v1"),
        lambda address, key, client: create_openai_responses(key, client, f"{address}/v1"),
        lambda address, key, client: create_azure_chat(AzureServer(address, key, API_VERSION), client),
        lambda address, key, client: create_azure_responses(AzureServer(address, key), client),
    ],
    ids=["chat_completions", "openai_chat", "openai_responses", "azure_chat", "azure_responses"],
)


@of_every_kind
@pytest.mark.parametrize("address", ["http://[home", "http://xn--", "http://home/\x00"])
async def test_address_that_is_none_is_told(build: Build, address: str, http_client: Any) -> None:
    with pytest.raises((BadRequest, Unavailable)):
        await ask_once(build, address, KEY, http_client)


@of_every_kind
async def test_key_that_cannot_be_sent_is_wrong(build: Build, server: Server, http_client: Any) -> None:
    with pytest.raises(AuthError):
        await ask_once(build, server.address, "schlüssel", http_client)


@of_every_kind
async def test_half_a_character_in_the_history_is_not_the_keys_fault(
    build: Build, server: Server, http_client: Any
) -> None:
    request = Request("my model", (Message.user("half \ud83d"),))

    await Heard().fail(build(server.address, KEY, http_client).stream(request), BadRequest)
