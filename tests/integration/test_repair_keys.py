"""Tests for a key that is refused while its account serves a fallback agent: Home Assistant's issue asks for a new one.

The issue opens the account's own reauthentication, so that the integration needs no issue of its own.
"""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

from homeassistant.const import CONF_API_KEY, CONF_URL
from homeassistant.core import DOMAIN as HOMEASSISTANT_DOMAIN, HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_FALLBACK_AGENTS, CONF_ROUTING, DOMAIN
from demo.model_server import ModelServer

from .conftest import SayFn, SetUpFn, get_speech, listed
from .repair_flows import RepairFlows
from .store_file import issues

_FLOW_URL = "/api/config/config_entries/flow"


@pytest.fixture
async def second_server(socket_enabled: None) -> AsyncIterator[ModelServer]:
    async with ModelServer(strict=True) as server:
        yield server


@pytest.fixture
async def refused(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, second_server: ModelServer
) -> MockConfigEntry:
    """Return the account of a fallback agent whose key was refused, while Home Assistant itself answered instead."""
    fallback = ["conversation.ada_2", "conversation.home_assistant"]
    await set_up(**{CONF_FALLBACK_AGENTS: fallback, CONF_ROUTING: "model_only"})
    second = await set_up(account={CONF_URL: second_server.url})
    second_server.change(key="new")
    model_server.fault("500")
    assert get_speech(await say("turn on the kitchen light")) == "Turned on the switch"
    return second


def key_issue(home: HomeAssistant, entry: MockConfigEntry) -> ir.IssueEntry | None:
    """Return Home Assistant's issue about the key of an account."""
    return ir.async_get(home).async_get_issue(HOMEASSISTANT_DOMAIN, f"config_entry_reauth_{DOMAIN}_{entry.entry_id}")


async def enter_key(home: HomeAssistant, client: Any, entry: MockConfigEntry, key: str) -> Any:
    """Enter a key in the form that the issue opens, and return the next step."""
    issue = key_issue(home, entry)
    assert issue is not None
    assert issue.data is not None
    async with client.post(f"{_FLOW_URL}/{issue.data['flow_id']}", json={CONF_API_KEY: key}) as response:
        assert response.status == HTTPStatus.OK
        step = await response.json()
    await listed(home)
    return step


async def test_only_the_refused_account_has_an_issue_and_it_is_the_only_one(
    home: HomeAssistant, refused: MockConfigEntry
) -> None:
    asked = [issue_id for domain, issue_id in ir.async_get(home).issues if domain == HOMEASSISTANT_DOMAIN]

    assert asked == [f"config_entry_reauth_{DOMAIN}_{refused.entry_id}"]
    assert issues(home) == set()


@pytest.mark.rule("reauthentication-flow")
async def test_new_key_is_checked_and_stored_in_that_account(
    home: HomeAssistant, refused: MockConfigEntry, repairs: RepairFlows, say: SayFn
) -> None:
    wrong = await enter_key(home, repairs.client, refused, "wrong")
    before = refused.data[CONF_API_KEY], key_issue(home, refused)

    done = await enter_key(home, repairs.client, refused, "new")

    assert (wrong["type"], wrong["errors"]) == ("form", {"base": "invalid_auth"})
    assert before[0] == "key"
    assert before[1] is not None
    assert (done["reason"], refused.data[CONF_API_KEY], key_issue(home, refused)) == ("reauth_successful", "new", None)
    assert get_speech(await say("my name is Grace")) == "Nice to meet you, Grace."


async def test_key_that_is_refused_again_is_asked_for_once(
    home: HomeAssistant, refused: MockConfigEntry, say: SayFn
) -> None:
    await say("turn on the kitchen light")

    flows = home.config_entries.flow.async_progress_by_handler(DOMAIN)
    assert [flow["context"]["entry_id"] for flow in flows] == [refused.entry_id]


async def test_form_that_was_closed_is_opened_again_by_the_next_refusal(
    home: HomeAssistant, refused: MockConfigEntry, say: SayFn
) -> None:
    (flow,) = home.config_entries.flow.async_progress_by_handler(DOMAIN)
    home.config_entries.flow.async_abort(flow["flow_id"])
    closed = key_issue(home, refused)

    await say("turn on the kitchen light")

    assert closed is None
    assert key_issue(home, refused) is not None


async def test_key_can_be_entered_after_a_reload(
    home: HomeAssistant, refused: MockConfigEntry, repairs: RepairFlows
) -> None:
    assert await home.config_entries.async_reload(refused.entry_id)
    await listed(home)

    done = await enter_key(home, repairs.client, refused, "new")

    assert (done["reason"], key_issue(home, refused)) == ("reauth_successful", None)
