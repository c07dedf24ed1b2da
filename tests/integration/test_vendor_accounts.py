"""Tests for the forms of vendor accounts, from the menu to a working agent. Every mistake can be corrected."""

from itertools import product
from typing import Any

from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.helpers.selector import TextSelector
from probatio import UNDEFINED
import pytest

from custom_components.windowed_conversation.const import (
    CONF_API_VERSION,
    CONF_DEPLOYMENT,
    CONF_FORMAT,
    PROVIDER_OPENAI,
)
from custom_components.windowed_conversation.flows.account import ACCOUNT_FORMS
from demo.model_server import ModelServer
from tests.model_lists import ANTHROPIC, GEMINI, OPENAI

from .account_forms import open_account
from .account_kinds import AZURE_RESPONSES, CLASSIC_CHAT, CLASSIC_RESPONSES, KINDS, VENDORS, Kind
from .conftest import Page, SayFn, SetUpFn, get_speech
from .rows import Row, row

__all__ = ["row"]

ADA = {"name": "Ada", "model": "scripted"}


def get_suggested_key(form: Any) -> Any:
    """Return the API key that a form suggests, or None."""
    (key,) = [field for field in form["data_schema"].schema if field == CONF_API_KEY]
    return key.description and key.description["suggested_value"]


async def test_account_is_made_as_it_was_entered(home: HomeAssistant, row: Row, model_server: ModelServer) -> None:
    for kind in KINDS:
        async with row(kind.name):
            form = await open_account(home, kind.step)
            await form(**kind.entered(model_server))

            made = await form(**ADA)

            assert made["type"] is FlowResultType.CREATE_ENTRY
            entry = made["result"]
            assert entry.state is ConfigEntryState.LOADED
            assert entry.data == kind.account(model_server)
            assert entry.title == kind.title.format(host=model_server.address.removeprefix("http://"))


async def test_first_agent_answers_at_once(
    home: HomeAssistant, row: Row, model_server: ModelServer, say: SayFn
) -> None:
    for kind in KINDS:
        async with row(kind.name):
            form = await open_account(home, kind.step)
            await form(**kind.entered(model_server))
            await form(**ADA)
            model_server.log.clear()

            await say("my name is Grace")

            assert "Grace" in get_speech(await say("what is my name?"))
            assert [request.path for request in model_server.requests] == [kind.asked] * 2
            assert [request.violations for request in model_server.requests] == [[], []]


@pytest.mark.parametrize(
    ("step", "listed", "recommended"),
    [
        ("openai", OPENAI, "gpt-5-mini"),
        ("gemini", GEMINI, "gemini-3.1-flash-lite"),
        ("anthropic", ANTHROPIC, "claude-haiku-4-5-20251001"),
    ],
)
async def test_recommended_model_is_chosen_already(
    home: HomeAssistant, model_server: ModelServer, step: str, listed: tuple[str, ...], recommended: str
) -> None:
    model_server.change(models=listed)
    kind = next(kind for kind in KINDS if kind.step == step)

    shown = await (await open_account(home, kind.step))(**kind.entered(model_server))

    assert shown["data_schema"].schema[CONF_MODEL].config["custom_value"]
    assert shown["data_schema"]({})[CONF_MODEL] == recommended


async def test_deployment_is_typed(home: HomeAssistant, model_server: ModelServer) -> None:
    shown = await (await open_account(home, AZURE_RESPONSES.step))(**AZURE_RESPONSES.entered(model_server))

    fields = shown["data_schema"].schema
    (model,) = [field for field in fields if field == CONF_DEPLOYMENT]
    assert isinstance(fields[CONF_DEPLOYMENT], TextSelector)
    assert (model.description, model.default) == (None, UNDEFINED)


async def test_gateway_of_openai_is_found_however_its_address_is_written(
    home: HomeAssistant, row: Row, model_server: ModelServer
) -> None:
    for kind, path in product(KINDS[:2], ("", "/", "/v1/responses", "/v1/models")):
        async with row(f"{kind.name} {path}"):
            form = await open_account(home, kind.step)
            await form(**kind.entered(model_server, url=f"{model_server.address}{path}"))

            made = await form(**ADA)

            assert made["result"].data == kind.account(model_server)
            assert model_server.requests[-1].path == kind.asked


async def test_model_is_asked_for_a_word_once(home: HomeAssistant, row: Row, model_server: ModelServer) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            form = await open_account(home, kind.step)
            await form(**kind.entered(model_server))

            await form(**ADA)

            (asked,) = model_server.requests
            assert asked.path == kind.asked
            assert asked.violations == []


async def test_wrong_key_is_refused_and_shown_again(home: HomeAssistant, row: Row, model_server: ModelServer) -> None:
    for kind in KINDS:
        async with row(kind.name):
            form = await open_account(home, kind.step)
            model_server.change(key="right")

            shown = await form(**kind.entered(model_server, "wrong"))

            assert shown["errors"] == {"base": "invalid_auth"}
            assert get_suggested_key(shown) == "wrong"
            assert (await form(**kind.entered(model_server, "right")))["step_id"] == "model"


async def test_key_that_only_lists_models_is_refused(home: HomeAssistant, row: Row, model_server: ModelServer) -> None:
    for kind in KINDS:
        async with row(kind.name):
            form = await open_account(home, kind.step)
            await form(**kind.entered(model_server))
            model_server.fault("401", 1)

            shown = await form(**ADA)

            assert (shown["step_id"], shown["errors"]) == (kind.form_step, {"base": "invalid_auth"})
            assert get_suggested_key(shown) == "key"
            assert (await form(**kind.entered(model_server)))["step_id"] == "model"
            assert (await form(**ADA))["type"] is FlowResultType.CREATE_ENTRY


async def test_empty_key_is_refused(home: HomeAssistant, row: Row, model_server: ModelServer) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            form = await open_account(home, kind.step)

            shown = await form(**kind.entered(model_server, " "))

            assert shown["errors"] == {CONF_API_KEY: "key_missing"}
            assert (await form(**kind.entered(model_server)))["step_id"] == "model"


async def test_server_that_is_down_is_told(
    home: HomeAssistant, row: Row, model_server: ModelServer, unused_tcp_port: int
) -> None:
    for kind in KINDS:
        async with row(kind.name):
            form = await open_account(home, kind.step)

            shown = await form(**kind.entered(model_server, url=f"http://127.0.0.1:{unused_tcp_port}"))

            assert shown["errors"] == {"base": "cannot_connect"}
            assert get_suggested_key(shown) == "key"
            assert (await form(**kind.entered(model_server)))["step_id"] == "model"


async def test_server_of_another_kind_is_told(
    home: HomeAssistant, row: Row, model_server: ModelServer, page: Page
) -> None:
    answers = (("<html><body>Welcome to my router</body></html>", "text/html"), ("null", "application/json"))
    for kind, (text, content_type) in product(VENDORS, answers):
        async with row(f"{kind.name} {content_type}"):
            form = await open_account(home, kind.step)

            shown = await form(**kind.entered(model_server, url=await page(text, content_type)))

            assert shown["errors"] == {"base": "not_compatible"}
            assert get_suggested_key(shown) == "key"
            assert (await form(**kind.entered(model_server)))["step_id"] == "model"


async def test_what_is_no_address_is_refused(home: HomeAssistant, row: Row, model_server: ModelServer) -> None:
    for kind, url in product(VENDORS, ("ftp://127.0.0.1", "http://[::1", "http://127.0.0.1:99999", "here")):
        async with row(f"{kind.name} {url}"):
            form = await open_account(home, kind.step)

            shown = await form(**kind.entered(model_server, url=url))

            assert list(shown["errors"].values()) == ["invalid_url"]
            assert get_suggested_key(shown) == "key"
            assert (await form(**kind.entered(model_server)))["step_id"] == "model"


async def test_what_the_model_says_is_told(home: HomeAssistant, row: Row, model_server: ModelServer) -> None:
    errors_by_fault = {
        "400": {"{model}": "unsuitable_model"},
        "quota": {"base": "no_credit"},
        "500": {"base": "server_failed"},
        "cut_mid_stream": {"base": "cannot_connect"},
    }
    for kind, (fault, errors) in product(VENDORS, errors_by_fault.items()):
        async with row(f"{kind.name} {fault}"):
            form = await open_account(home, kind.step)
            await form(**kind.entered(model_server))
            model_server.fault(fault, 1)

            shown = await form(**ADA)

            assert shown["step_id"] == "model"
            assert shown["errors"] == {field.format(model=kind.model_field): error for field, error in errors.items()}
            assert (await form(**ADA))["type"] is FlowResultType.CREATE_ENTRY


async def test_model_that_is_there_may_say_what_it_likes(
    home: HomeAssistant, row: Row, model_server: ModelServer
) -> None:
    for kind, fault in product(VENDORS, ("length", "refusal", "429")):
        async with row(f"{kind.name} {fault}"):
            form = await open_account(home, kind.step)
            await form(**kind.entered(model_server))
            model_server.fault(fault, 1)

            assert (await form(**ADA))["type"] is FlowResultType.CREATE_ENTRY


async def test_model_or_deployment_that_is_not_there_is_told(
    home: HomeAssistant, row: Row, model_server: ModelServer
) -> None:
    for kind in KINDS:
        async with row(kind.name):
            form = await open_account(home, kind.step)
            await form(**kind.entered(model_server))

            shown = await form(name="Ada", model="nobody")

            assert (shown["step_id"], shown["errors"]) == ("model", {kind.model_field: f"no_such_{kind.model_field}"})
            assert (await form(**ADA))["type"] is FlowResultType.CREATE_ENTRY


def test_section_that_may_hold_the_mistake_stays_open(subtests: pytest.Subtests) -> None:
    form = ACCOUNT_FORMS[PROVIDER_OPENAI]
    for changes, error, is_collapsed in (
        ({}, "cannot_connect", True),
        ({CONF_URL: "http://127.0.0.1:1"}, "cannot_connect", False),
        ({CONF_URL: "here"}, "invalid_url", False),
        ({CONF_FORMAT: "chat"}, "cannot_connect", False),
    ):
        with subtests.test(changes=changes, error=error):
            account = {**form.build_account_data({}, {}), **changes}

            schema = form.build_schema(account, key_only=False, key_exists=False, error=error).schema

            assert schema["advanced"].options["collapsed"] is is_collapsed


@pytest.mark.parametrize("classic", [CLASSIC_CHAT, CLASSIC_RESPONSES], ids=lambda kind: kind.name)
async def test_version_that_there_never_was_is_told(
    home: HomeAssistant, model_server: ModelServer, classic: Kind
) -> None:
    form = await open_account(home, classic.step)

    shown = await form(**classic.entered(model_server, api_version="2020-01-01"))

    assert shown["errors"] == {"advanced": "wrong_api_version"}
    assert get_suggested_key(shown) == "key"
    assert (await form(**classic.entered(model_server)))["step_id"] == "model"


async def test_version_that_is_older_than_the_format_is_told(home: HomeAssistant, model_server: ModelServer) -> None:
    form = await open_account(home, CLASSIC_RESPONSES.step)
    await form(**CLASSIC_RESPONSES.entered(model_server, api_version="2024-10-21"))

    shown = await form(**ADA)

    assert (shown["step_id"], shown["errors"]) == ("azure", {"advanced": "wrong_api_version"})
    assert get_suggested_key(shown) == "key"
    await form(**CLASSIC_RESPONSES.entered(model_server))
    assert (await form(**ADA))["type"] is FlowResultType.CREATE_ENTRY


async def test_same_account_is_not_made_twice(
    home: HomeAssistant, row: Row, model_server: ModelServer, set_up: SetUpFn
) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            form = await open_account(home, kind.step)
            await set_up(account=kind.account(model_server))

            again = await form(**kind.entered(model_server))

            assert (again["type"], again["reason"]) == (FlowResultType.ABORT, "already_configured")


async def test_account_without_a_version_is_another_than_with_one(
    home: HomeAssistant, model_server: ModelServer, set_up: SetUpFn
) -> None:
    await set_up(account=CLASSIC_RESPONSES.account(model_server))
    form = await open_account(home, AZURE_RESPONSES.step)

    assert (await form(**AZURE_RESPONSES.entered(model_server)))["step_id"] == "model"


@pytest.mark.parametrize("step", ["openai", "gemini", "anthropic"])
async def test_address_of_the_vendor_is_suggested(home: HomeAssistant, step: str) -> None:
    form = await open_account(home, step)
    (section,) = [value for field, value in form.shown["data_schema"].schema.items() if field == "advanced"]
    (address,) = [field for field in section.schema.schema if field == CONF_URL]

    assert address.description["suggested_value"].startswith("https://")


async def test_format_is_the_newer_one_unless_changed(home: HomeAssistant) -> None:
    form = await open_account(home, AZURE_RESPONSES.step)

    (section,) = [value for field, value in form.shown["data_schema"].schema.items() if field == "advanced"]
    assert section.schema({}) == {CONF_FORMAT: "responses"}
    assert CONF_API_VERSION in section.schema.schema
