"""Tests for an agent's sensors: their attributes, and their states after turns and restarts."""

import asyncio
import json
import logging
from typing import Any

from homeassistant.const import CONF_URL, EntityCategory
from homeassistant.core import Event, EventStateChangedData, HomeAssistant, callback
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.event import async_track_state_change_event
from homeassistant.helpers.icon import async_get_icons
import pytest

from custom_components.windowed_conversation.agents.store import AgentStore
from custom_components.windowed_conversation.const import (
    CONF_HISTORY_TOKENS,
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_OPENAI,
)
from custom_components.windowed_conversation.turn.routing import Route, RouteDecision, RouteReason
from custom_components.windowed_conversation.turn.state import Turn
from demo.model_server import ModelServer, call, words

from .conftest import AGENT, SayAtOnce, SayFn, SetUpFn, Submit, flush_store, start, stop, until
from .more_agents import add_account
from .states import get_state
from .store_file import Disk

LONG = "tell me a story about the sea in 300 words"
TOTALS = (
    "turns_local",
    "turns_model",
    "turns_fallback",
    "turns_failed",
    "requests",
    "tool_calls",
    "failed_tool_calls",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
)

# Name, unit, device class and state class of each sensor, by translation key.
SENSORS = {
    "window_tokens": ("Last conversation tokens", "tokens", None, "measurement"),
    "window_utilization": ("Last conversation fill level", "%", None, "measurement"),
    "active_conversations": ("Active conversations", None, None, "measurement"),
    "last_route": ("Last route", None, "enum", None),
    "turns_local": ("Turns answered locally", None, None, "total_increasing"),
    "turns_model": ("Turns answered by model", None, None, "total_increasing"),
    "turns_fallback": ("Turns answered by fallback agent", None, None, "total_increasing"),
    "turns_failed": ("Turns failed", None, None, "total_increasing"),
    "requests": ("Total requests", None, None, "total_increasing"),
    "tool_calls": ("Total tool calls", None, None, "total_increasing"),
    "failed_tool_calls": ("Total tool calls failed", None, None, "total_increasing"),
    "input_tokens": ("Total input tokens", "tokens", None, "total_increasing"),
    "cached_input_tokens": ("Total cached tokens", "tokens", None, "total_increasing"),
    "output_tokens": ("Total output tokens", "tokens", None, "total_increasing"),
    "time_to_first_token": ("Time to first token", "s", "duration", "measurement"),
    "turn_duration": ("Last turn duration", "s", "duration", "measurement"),
}

# The names of an agent's enabled entities as a page lists them; None is the agent itself.
ENABLED_NAMES = [
    None,
    "Last conversation fill level",
    "Last conversation tokens",
    "Last route",
    "Last turn cost",
    "Last turn duration",
    "Total cost",
    "Total input tokens",
    "Total output tokens",
    "Turns answered by model",
    "Turns answered locally",
    "Turns failed",
]
DISABLED_SENSOR_KEYS = (
    "active_conversations",
    "turns_fallback",
    "requests",
    "tool_calls",
    "failed_tool_calls",
    "cached_input_tokens",
    "time_to_first_token",
)
NEED_A_MODEL = {
    "turns_model",
    "turns_fallback",
    "requests",
    "tool_calls",
    "failed_tool_calls",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "time_to_first_token",
}
UNKNOWN_SENSOR_KEYS = ("last_route", "time_to_first_token", "turn_duration")
INITIAL_STATES = dict.fromkeys(SENSORS, "0") | dict.fromkeys(UNKNOWN_SENSOR_KEYS, "unknown")


@pytest.fixture
def sensors(home: HomeAssistant, entry) -> dict[str, er.RegistryEntry]:
    """Return the registry entries of the agent's sensors by translation key."""
    (agent_id,) = entry.subentries
    return agent_sensors(home, agent_id)


def agent_sensors(home: HomeAssistant, agent_id: str) -> dict[str, er.RegistryEntry]:
    """Return the registry entries of an agent's sensors by translation key."""
    entities = [each for each in er.async_get(home).entities.values() if each.config_subentry_id == agent_id]
    return {str(entity.translation_key): entity for entity in entities if entity.domain == "sensor"}


@pytest.fixture
def totals(figure):
    """Return a function that returns the states of all total sensors."""

    def totals() -> dict[str, str]:
        return {key: figure(key) for key in TOTALS}

    return totals


@pytest.fixture
def conversations(home: HomeAssistant):
    """Return a function that returns the statistics of each conversation."""

    def conversations() -> list[dict[str, Any]]:
        return get_state(home, "sensor.ada_last_conversation_fill_level").attributes["conversations"]

    return conversations


@pytest.mark.rule("entity-disabled-by-default")
async def test_sensors_that_few_people_need_are_disabled_at_first(
    home: HomeAssistant, server_form: Submit, model_server: ModelServer
) -> None:
    await server_form(url=model_server.url)
    await server_form(model="scripted")

    entities = er.async_get(home).entities.values()
    disabled = {entity.translation_key: entity.disabled_by for entity in entities if entity.disabled}
    assert disabled == dict.fromkeys(DISABLED_SENSOR_KEYS, er.RegistryEntryDisabler.INTEGRATION)


def test_account_without_a_model_has_the_sensors_that_can_move(home: HomeAssistant, entry_without_model) -> None:
    (agent_id,) = entry_without_model.subentries

    assert agent_sensors(home, agent_id).keys() == SENSORS.keys() - NEED_A_MODEL


async def test_agent_has_at_most_twelve_enabled_entities(home: HomeAssistant, model_server: ModelServer) -> None:
    await add_account(home, "Ada", {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url})

    agent_id = er.async_get(home).entities[AGENT].unique_id
    entities = [each for each in er.async_get(home).entities.values() if each.config_subentry_id == agent_id]
    enabled = [entity.original_name for entity in entities if not entity.disabled]
    assert sorted(enabled, key=lambda name: name or "") == ENABLED_NAMES


async def test_sensor_that_can_no_longer_move_is_removed_and_no_other(home: HomeAssistant, entry_without_model) -> None:
    (agent_id,) = entry_without_model.subentries
    registry = er.async_get(home)
    before = set(registry.entities)
    registry.async_get_or_create(
        "sensor", DOMAIN, f"{agent_id}_input_tokens", config_entry=entry_without_model, config_subentry_id=agent_id
    )

    await home.config_entries.async_reload(entry_without_model.entry_id)
    await home.async_block_till_done()

    assert set(registry.entities) == before


async def test_sensors_are_what_they_should_be(home: HomeAssistant, entry, sensors) -> None:
    (agent_id,) = entry.subentries
    icons = (await async_get_icons(home, "entity", [DOMAIN]))[DOMAIN]["sensor"]

    shown = {}
    for key, sensor in sensors.items():
        attributes = get_state(home, sensor.entity_id).attributes
        assert attributes["friendly_name"].startswith("Ada ")
        kinds = (attributes.get(name) for name in ("unit_of_measurement", "device_class", "state_class"))
        shown[key] = (attributes["friendly_name"].removeprefix("Ada "), *kinds)

    assert shown == SENSORS
    assert {sensor.unique_id for sensor in sensors.values()} == {f"{agent_id}_{key}" for key in SENSORS}
    assert {sensor.entity_category for sensor in sensors.values()} == {EntityCategory.DIAGNOSTIC}
    assert all(sensor.has_entity_name and sensor.disabled_by is None for sensor in sensors.values())
    assert [key for key in SENSORS if not icons[key]["default"].startswith("mdi:")] == []


def test_home_assistant_finds_no_fault_with_them(entry, caplog: pytest.LogCaptureFixture) -> None:
    warnings = [record for record in caplog.get_records("setup") if record.levelno >= logging.WARNING]
    assert [w.getMessage() for w in warnings if w.name.startswith("homeassistant.components")] == []


async def test_nothing_has_been_said_at_first(entry, figure) -> None:
    assert {key: figure(key) for key in INITIAL_STATES} == INITIAL_STATES


async def test_local_turn_is_counted(entry, say: SayFn, figure) -> None:
    await say("turn on kitchen light")

    shown = {key: figure(key) for key in SENSORS}
    still = ("turns_model", "input_tokens", "cached_input_tokens", "output_tokens")
    assert {key: shown[key] for key in still} == {key: INITIAL_STATES[key] for key in still}
    assert shown["last_route"] == "local"
    assert shown["turns_local"] == shown["active_conversations"] == "1"
    assert shown["time_to_first_token"] == "unknown"
    assert float(shown["turn_duration"]) > 0


async def test_model_turn_is_counted(entry, say: SayFn, figure, model_server: ModelServer) -> None:
    await say("my name is Ada")
    await say("what is my name?")

    usage = [request.usage for request in model_server.requests]
    assert figure("last_route") == "model"
    assert (figure("turns_local"), figure("turns_model")) == ("0", "2")
    assert int(figure("input_tokens")) == sum(each["prompt"] for each in usage)
    assert int(figure("cached_input_tokens")) == sum(each["cached"] for each in usage) > 0
    assert int(figure("output_tokens")) == sum(each["completion"] for each in usage)
    assert 0 < float(figure("time_to_first_token")) <= float(figure("turn_duration"))


async def test_turn_with_tools_is_one_turn_with_all_of_its_tokens(
    entry, say: SayFn, figure, model_server: ModelServer
) -> None:
    await say("I would like the kitchen light switched on")

    usage = [request.usage for request in model_server.requests]
    assert len(usage) == 2
    assert figure("turns_model") == figure("tool_calls") == "1"
    assert figure("requests") == "2"
    assert int(figure("input_tokens")) == sum(each["prompt"] for each in usage)


async def test_turn_that_failed_is_counted_as_failed_and_not_as_answered(
    entry, say: SayFn, totals, figure, model_server: ModelServer
) -> None:
    await say("my name is Ada")
    before = totals()
    model_server.fault("500")

    await say("what is my name?")

    assert figure("last_route") == "error"
    assert totals() == before | {"turns_failed": "1", "requests": "2"}


async def test_sensors_follow_by_themselves_and_once_for_turns_that_end_together(
    home: HomeAssistant, entry, get_agent
) -> None:
    shown: list[str] = []
    changed = asyncio.Event()

    @callback
    def on_change(event: Event[EventStateChangedData]) -> None:
        shown.append(get_state(home, event.data["entity_id"]).state)
        changed.set()

    async_track_state_change_event(home, "sensor.ada_turns_answered_locally", on_change)
    nothing: Any = None
    turn = Turn(nothing, "", RouteDecision(Route.LOCAL, RouteReason.LOCAL_MATCH), 120.0, nothing)
    for _ in range(2):
        get_agent(entry).statistics.on_turn(turn)
    await asyncio.wait_for(changed.wait(), 30)

    assert shown == ["2"]


async def test_window_figures_are_those_of_who_spoke_last(entry, say: SayFn, figure, conversations) -> None:
    await say("my name is Ada", "one")
    await say("what is my name?", "one")
    await say("who am I?", "two")
    assert [each["exchanges"] for each in conversations()] == [1, 2]
    assert figure("window_tokens") == str(conversations()[0]["tokens"])

    await say("what is my name?", "one")

    assert [each["exchanges"] for each in conversations()] == [3, 1]
    assert figure("window_tokens") == str(conversations()[0]["tokens"])


async def test_utilization_is_the_share_of_the_window_in_percent(set_up: SetUpFn, say: SayFn, figure) -> None:
    await set_up(options={CONF_HISTORY_TOKENS: 1000})

    await say(LONG)

    assert float(figure("window_utilization")) == pytest.approx(int(figure("window_tokens")) / 10)
    assert 0 < float(figure("window_utilization")) <= 100


async def test_evicted_messages_are_counted_wherever_they_went(
    set_up: SetUpFn, say: SayFn, get_agent, conversations
) -> None:
    entry = await set_up(options={CONF_HISTORY_TOKENS: 100})
    for _ in range(4):
        await say("turn on kitchen light", agent_id="conversation.home_assistant")

    await say("who am I?")
    await say("my name is Ada")

    (window,) = get_agent(entry).windows.loaded_windows().values()
    (shown,) = conversations()
    assert shown["evicted_messages"] == window.stats().evicted_messages > 0
    assert shown["evicted_messages"] + shown["messages"] == 4 * 4 + 2 * 2


async def test_newest_twenty_conversations_are_shown(entry, say: SayFn, conversations, figure) -> None:
    for number in range(22):
        await say("turn on kitchen light", f"conversation {number}")

    assert [each["conversation_id"] for each in conversations()] == [f"conversation {n}" for n in range(21, 1, -1)]
    assert figure("active_conversations") == "22"


async def test_conversation_whose_only_turn_failed_is_not_shown_or_counted(
    entry, say: SayFn, conversations, figure, model_server: ModelServer
) -> None:
    await say("my name is Ada", "answered")
    model_server.fault("500")

    await say("what is my name?", "failed")

    assert [each["conversation_id"] for each in conversations()] == ["answered"]
    assert figure("active_conversations") == "1"


async def test_conversations_are_ids_and_numbers(entry, say: SayFn, conversations) -> None:
    await say("consider that the wifi password is swordfish")

    (shown,) = conversations()
    assert {key: type(value) for key, value in shown.items()} == {
        "conversation_id": str,
        "messages": int,
        "exchanges": int,
        "tokens": int,
        "utilization": float,
        "over_budget": bool,
        "evicted_messages": int,
    }
    assert "swordfish" not in str(shown)


async def test_conversations_are_not_recorded(home: HomeAssistant, entry) -> None:
    state = get_state(home, "sensor.ada_last_conversation_fill_level")

    assert state.state_info is not None
    assert "conversations" in state.state_info["unrecorded_attributes"]


async def test_totals_go_on_after_a_restart(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, totals, model_server: ModelServer
) -> None:
    entry = await set_up(options={CONF_HISTORY_TOKENS: 100})
    for text in ("my name is Ada", LONG, "turn on kitchen light", "I would like the hall light switched on"):
        await say(text)
    model_server.script(call("HassTurnOn", name="no such light"), words("I found no such light."))
    await say("I would like some light")
    model_server.fault("500")
    await say("who am I?")
    before = totals()

    await stop(home, entry)
    await start(home, entry)

    assert {key for key, total in before.items() if total == "0"} == {"turns_fallback"}
    assert totals() == before
    await say("turn on kitchen light")
    assert int(totals()["turns_local"]) == int(before["turns_local"]) + 1


@pytest.mark.parametrize("kept", [None, "many", -1, 1.5, True, 2**64, [], {}])
async def test_total_that_cannot_be_read_begins_at_nothing_and_costs_no_other(
    *, home: HomeAssistant, entry, say: SayFn, figure, disk: Disk, caplog: pytest.LogCaptureFixture, kept: Any
) -> None:
    await say("my name is Ada")
    await stop(home, entry)
    change = "UPDATE value SET value = json_set(value, '$.input_tokens', json(?)) WHERE name = 'totals'"
    disk.execute(change, json.dumps(kept))

    await start(home, entry)

    assert (figure("input_tokens"), figure("turns_model")) == ("0", "1")
    assert "The total input_tokens is not restored" in caplog.text


async def test_totals_show_what_is_on_disk(
    home: HomeAssistant, entry, figure, say_at_once: SayAtOnce, disk: Disk
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AgentStore, "async_save", lambda store: None)
        await say_at_once("turn on kitchen light")
        await until(lambda: figure("last_route") == "local")
        assert figure("turns_local") == "0"

    await flush_store(home)

    assert figure("turns_local") == "1"
    assert disk.execute("SELECT value ->> 'turns_local' FROM value WHERE name = 'totals'") == [(1,)]
    assert len(disk.conversation_ids) == 1


async def test_totals_are_not_counted_twice_by_a_reload(home: HomeAssistant, entry, say: SayFn, totals) -> None:
    await say("my name is Ada")
    await say("turn on kitchen light")
    before = totals()

    for _ in range(2):
        await home.config_entries.async_reload(entry.entry_id)
        await home.async_block_till_done()

    assert totals() == before
    await say("turn on kitchen light")
    assert totals() == before | {"turns_local": "2"}
