"""Tests for setting up, unloading and removing an account, and for the data that is deleted or kept with its agents."""

from collections.abc import Callable
from datetime import timedelta
import time
from typing import Any

from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import CONF_URL, STATE_UNAVAILABLE
from homeassistant.core import HomeAssistant
from homeassistant.helpers import device_registry as dr, entity_registry as er, issue_registry as ir
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import async_fire_time_changed

from custom_components.windowed_conversation.const import (
    CONF_EXPIRY_HOURS,
    CONF_HISTORY_TOKENS,
    CONF_PERSISTENCE,
    CONF_ROUTING,
    CONF_TRIM_SHARE,
    CONF_TURN_TIMEOUT,
    DOMAIN,
)
from custom_components.windowed_conversation.sensor import MEMORY_SENSORS
from demo.model_server import ModelServer

from .conftest import AGENT, SayFn, SetUpFn, get_speech, listed
from .more_agents import add_agent, remove_agent
from .states import get_state

TOO_SMALL = {CONF_HISTORY_TOKENS: 100}
LONG = "tell me a story about the sea in 300 words"


type CountTraces = Callable[[], dict[str, int]]

# The household has one, whatever the number of accounts.
REMINDER_LISTS = 1


@pytest.fixture
def count_traces(home: HomeAssistant) -> CountTraces:
    """Return a function that counts devices, entities, issues and agent states in Home Assistant."""

    def count_traces() -> dict[str, int]:
        return {
            "devices": len([d for d in dr.async_get(home).devices if next(iter(d.identifiers))[0] == DOMAIN]),
            "entities": len([e for e in er.async_get(home).entities.values() if e.platform == DOMAIN]),
            "issues": len([domain for domain, _ in ir.async_get(home).issues if domain == DOMAIN]),
            "states": sum(len(account.agent_states) for account in home.data[f"{DOMAIN}_account_states"].values()),
        }

    return count_traces


@pytest.mark.rule("devices")
async def test_agent_has_one_device_for_all_of_its_entities(home: HomeAssistant, entry) -> None:
    (subentry_id,) = entry.subentries
    devices = dr.async_entries_for_config_entry(dr.async_get(home), entry.entry_id)
    (device,) = [each for each in devices if each.config_subentry_id == subentry_id]

    assert device.identifiers == {(DOMAIN, subentry_id)}
    assert (device.name, device.manufacturer, device.model) == ("Ada", "Windowed Conversation", "scripted")
    assert device.entry_type is dr.DeviceEntryType.SERVICE
    entities = [each for each in er.async_get(home).entities.values() if each.config_subentry_id == subentry_id]
    assert {entity.device_id for entity in entities} == {device.id}
    assert {entity.config_entry_id for entity in entities} == {entry.entry_id}


async def test_set_up_asks_for_the_models_and_for_nothing_else(home, entry, model_server: ModelServer) -> None:
    await home.config_entries.async_reload(entry.entry_id)
    await listed(home)

    assert [(record.method, record.path) for record in model_server.log.records] == [("GET", "/v1/models")]


async def test_account_without_a_model_opens_no_connection(entry_without_model, model_server: ModelServer) -> None:
    assert entry_without_model.state is ConfigEntryState.LOADED
    assert model_server.open_connections == 0


async def test_impossible_address_is_told_at_set_up(set_up: SetUpFn) -> None:
    entry = await set_up(account={CONF_URL: "http://[::1"})

    assert entry.state is ConfigEntryState.SETUP_ERROR
    assert entry.error_reason_translation_key == "bad_request"


# Impossible settings of an account and of its agent.
IMPOSSIBLE_SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({CONF_HISTORY_TOKENS: 0}, {}),
    ({CONF_HISTORY_TOKENS: "many"}, {}),
    ({CONF_TRIM_SHARE: 95}, {}),
    ({CONF_TRIM_SHARE: "half"}, {}),
    ({CONF_EXPIRY_HOURS: "soon"}, {}),
    ({CONF_PERSISTENCE: "some"}, {}),
    ({}, {CONF_ROUTING: "both"}),
    ({}, {CONF_TURN_TIMEOUT: "long"}),
]


@pytest.mark.rule("test-before-setup")
async def test_impossible_settings_are_told(set_up: SetUpFn, subtests: pytest.Subtests) -> None:
    for options, agent in IMPOSSIBLE_SETTINGS:
        with subtests.test(options=options, agent=agent):
            entry = await set_up(options=options, **agent)

            assert entry.state is ConfigEntryState.SETUP_ERROR
            assert entry.error_reason_translation_key == "impossible_configuration"
            assert entry.reason == "The settings of Ada are invalid"


@pytest.mark.rule("config-entry-unloading")
async def test_unloaded_agent_is_unavailable(home: HomeAssistant, entry) -> None:
    assert await home.config_entries.async_unload(entry.entry_id)

    assert entry.state is ConfigEntryState.NOT_LOADED
    assert get_state(home, AGENT).state == STATE_UNAVAILABLE


async def test_idle_conversation_is_forgotten_in_time(
    home: HomeAssistant, entry, say: SayFn, figure, get_agent
) -> None:
    await say("my name is Ada")
    get_agent(entry).windows._clock = lambda: time.monotonic() + 25 * 3600

    async_fire_time_changed(home, dt_util.utcnow() + timedelta(minutes=11))
    await home.async_block_till_done()

    assert figure("active_conversations") == "0"
    assert figure("window_tokens") == "0"


async def test_renamed_agent_is_renamed_everywhere(home: HomeAssistant, entry) -> None:
    (subentry,) = entry.subentries.values()

    home.config_entries.async_update_subentry(entry, subentry, title="Grace")
    await home.async_block_till_done()

    assert get_state(home, AGENT).name == "Grace"
    assert get_state(home, "sensor.ada_last_conversation_tokens").name == "Grace Last conversation tokens"


@pytest.mark.rule("dynamic-devices")
@pytest.mark.rule("stale-devices")
async def test_removed_agent_leaves_nothing_behind(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, count_traces: CountTraces
) -> None:
    entry = await set_up(options=TOO_SMALL)
    before = count_traces()
    friday = await add_agent(home, entry, "Friday")
    await say(LONG, agent_id="conversation.friday")
    assert count_traces() == {
        "devices": before["devices"] + 1,
        "entities": before["entities"] * 2 - len(MEMORY_SENSORS) - REMINDER_LISTS,
        "issues": 1,
        "states": 2,
    }

    await remove_agent(home, entry, friday)

    assert count_traces() == before
    assert home.states.get("conversation.friday") is None
    assert entry.state is ConfigEntryState.LOADED


async def test_conversations_of_the_other_agents_stay(home: HomeAssistant, entry, say: SayFn) -> None:
    friday = await add_agent(home, entry, "Friday")
    await say("my name is Ada")

    await remove_agent(home, entry, friday)

    assert "Ada" in get_speech(await say("what is my name?"))


@pytest.mark.parametrize("earlier_step", ["async_unload", "async_reload"])
async def test_removed_account_leaves_nothing_behind(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, count_traces: CountTraces, earlier_step: str
) -> None:
    entry = await set_up(options=TOO_SMALL)
    await say(LONG)
    await getattr(home.config_entries, earlier_step)(entry.entry_id)

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done()

    assert count_traces() == {"devices": 0, "entities": 0, "issues": 0, "states": 0}


async def test_agent_removed_while_its_account_is_away_leaves_nothing_behind(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, count_traces: CountTraces
) -> None:
    entry = await set_up(options=TOO_SMALL)
    await say(LONG)
    await home.config_entries.async_unload(entry.entry_id)

    home.config_entries.async_remove_subentry(entry, next(iter(entry.subentries)))
    await home.config_entries.async_setup(entry.entry_id)
    await home.async_block_till_done()

    assert count_traces() == {"devices": 1, "entities": len(MEMORY_SENSORS) + REMINDER_LISTS, "issues": 0, "states": 0}
