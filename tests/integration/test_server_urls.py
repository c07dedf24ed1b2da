"""Tests for server URLs as users enter them: which are corrected and which are refused."""

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_OPENAI_CHAT
from custom_components.windowed_conversation.flows.account import VerifiedAccount, async_try_account, parse_base_urls
from demo.model_server import ModelServer

from .conftest import Submit


@pytest.mark.parametrize(
    "written",
    [
        "{address}",
        "{address}/",
        " {address}/v1 ",
        "{address}/v1/",
        "{address}/v1/chat/completions",
        "{address}/v1/responses",
        "{address}/v1/models?limit=1#first",
        "{address}/chat/completions",
        "{host}",
    ],
)
async def test_address_is_found_however_it_is_written(
    server_form: Submit, model_server: ModelServer, written: str
) -> None:
    address = model_server.address
    await server_form(url=written.format(address=address, host=address.removeprefix("http://")))

    made = await server_form(name="Ada", model="scripted")

    assert made["result"].data[CONF_URL] == model_server.url


@pytest.mark.parametrize(
    ("entered", "has_key", "urls"),
    [
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
        ("https://example.openai.azure.com/openai/v1/responses?api-version=1", True,
         ["https://example.openai.azure.com/openai/v1"]),
    ],
)  # fmt: skip
def test_missing_scheme_is_the_one_of_a_home_or_of_the_internet(entered: str, has_key: bool, urls: list[str]) -> None:
    assert parse_base_urls(entered, has_key=has_key) == urls


async def test_server_without_encryption_is_found_where_the_scheme_is_unknown(
    home: HomeAssistant, model_server: ModelServer
) -> None:
    urls = [model_server.url.replace("http", "https", 1), model_server.url]

    tried = await async_try_account(home, {CONF_PROVIDER: PROVIDER_OPENAI_CHAT}, urls)

    assert isinstance(tried, VerifiedAccount)
    assert tried.data[CONF_URL] == model_server.url


@pytest.mark.parametrize(
    "url",
    [
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
    ],
)
async def test_what_is_no_address_is_refused(server_form: Submit, model_server: ModelServer, url: str) -> None:
    form = await server_form(url=url)

    assert form["errors"] == {CONF_URL: "invalid_url"}
    assert (await server_form(url=model_server.url))["step_id"] == "model"
