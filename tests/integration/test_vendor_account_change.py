"""Tests for changing vendor accounts: reauthentication after a refused key, and reconfiguration that keeps agents."""

from itertools import product
from typing import Any

from homeassistant.config_entries import SOURCE_REAUTH, ConfigEntryState
from homeassistant.const import CONF_API_KEY
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.helpers import issue_registry as ir
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_API_VERSION, CONF_FALLBACK_AGENTS, CONF_FORMAT
from demo.model_server import ModelServer

from .account_forms import reconfigure
from .account_kinds import AZURE_RESPONSES, CLASSIC_CHAT, CLASSIC_RESPONSES, KINDS, VENDORS, Kind
from .conftest import SayFn, SetUpFn, Submit, get_speech
from .rows import Row, row

__all__ = ["row"]


def reauth_flows(home: HomeAssistant, entry: MockConfigEntry) -> list[Any]:
    """Return the active reauthentication flows of an account."""
    return list(entry.async_get_active_flows(home, {SOURCE_REAUTH}))


async def test_key_that_is_refused_in_a_turn_is_asked_for_again(
    home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    for kind in KINDS:
        async with row(kind.name):
            entry = await set_up(account=kind.account(model_server))
            agents = dict(entry.subentries)
            await say("my name is Ada")
            model_server.change(key="new")
            await say("what is my name?")
            (flow,) = reauth_flows(home, entry)
            form = Submit(home, home.config_entries.flow, flow)

            assert (await form(api_key="wrong"))["errors"] == {"base": "invalid_auth"}
            done = await form(api_key="new")

            assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "reauth_successful")
            assert entry.data[CONF_API_KEY] == "new"
            assert entry.subentries == agents
            assert "Ada" in get_speech(await say("what is my name?"))


async def test_only_the_key_changes_when_another_is_asked_for(
    home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer
) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            entry = await set_up(account=kind.account(model_server))
            form = Submit(home, home.config_entries.flow, await entry.start_reauth_flow(home))
            model_server.change(key="new")

            assert list(form.shown["data_schema"].schema) == [CONF_API_KEY]
            await form(api_key="new")

            assert entry.data == kind.account(model_server, "new")


@pytest.mark.rule("test-before-setup")
async def test_key_that_is_refused_at_set_up_is_asked_for_again(
    home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer
) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            model_server.change(key="new")
            entry = await set_up(account=kind.account(model_server))
            state = entry.state
            (flow,) = reauth_flows(home, entry)

            await Submit(home, home.config_entries.flow, flow)(api_key="new")

            assert (state, entry.state) == (ConfigEntryState.LOADED, ConfigEntryState.LOADED)
            assert entry.data == kind.account(model_server, "new")


async def test_key_that_only_lists_models_is_refused_again(
    home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer
) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            entry = await set_up(account=kind.account(model_server), model="scripted+401")
            form = Submit(home, home.config_entries.flow, await entry.start_reauth_flow(home))

            shown = await form(api_key="lists only")

            assert shown["errors"] == {"base": "invalid_auth"}
            assert entry.data == kind.account(model_server)


@pytest.mark.parametrize("whose", ["the first", "the one that helps out"])
async def test_key_is_asked_for_of_the_account_whose_it_is(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn, whose: str
) -> None:
    anthropic, openai = KINDS[-1], KINDS[0]
    async with ModelServer(strict=True) as other_server:
        mine = await set_up(account=openai.account(model_server), **{CONF_FALLBACK_AGENTS: ["conversation.ada_2"]})
        other = await set_up(account=anthropic.account(other_server))
        if whose == "the first":
            model_server.change(key="new")
        else:
            model_server.fault("500")
            other_server.change(key="new")

        answer = get_speech(await say("my name is Grace"))

    refused, accepted = (mine, other) if whose == "the first" else (other, mine)
    assert ("Nice to meet you" in answer) is (refused is mine)
    assert len(reauth_flows(home, refused)) == 1
    assert reauth_flows(home, accepted) == []
    assert [domain for domain, issue in ir.async_get(home).issues if issue.startswith("config_entry_reauth")]


async def test_other_address_and_key_are_taken_over(
    home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            entry = await set_up(account=kind.account(model_server))
            agents = dict(entry.subentries)
            await say("my name is Ada")
            form = await reconfigure(home, entry)

            async with ModelServer(strict=True, key="other") as other_server:
                done = await form(**kind.entered(other_server, "other"))
                answer = get_speech(await say("what is my name?"))

            assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "reconfigure_successful")
            assert entry.data == kind.account(other_server, "other")
            assert entry.subentries == agents
            assert "Ada" in answer


async def test_form_of_a_change_shows_everything_but_the_key(
    home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer
) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            form = await reconfigure(home, await set_up(account=kind.account(model_server, "my-secret")))

            fields = form.shown["data_schema"].schema
            shown = [*fields, *fields["advanced"].schema.schema]
            suggested = [each.description["suggested_value"] for each in shown if each.description]
            assert kind.account(model_server)["url"] in suggested
            assert "my-secret" not in str(shown) + str(suggested)


async def test_key_that_is_left_empty_stays(
    home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer
) -> None:
    keys: tuple[dict[str, str], ...] = ({}, {CONF_API_KEY: ""})
    for kind, key in product(VENDORS, keys):
        async with row(f"{kind.name} {key}"):
            entry = await set_up(account=kind.account(model_server))
            form = await reconfigure(home, entry)
            entered = kind.entered(model_server)
            del entered[CONF_API_KEY]

            done = await form(**entered, **key)

            assert done["reason"] == "reconfigure_successful"
            assert entry.data == kind.account(model_server)


async def test_change_that_does_not_work_changes_nothing(
    home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer
) -> None:
    for kind in VENDORS:
        async with row(kind.name):
            entry = await set_up(account=kind.account(model_server))
            form = await reconfigure(home, entry)
            model_server.change(key="right")

            shown = await form(**kind.entered(model_server, "wrong"))

            assert shown["errors"] == {"base": "invalid_auth"}
            assert entry.data == kind.account(model_server)


@pytest.mark.parametrize("kind", [KINDS[0], AZURE_RESPONSES], ids=lambda kind: kind.name)
async def test_conversation_goes_on_in_the_other_format(
    home: HomeAssistant, set_up: SetUpFn, kind: Kind, model_server: ModelServer, say: SayFn
) -> None:
    entry = await set_up(account=kind.account(model_server))
    await say("my name is Ada")
    form = await reconfigure(home, entry)

    await form(**kind.entered(model_server, format="chat"))

    assert entry.data[CONF_FORMAT] == "chat"
    assert "Ada" in get_speech(await say("what is my name?"))
    assert model_server.requests[-1].path.endswith("/chat/completions")


async def test_version_can_be_emptied(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    entry = await set_up(account=CLASSIC_RESPONSES.account(model_server))
    form = await reconfigure(home, entry)
    entered = AZURE_RESPONSES.entered(model_server)

    await form(**entered)

    assert CONF_API_VERSION not in entry.data
    await say("hello")
    assert model_server.requests[-1].path == AZURE_RESPONSES.asked


async def test_format_that_the_version_does_not_know_is_refused(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer
) -> None:
    kind = CLASSIC_CHAT
    entry = await set_up(account=kind.account(model_server))
    form = await reconfigure(home, entry)

    shown = await form(**kind.entered(model_server, format="responses"))

    assert shown["errors"] == {"advanced": "wrong_api_version"}
    assert entry.data == kind.account(model_server)
    done = await form(**kind.entered(model_server, format="responses", api_version="2025-04-01-preview"))
    assert done["reason"] == "reconfigure_successful"
