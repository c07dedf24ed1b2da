"""Tests for server URLs: which are corrected, which are refused, and what a form says of a redirect."""

from collections.abc import AsyncIterator

from aiohttp import web
from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.bridge.errors import describe_error
from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_OPENAI_CHAT
from custom_components.windowed_conversation.flows.account import VerifiedAccount, async_try_account, parse_base_urls
from custom_components.windowed_conversation.providers.errors import Redirected
from demo.model_server import ModelServer

from .account_forms import open_account
from .conftest import Submit, run_server
from .rows import Row, row

__all__ = ["row"]


async def test_address_is_found_however_it_is_written(home: HomeAssistant, row: Row, model_server: ModelServer) -> None:
    for template in (
        "http://{host}",
        "http://{host}/",
        " http://{host}/v1 ",
        "http://{host}/v1/",
        "http://{host}/v1/chat/completions",
        "http://{host}/v1/responses",
        "http://{host}/v1/models?limit=1#first",
        "http://{host}/chat/completions",
        "{host}",
    ):
        async with row(template):
            server_form = await open_account(home)
            await server_form(url=template.format(host=model_server.address.removeprefix("http://")))

            made = await server_form(name="Ada", model="scripted")

            assert made["result"].data[CONF_URL] == model_server.url


def test_missing_scheme_is_the_one_of_a_home_or_of_the_internet(subtests: pytest.Subtests) -> None:
    for text, has_key, urls in (
        ("192.168.1.10:11434", True, ["http://192.168.1.10:11434"]),
        ("100.101.102.103:8080/v1", True, ["http://100.101.102.103:8080/v1"]),
        ("localhost:1234", False, ["http://localhost:1234"]),
        ("ollama.local:11434", True, ["http://ollama.local:11434"]),
        ("Ollama.Home.Arpa:11434", True, ["http://Ollama.Home.Arpa:11434"]),
        ("[fd00::1]:11434", False, ["http://[fd00::1]:11434"]),
        ("api.example.com/v1/chat/completions", True, ["https://api.example.com/v1"]),
        ("api.example.com", False, ["https://api.example.com", "http://api.example.com"]),
        ("ada:secret@api.example.com", False, ["https://ada:secret@api.example.com"]),
        ("8.8.8.8:11434", True, ["https://8.8.8.8:11434"]),
        ("http://api.example.com", True, ["http://api.example.com"]),
        ("HTTPS://api.example.com/api/v1/models", True, ["https://api.example.com/api/v1"]),
        ("https://api.example.com/models", True, ["https://api.example.com/models"]),
        (
            "https://example.openai.azure.com/openai/v1/responses?api-version=1",
            True,
            ["https://example.openai.azure.com/openai/v1"],
        ),
    ):
        with subtests.test(text=text, has_key=has_key):
            assert parse_base_urls(text, has_key=has_key) == urls


async def test_server_without_encryption_is_found_where_the_scheme_is_unknown(
    home: HomeAssistant, model_server: ModelServer
) -> None:
    urls = [model_server.url.replace("http", "https", 1), model_server.url]

    tried = await async_try_account(home, {CONF_PROVIDER: PROVIDER_OPENAI_CHAT}, urls)

    assert isinstance(tried, VerifiedAccount)
    assert tried.data[CONF_URL] == model_server.url


async def test_what_is_no_address_is_refused(
    home: HomeAssistant, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    for url in (
        "",
        "my server",
        "https//localhost/v1",
        "localhost:port",
        "[::1",
        "127.0.0.1:8080/my server",
        "javascript:alert(1)",
        "ftp://localhost/v1",
        "http://",
        "http://:8080/v1",
        "http://localhost:99999/v1",
        "http://[::1/v1",
        "http://local\x07host/v1",
        "http://127.0.0.256/v1",
        "http://-\N{SNOWMAN}-/v1",
    ):
        with subtests.test(url=url):
            server_form = await open_account(home)

            form = await server_form(url=url)

            assert form["errors"] == {CONF_URL: "invalid_url"}
            assert (await server_form(url=model_server.url))["step_id"] == "model"


REDIRECTS = (301, 302, 303, 307, 308)


@pytest.fixture(params=REDIRECTS)
async def moved(request: pytest.FixtureRequest, model_server: ModelServer) -> AsyncIterator[str]:
    """Yield the address of a server that redirects to the scripted model server."""

    async def redirect(asked: web.Request) -> web.Response:
        address = f"{model_server.url.removesuffix('/v1')}{asked.path}?secret=1"
        return web.Response(status=request.param, headers={"Location": address})

    async with run_server(redirect) as address:
        yield f"{address}/v1"


async def test_form_names_the_new_address_and_asks_nobody_there(
    moved: str, server_form: Submit, model_server: ModelServer
) -> None:
    form = await server_form(url=moved)

    assert form["errors"] == {"base": "redirected"}
    assert form["description_placeholders"]["new_address"] == f"{model_server.url}/models"
    assert list(model_server.log.records) == []


async def test_address_without_a_path_is_not_asked_again_after_a_redirect(moved: str, server_form: Submit) -> None:
    form = await server_form(url=moved.removesuffix("/v1"))

    assert form["errors"] == {"base": "redirected"}
    assert "/v1/models" in form["description_placeholders"]["new_address"]


def test_new_address_is_told() -> None:
    failure = describe_error(Redirected("https://new.example/v1/models"))

    assert (failure.key, failure.placeholders) == ("redirected", {"address": "https://new.example/v1/models"})
