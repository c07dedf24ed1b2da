"""Tests for a server that redirects: no request follows the redirect, and the user is shown the new address."""

from collections.abc import AsyncIterator

from aiohttp import web
import pytest

from custom_components.windowed_conversation.bridge.errors import describe_error
from custom_components.windowed_conversation.providers.errors import Redirected
from demo.model_server import ModelServer

from .conftest import Submit, run_server

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
