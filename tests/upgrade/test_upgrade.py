"""A home that an earlier version has left starts with this one and loses nothing.

The folders beside this module are such homes, each named by the commit that lived in it and recorded by `record.py`.
They stay as they are; a version that keeps something in another way gets a folder of its own.

The figures of the last turn are not in here: no version has kept them over a restart.
"""

import asyncio
from datetime import datetime, timedelta
import json
import logging
from logging.handlers import BufferingHandler
from pathlib import Path
import sys
from typing import Any

from freezegun import freeze_time
import pytest
import pytest_socket

from .home import AGENTS, WITH_A_MODEL, Home, live_in, read
from .record import DOMAIN

# A whole home of each version is started.
pytestmark = pytest.mark.long

VERSIONS = ("d2fb19a", "bc2dea3")

# Sensors that are removed: in an account without a model they never move.
GONE = {
    "d2fb19a": {
        "Fay": {"cached_input_tokens", "input_tokens", "output_tokens", "time_to_first_token", "turns_model"},
    }
}
# Totals that are counted since, and sensors that every agent has had since.
NEW_TOTALS = {"requests", "tool_calls", "turns_failed", "turns_fallback"}
NEW = {"memory_facts", "memory_turns", "memory_size", "records_dropped", "turns_failed"}
NEW_WITH_A_MODEL = NEW | NEW_TOTALS
# What is learned anew: a size of a model was one figure, and is believed after two refusals now.
LEARNED_ANEW = {"d2fb19a": {"limits"}}
# Settings that the diagnostics call otherwise now, and those of which they show the values otherwise.
RENAMED = {
    "left_out": "excluded_tags",
    "others": "fallback_agents",
    "reply_tokens": "max_answer_tokens",
    "silence": "idle_timeout",
}
REWORDED = {"compaction": {"off": False, "provider": True}}
# The ids of the conversations that are kept: one more has an id that Home Assistant has made.
OWN_IDS = {"agent", "long", "upgrade", "user"}

# What people give an entity or a device.
GIVEN = ("entity_id", "name", "icon", "disabled_by", "hidden_by", "area_id", "labels")


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
        # later the conversations would have expired
        soon = datetime.fromisoformat(home.before["at"]) + timedelta(minutes=1)
        with freeze_time(soon, tick=True, real_asyncio=True):
            asyncio.run(live_in(home, folder, config))
    finally:
        pytest_socket.disable_socket(allow_unix_socket=True)
        logging.getLogger().removeHandler(log)
    home.log = [f"{record.name}: {record.getMessage()}" for record in log.buffer]
    return home


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
    assert home.excluded_tags == ["secret"]


def test_entities_are_those_that_there_were(home: Home) -> None:
    agents, gone = home.before["agents"], GONE.get(home.version, {})
    removed = {f"{agents[name]['subentry_id']}_{key}" for name, keys in gone.items() for key in keys}
    new = dict.fromkeys(WITH_A_MODEL, NEW_WITH_A_MODEL) | {"Fay": NEW}
    added = {f"{agents[name]['subentry_id']}_{key}" for name in AGENTS for key in new[name]}
    assert home.entities.keys() == home.entities_before.keys() - removed | added


def test_what_people_gave_entities_stays(home: Home) -> None:
    known = home.entities.keys() & home.entities_before.keys()
    now = {unique_id: {key: home.entities[unique_id][key] for key in GIVEN} for unique_id in known}
    assert now == {unique_id: {key: home.entities_before[unique_id][key] for key in GIVEN} for unique_id in now}
    assert ("sensor.what_ada_remembers", "What Ada remembers") in {(e["entity_id"], e["name"]) for e in now.values()}


def test_devices_keep_the_names_that_people_gave_them(home: Home) -> None:
    assert home.devices == home.devices_before
    assert home.devices["Bob"] == "Robert"


def test_totals_go_on_where_they_were(home: Home) -> None:
    new = dict.fromkeys(NEW_TOTALS, 0)
    before = {name: new | agent["totals"] for name, agent in home.before["agents"].items()}
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
