"""Tests for the sensors of memory: once for all accounts, under another account if their own is gone."""

from collections.abc import Callable
from typing import Any

from homeassistant.config_entries import ConfigEntryDisabler
from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.helpers import device_registry as dr, entity_registry as er
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_MEMORY,
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_NONE,
    PROVIDER_OPENAI_CHAT,
)
from demo.model_server import ModelServer

from .conftest import SayFn, SetUpFn, listed, start, stop, until
from .more_agents import add_account
from .remembered import add_fact
from .states import get_state

# Name, unit, device class and state class of each sensor, by translation key.
SENSORS = {
    "memory_facts": ("Facts", None, None, "measurement"),
    "memory_turns": ("Turns", None, None, "measurement"),
    "memory_size": ("Size", "MB", "data_size", "measurement"),
}
FACTS = "sensor.memory_facts"

type Owners = Callable[[], set[str | None]]


@pytest.fixture
async def other(home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer) -> MockConfigEntry:
    """Return a second account, which was set up after the first one."""
    return await add_another(home, model_server)


async def add_another(home: HomeAssistant, model_server: ModelServer) -> MockConfigEntry:
    """Set up another account, and return it."""
    before = set(home.config_entries.async_entries(DOMAIN))
    await add_account(home, "Grace", {CONF_PROVIDER: PROVIDER_OPENAI_CHAT, CONF_URL: model_server.url})
    await listed(home)
    (added,) = set(home.config_entries.async_entries(DOMAIN)) - before
    assert isinstance(added, MockConfigEntry)
    return added


def memory_entities(home: HomeAssistant) -> dict[str, er.RegistryEntry]:
    """Return the registry entries of the sensors of memory by entity id."""
    return {
        entity_id: each for entity_id, each in er.async_get(home).entities.items() if each.translation_key in SENSORS
    }


@pytest.fixture
def owners(home: HomeAssistant) -> Owners:
    """Return a function that returns the accounts of the memory sensors and of their devices."""

    def owners() -> set[str | None]:
        entities = memory_entities(home).values()
        assert len(entities) == len(SENSORS)
        (device_id,) = {entity.device_id for entity in entities}
        device = dr.async_get(home).async_get(str(device_id))
        assert device is not None
        return {device.config_entry_id, *(entity.config_entry_id for entity in entities)}

    return owners


def memory_devices(home: HomeAssistant) -> list[dr.DeviceEntry]:
    """Return the devices of memory."""
    return [each for each in dr.async_get(home).devices if (DOMAIN, "memory") in each.identifiers]


async def show_fact(home: HomeAssistant, text: str, count: str) -> None:
    """Add a fact to memory, and wait until the sensor shows the count."""
    await add_fact(home, text)
    await until(lambda: get_state(home, FACTS).state == count)


async def test_memory_is_one_service_device_with_its_own_sensors(home: HomeAssistant, entry, other) -> None:
    shown = {}
    for entity_id, sensor in memory_entities(home).items():
        attributes = get_state(home, entity_id).attributes
        kinds = (attributes.get(name) for name in ("unit_of_measurement", "device_class", "state_class"))
        shown[sensor.unique_id] = (attributes["friendly_name"].removeprefix("Memory "), *kinds)

    (device,) = memory_devices(home)
    assert shown == SENSORS
    assert (device.name, device.entry_type) == ("Memory", dr.DeviceEntryType.SERVICE)


async def test_no_agent_lists_the_sensors_of_memory(home: HomeAssistant, entry, other) -> None:
    agents = {*entry.subentries, *other.subentries}

    assert {each.config_subentry_id for each in memory_entities(home).values()} == {None}
    lists = [each for each in er.async_get(home).entities.values() if each.config_subentry_id in agents]
    assert SENSORS.keys() & {each.translation_key for each in lists} == set()


async def test_turns_of_every_agent_are_counted(home: HomeAssistant, entry, other, say: SayFn, figure) -> None:
    await say("hello there")
    await say("hello there", agent_id="conversation.grace")

    await until(lambda: figure("memory_turns") == "2")
    assert float(figure("memory_size")) > 0


async def test_sensors_work_under_another_account_when_theirs_is_removed(
    home: HomeAssistant, entry, other, owners: Owners
) -> None:
    await show_fact(home, "Tea at five", "1")
    assert owners() == {entry.entry_id}

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done()

    assert owners() == {other.entry_id}
    await show_fact(home, "Coffee at six", "2")


async def test_sensors_work_under_another_account_when_theirs_is_disabled(
    home: HomeAssistant, entry, other, owners: Owners
) -> None:
    await home.config_entries.async_set_disabled_by(entry.entry_id, ConfigEntryDisabler.USER)
    await home.async_block_till_done()

    assert owners() == {other.entry_id}
    assert {each.disabled_by for each in memory_entities(home).values()} == {None}
    await show_fact(home, "Tea at five", "1")


async def test_sensors_of_a_disabled_account_are_enabled_under_a_new_one(
    *, home: HomeAssistant, entry, owners: Owners, model_server: ModelServer
) -> None:
    await home.config_entries.async_set_disabled_by(entry.entry_id, ConfigEntryDisabler.USER)
    await home.async_block_till_done()

    other = await add_another(home, model_server)

    assert owners() == {other.entry_id}
    assert {each.disabled_by for each in memory_entities(home).values()} == {None}
    assert [each.disabled_by for each in memory_devices(home)] == [None]
    await show_fact(home, "Tea at five", "1")


async def test_reload_of_either_account_duplicates_nothing(home: HomeAssistant, entry, other, owners: Owners) -> None:
    before = set(memory_entities(home))

    for each in (entry, other, other, entry):
        await home.config_entries.async_reload(each.entry_id)
        await home.async_block_till_done()

    assert set(memory_entities(home)) == before
    assert len(owners()) == len(memory_devices(home)) == 1
    await show_fact(home, "Tea at five", "1")


async def test_restart_in_the_other_order_duplicates_nothing(home: HomeAssistant, entry, other, owners: Owners) -> None:
    before = set(memory_entities(home))

    await stop(home, entry, other)
    await start(home, other)
    await start(home, entry)

    assert (set(memory_entities(home)), owners()) == (before, {other.entry_id})
    await show_fact(home, "Tea at five", "1")


async def test_name_that_the_user_gave_moves_along(home: HomeAssistant, entry, other) -> None:
    er.async_get(home).async_update_entity(FACTS, name="What it knows", new_entity_id="sensor.what_it_knows")
    await home.async_block_till_done()

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done()

    assert get_state(home, "sensor.what_it_knows").name == "What it knows"


async def test_removal_of_the_last_account_removes_the_sensors(home: HomeAssistant, entry, other) -> None:
    for each in (entry, other):
        await home.config_entries.async_remove(each.entry_id)
        await home.async_block_till_done()

    assert (memory_entities(home), memory_devices(home)) == ({}, [])


async def test_what_is_left_in_memory_is_shown_without_an_agent_that_uses_it(
    home: HomeAssistant, set_up: SetUpFn, figure: Callable[[str], str]
) -> None:
    account: dict[str, Any] = {CONF_PROVIDER: PROVIDER_NONE}
    await set_up(account=account, **{CONF_MEMORY: "off"})

    assert figure("memory_facts") == "0"
