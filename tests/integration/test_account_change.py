"""Tests for changing an account's key or address, after which its agents and their conversations remain."""

import logging

from homeassistant.config_entries import SOURCE_REAUTH, ConfigEntryState
from homeassistant.const import CONF_API_KEY, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
import pytest

from custom_components.windowed_conversation.const import DOMAIN
from demo.model_server import ModelServer

from .account_forms import reconfigure
from .conftest import SayFn, SetUpFn, Submit, get_speech


@pytest.fixture
async def reauth_form(home: HomeAssistant, entry, model_server: ModelServer) -> Submit:
    """Start reauthentication at a server that accepts only the key "new", and return the open form."""
    model_server.change(key="new")
    return Submit(home, home.config_entries.flow, await entry.start_reauth_flow(home))


@pytest.fixture
async def reconfigure_form(home: HomeAssistant, entry) -> Submit:
    """Open the form that changes the account, and return it."""
    return await reconfigure(home, entry)


async def test_wrong_key_is_refused_again(reauth_form: Submit, entry) -> None:
    before = entry.data

    form = await reauth_form(api_key="wrong")

    assert form["errors"] == {"base": "invalid_auth"}
    assert [key.description for key in form["data_schema"].schema] == [{"suggested_value": "wrong"}]
    assert entry.data == before


@pytest.fixture
async def first_key_form(home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer) -> Submit:
    """Return the form that asks for the first key of an account, whose server now requires the key "new"."""
    model_server.change(key="new")
    entry = await set_up(account={CONF_API_KEY: None})
    (flow,) = entry.async_get_active_flows(home, {SOURCE_REAUTH})
    return Submit(home, home.config_entries.flow, await home.config_entries.flow.async_configure(flow["flow_id"]))


async def test_account_without_a_key_says_that_the_server_wants_one_now(
    first_key_form: Submit, model_server: ModelServer, say: SayFn
) -> None:
    assert first_key_form.shown["step_id"] == "reauth_first_key"
    assert first_key_form.shown["description_placeholders"]["url"] == model_server.url

    assert (await first_key_form())["errors"] == {"base": "key_wanted"}
    assert (await first_key_form(api_key="wrong"))["errors"] == {"base": "invalid_auth"}
    assert (await first_key_form(api_key="new"))["reason"] == "reauth_successful"
    assert "Nice to meet you" in get_speech(await say("my name is Ada"))


async def test_account_without_a_key_needs_none_when_the_proxy_was_mended(
    home: HomeAssistant, first_key_form: Submit, model_server: ModelServer, say: SayFn
) -> None:
    model_server.change(key=None)

    assert (await first_key_form())["reason"] == "reauth_successful"
    assert [CONF_API_KEY in each.data for each in home.config_entries.async_entries(DOMAIN)] == [False]
    assert "Nice to meet you" in get_speech(await say("my name is Ada"))


async def test_key_that_is_accepted_again_is_kept(reauth_form: Submit, entry, model_server: ModelServer) -> None:
    model_server.change(key="key")

    done = await reauth_form()

    assert done["reason"] == "reauth_successful"
    assert entry.data[CONF_API_KEY] == "key"


async def test_change_suggests_the_address_and_hides_the_key(reconfigure_form: Submit, entry) -> None:
    (address, key) = reconfigure_form.shown["data_schema"].schema

    assert address.description == {"suggested_value": entry.data[CONF_URL]}
    assert key.description is None


async def test_key_is_taken_away_by_an_empty_one(reconfigure_form: Submit, entry) -> None:
    await reconfigure_form(url=entry.data[CONF_URL], api_key="")

    assert CONF_API_KEY not in entry.data


@pytest.mark.parametrize(
    ("typed", "suggested"), [({}, None), ({CONF_API_KEY: "sk-typed"}, {"suggested_value": "sk-typed"})]
)
async def test_refused_change_shows_a_key_that_was_typed_and_no_other(
    reconfigure_form: Submit, unused_tcp_port: int, typed: dict[str, str], suggested: dict[str, str] | None
) -> None:
    form = await reconfigure_form(url=f"http://127.0.0.1:{unused_tcp_port}/v1", **typed)

    (_, key) = form["data_schema"].schema
    assert key.description == suggested


@pytest.mark.rule("reconfiguration-flow")
async def test_account_whose_server_is_down_can_be_moved(
    home: HomeAssistant, set_up, unused_tcp_port: int, model_server: ModelServer
) -> None:
    entry = await set_up(account={CONF_URL: f"http://127.0.0.1:{unused_tcp_port}/v1"})
    form = await reconfigure(home, entry)

    await form(url=model_server.url)

    assert entry.state is ConfigEntryState.LOADED


async def test_account_that_was_never_set_up_can_be_mended(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer
) -> None:
    entry = await set_up(account={CONF_URL: "http://[::1"})
    form = await reconfigure(home, entry)

    await form(url=model_server.url)

    assert entry.state is ConfigEntryState.LOADED


async def test_two_accounts_do_not_become_the_same(
    home: HomeAssistant, entry, set_up, model_server: ModelServer
) -> None:
    other = await set_up(account={CONF_API_KEY: "another"})
    form = await reconfigure(home, other)

    done = await form(url=model_server.url, api_key="key")

    assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "already_configured")
    assert other.data[CONF_API_KEY] == "another"


async def test_account_without_a_model_has_nothing_to_change(home: HomeAssistant, entry_without_model) -> None:
    result = await entry_without_model.start_reconfigure_flow(home)

    assert (result["type"], result["reason"]) == (FlowResultType.ABORT, "nothing_to_change")


async def test_account_is_set_up_again_once(
    reconfigure_form: Submit, entry, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    model_server.log.clear()

    await reconfigure_form(url=entry.data[CONF_URL], api_key="other")

    lists = [record.path for record in model_server.log.records if not record.for_answer]
    assert lists == ["/v1/models"] * 2
    assert "update listener" not in caplog.text


@pytest.fixture
async def left_alone(entry, model_server: ModelServer, say: SayFn) -> None:
    """Have the server refuse a request and ask not to be contacted again for two hours."""
    model_server.fault("429", 1, retry_after=7200)
    assert "try again in 2 hours" in get_speech(await say("my name is Ada"))


async def test_server_is_left_alone_when_it_asked_for_that(left_alone: None, say: SayFn) -> None:
    assert "try again in" in get_speech(await say("my name is Ada"))


async def test_server_is_asked_again_after_its_account_was_confirmed(
    left_alone: None, reconfigure_form: Submit, say: SayFn, model_server: ModelServer
) -> None:
    await reconfigure_form(url=model_server.url)

    assert "Nice to meet you" in get_speech(await say("my name is Ada"))


async def test_server_is_asked_again_with_a_new_key(left_alone: None, reauth_form: Submit, say: SayFn) -> None:
    await reauth_form(api_key="new")

    assert "Nice to meet you" in get_speech(await say("my name is Ada"))


async def test_server_is_asked_again_after_a_reload(left_alone: None, home: HomeAssistant, entry, say: SayFn) -> None:
    await home.config_entries.async_reload(entry.entry_id)

    assert "Nice to meet you" in get_speech(await say("my name is Ada"))
