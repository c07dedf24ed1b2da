"""A home that an earlier version has left starts with this one and loses nothing.

The folders beside this module are such homes, each named by the commit that lived in it and recorded by `record.py`.
They stay as they are; a version that keeps something in another way gets a folder of its own.

The figures of the last turn are not in here: no version has kept them over a restart.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
import json
import logging
from logging.handlers import BufferingHandler
from pathlib import Path
import sys
from typing import Any

from freezegun import freeze_time
from homeassistant import loader
from homeassistant.auth import auth_manager_from_config
from homeassistant.bootstrap import async_load_base_functionality
from homeassistant.components import conversation
from homeassistant.config_entries import ConfigEntries
from homeassistant.core import Context, CoreState, HomeAssistant
from homeassistant.helpers import device_registry as dr, entity_registry as er, issue_registry as ir
from homeassistant.helpers.json import json_bytes
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockUser
import pytest_socket

from custom_components.windowed_conversation.diagnostics import async_get_config_entry_diagnostics
from demo.model_server import ModelServer
from tests.clock import IdleClock

from .record import DOMAIN, MODELS, PLACEHOLDER

VERSIONS = ("d2fb19a", "bc2dea3")
# In the order in which they are asked: Eve's turn is followed by a summary, which asks the model, too.
WITH_A_MODEL = ("Ada", "Bob", "Cyd", "Dan", "Gus", "Eve")
AGENTS = (*WITH_A_MODEL, "Fay")

# Sensors that are removed: in an account without a model they never move.
GONE = {
    "d2fb19a": {
        "Fay": {"cached_input_tokens", "input_tokens", "output_tokens", "time_to_first_token", "turns_model"},
    }
}
# What is learned anew: a size of a model was one figure, and is believed after two refusals now.
LEARNED_ANEW = {"d2fb19a": {"limits"}}
# Settings that the diagnostics call otherwise now, and those of which they show the values otherwise.
RENAMED = {"reply_tokens": "max_answer_tokens"}
REWORDED = {"compaction": {"off": False, "provider": True}}
# The ids of the conversations that are kept: one more has an id that Home Assistant has made.
OWN_IDS = {"agent", "long", "upgrade", "user"}

# What people give an entity or a device.
GIVEN = ("entity_id", "name", "icon", "disabled_by", "hidden_by", "area_id", "labels")


@dataclass(slots=True)
class Home:
    """A home before the upgrade, as `record.py` has seen it and its files say, and after it. By names of agents."""

    version: str
    before: dict[str, Any]
    entities_before: dict[str, dict[str, Any]]
    devices_before: dict[str, str | None]
    states: dict[str, str] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    entities: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: dict[str, str | None] = field(default_factory=dict)
    issues: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    windows: dict[str, dict[str, Any]] = field(default_factory=dict)
    speech: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)

    def agent(self, name: str) -> dict[str, Any]:
        """Return what an agent told of itself after the upgrade."""
        (agent,) = self.told[name]["agents"]
        return dict(agent)


@pytest.fixture(scope="module", params=VERSIONS)
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Start the home once, talk to each agent, and stop it."""
    folder = Path(__file__).with_name(request.param)
    home = Home(
        folder.name,
        read(folder, "seen.json"),
        {each["unique_id"]: each for each in read(folder, "core.entity_registry")["data"]["entities"]},
        {each["name"]: each["name_by_user"] for each in read(folder, "core.device_registry")["data"]["devices"]},
    )
    config = tmp_path_factory.mktemp(folder.name)
    log = BufferingHandler(sys.maxsize)
    log.setLevel(logging.WARNING)
    logging.getLogger().addHandler(log)
    pytest_socket.enable_socket()
    try:
        # a week later the conversations would have expired
        with freeze_time(
            datetime.fromisoformat(home.before["at"]) + timedelta(minutes=1), tick=True, real_asyncio=True
        ):
            asyncio.run(live_in(home, folder, config))
    finally:
        pytest_socket.disable_socket(allow_unix_socket=True)
        logging.getLogger().removeHandler(log)
    home.log = [f"{record.name}: {record.getMessage()}" for record in log.buffer]
    return home


def read(folder: Path, name: str) -> dict[str, Any]:
    """Return what a file of a folder holds."""
    content: dict[str, Any] = json.loads((folder / name).read_text())
    return content


def install(folder: Path, storage: Path, address: str) -> None:
    """Put the files where Home Assistant finds them, with an option that no version knows in each place for options."""
    storage.mkdir()
    for path in folder.iterdir():
        (storage / path.name).write_text(path.read_text().replace(PLACEHOLDER, address))
    entries = read(storage, "core.config_entries")
    for entry in entries["data"]["entries"]:
        for options in (entry["data"], entry["options"], *(each["data"] for each in entry["subentries"])):
            options["of_another_version"] = "something"
    (storage / "core.config_entries").write_text(json.dumps(entries))


async def live_in(home: Home, folder: Path, config: Path) -> None:
    """Start the home and see what is there, then ask each agent something that was said before."""
    clock = IdleClock(asyncio.get_running_loop())
    clock.start()
    async with ModelServer(models=MODELS) as model:
        install(folder, config / ".storage", model.address.removeprefix("http://"))
        hass = await started(config, home.before["user_id"])
        try:
            await look(hass, home)
            for name in WITH_A_MODEL:
                await ask(hass, home, model, name)
        finally:
            await hass.async_stop(force=True)
    clock.stop()


async def started(config: Path, user_id: str) -> HomeAssistant:
    """Return Home Assistant as its bootstrap makes it, with what an agent needs of it."""
    hass = HomeAssistant(str(config))
    hass.config.skip_pip = True
    loader.async_setup(hass)
    hass.config_entries = ConfigEntries(hass, {})
    assert await async_load_base_functionality(hass)
    hass.auth = await auth_manager_from_config(hass, [], [])
    MockUser(id=user_id, name="Demo", is_owner=True).add_to_hass(hass)
    hass.set_state(CoreState.running)
    for component in ("homeassistant", "intent", DOMAIN):
        assert await async_setup_component(hass, component, {})
    await hass.async_block_till_done(wait_background_tasks=True)
    return hass


async def look(hass: HomeAssistant, home: Home) -> None:
    """Note what is there after the start."""
    for name, agent in home.before["agents"].items():
        entry = hass.config_entries.async_get_known_entry(agent["entry_id"])
        told = await async_get_config_entry_diagnostics(hass, entry)
        # as a person gets it
        home.told[name] = json.loads(json_bytes(told))
        home.titles[name] = entry.runtime_data.agents[agent["subentry_id"]].config.name
        home.left_out += entry.runtime_data.agents[agent["subentry_id"]].config.left_out
        home.windows[name] = {
            conversation_id: await window(hass, agent["entity_id"], conversation_id, home.before["user_id"])
            for conversation_id in conversations(hass, agent["subentry_id"])
        }
    entities = er.async_get(hass).entities.values()
    home.entities = {each.unique_id: each.extended_dict for each in entities if each.platform == DOMAIN}
    home.devices = {str(each.name): each.name_by_user for each in dr.async_get(hass).devices}
    home.issues = [issue.issue_id for issue in ir.async_get(hass).issues.values() if issue.domain == DOMAIN]
    home.states = {state.entity_id: state.state for state in hass.states.async_all()}


def conversations(hass: HomeAssistant, agent_id: str) -> list[str]:
    """Return the ids of the conversations that an agent's sensor names."""
    sensor = er.async_get(hass).async_get_entity_id("sensor", DOMAIN, f"{agent_id}_window_utilization")
    assert sensor is not None
    state = hass.states.get(sensor)
    assert state is not None
    return [each["conversation_id"] for each in state.attributes["conversations"]]


async def window(hass: HomeAssistant, agent: str, conversation_id: str, user_id: str) -> list[dict[str, Any]]:
    """Return the messages of a conversation."""
    data = {"entity_id": agent, "conversation_id": conversation_id}
    answer: Any = await hass.services.async_call(
        DOMAIN, "get_window", data, blocking=True, return_response=True, context=Context(user_id=user_id)
    )
    return [{key: message[key] for key in ("role", "content", "tags")} for message in answer["messages"]]


async def ask(hass: HomeAssistant, home: Home, model: ModelServer, name: str) -> None:
    """Ask an agent for the name that it was told before the upgrade."""
    model.log.clear()
    context, agent = Context(user_id=home.before["user_id"]), home.before["agents"][name]["entity_id"]
    result = await conversation.async_converse(hass, "what is my name?", "upgrade", context, "en", agent)
    home.speech[name] = result.response.speech["plain"]["speech"]
    home.sent[name] = next(record.raw.decode() for record in model.log.records if record.for_answer)


def leaves(value: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration by their names, in whichever groups, as they are shown now."""
    flat: dict[str, Any] = {}
    for name, each in value.items():
        flat |= leaves(each) if isinstance(each, dict) else {RENAMED.get(name, name): reworded(name, each)}
    return flat


def reworded(name: str, value: Any) -> Any:
    """Return a setting's value as it is shown now."""
    return REWORDED[name].get(value, value) if name in REWORDED else value


def test_every_account_is_set_up(home: Home) -> None:
    assert {name: told["account"]["state"] for name, told in home.told.items()} == dict.fromkeys(AGENTS, "loaded")


def test_agents_have_their_names(home: Home) -> None:
    assert home.titles == {name: name for name in AGENTS}


def test_every_setting_is_as_it_was(home: Home) -> None:
    before = {name: leaves(agent["configuration"]) for name, agent in home.before["agents"].items()}
    now = {name: leaves(home.agent(name)["configuration"]) for name in AGENTS}
    assert {name: {setting: now[name].get(setting) for setting in before[name]} for name in AGENTS} == before


def test_instructions_are_sent(home: Home) -> None:
    assert "You are Ada, who was here before the upgrade." in home.sent["Ada"]


def test_tags_that_are_excluded_are_those_that_were(home: Home) -> None:
    assert home.left_out == ["secret"]


def test_entities_are_those_that_there_were(home: Home) -> None:
    agents, gone = home.before["agents"], GONE.get(home.version, {})
    removed = {f"{agents[name]['subentry_id']}_{key}" for name, keys in gone.items() for key in keys}
    assert home.entities.keys() == home.entities_before.keys() - removed


def test_what_people_gave_entities_stays(home: Home) -> None:
    now = {unique_id: {key: entity[key] for key in GIVEN} for unique_id, entity in home.entities.items()}
    assert now == {unique_id: {key: home.entities_before[unique_id][key] for key in GIVEN} for unique_id in now}
    assert ("sensor.what_ada_remembers", "What Ada remembers") in {(e["entity_id"], e["name"]) for e in now.values()}


def test_devices_keep_the_names_that_people_gave_them(home: Home) -> None:
    assert home.devices == home.devices_before
    assert home.devices["Bob"] == "Robert"


def test_totals_go_on_where_they_were(home: Home) -> None:
    before = {name: agent["totals"] for name, agent in home.before["agents"].items()}
    assert {name: home.agent(name)["totals"] for name in AGENTS} == before


def test_costs_go_on_where_they_were(home: Home) -> None:
    before = {name: {**agent["costs"], "turn": None} for name, agent in home.before["agents"].items()}
    assert {name: home.agent(name)["costs"] for name in AGENTS} == before


def test_sensors_show_the_totals(home: Home) -> None:
    totals = {
        f"{agent['subentry_id']}_{key}": str(total)
        for agent in home.before["agents"].values()
        for key, total in agent["totals"].items()
    }
    shown = {each for each in totals.keys() & home.entities.keys() if home.entities[each]["disabled_by"] is None}
    assert {each: home.states[home.entities[each]["entity_id"]] for each in shown} == {e: totals[e] for e in shown}


def test_windows_hold_what_they_held(home: Home) -> None:
    assert home.windows == {
        name: {each: messages for each, messages in agent["windows"].items() if each in OWN_IDS}
        for name, agent in home.before["agents"].items()
    }


def test_next_request_holds_the_conversation(home: Home) -> None:
    held = {name: max(home.windows[name].values(), key=len) for name in WITH_A_MODEL}
    newest = {name: json.dumps(messages[-2:][0]["content"])[1:-1] for name, messages in held.items()}
    assert {name: newest[name] in home.sent[name] for name in newest} == dict.fromkeys(newest, True)


def test_what_was_said_is_known(home: Home) -> None:
    assert home.speech == dict.fromkeys(WITH_A_MODEL, "Your name is Ada.")


def test_what_was_learned_is_known(home: Home) -> None:
    anew: dict[str, Any] = {key: {} for key in LEARNED_ANEW.get(home.version, ())}
    before = {name: {**agent["learned"], **anew} for name, agent in home.before["agents"].items()}
    assert {name: told["learned"] for name, told in home.told.items()} == before


def test_nothing_is_to_be_repaired(home: Home) -> None:
    assert home.issues == []


def test_nothing_of_ours_is_in_the_log(home: Home) -> None:
    assert [line for line in home.log if DOMAIN in line and "has not been tested" not in line] == []
