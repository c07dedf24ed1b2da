"""Tests for states in a request: current and relevant to the sentence, never hidden ones, and in no later request."""

from collections.abc import Callable, Iterator
import json
import re
from typing import Any

from homeassistant.components.conversation.trace import async_get_traces
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity, async_should_expose
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import (
    CONF_MEMORY,
    CONF_PERSISTENCE,
    CONF_ROUTING,
    CONF_STATES,
    MEMORY_API_ID,
)
from custom_components.windowed_conversation.home.bridge import states as home_states
from custom_components.windowed_conversation.home.bridge.states import HomeStates, async_get_home_states
from custom_components.windowed_conversation.home.core.home import STATES_HINT
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server import ModelServer

from .actions import act, export
from .conftest import SayFn, SetUpFn, start, stop

GREETING = "hello there"
USUAL = "rest input boolean off"


@pytest.fixture
def set_up(set_up: SetUpFn) -> SetUpFn:
    """Return a function that sets up an agent that sends states to its model, which answers every sentence."""

    async def with_states(**more: Any) -> MockConfigEntry:
        return await set_up(**{CONF_STATES: True, CONF_ROUTING: RoutingMode.MODEL_ONLY, CONF_MEMORY: "off", **more})

    return with_states


@pytest.fixture
async def entry(set_up: SetUpFn) -> MockConfigEntry:
    return await set_up()


def get_states(model_server: ModelServer) -> str:
    """Return the states in the newest request, which precede the text of the last user message."""
    texts = [each["content"] for each in model_server.requests[-1].body["messages"] if each["role"] == "user"]
    match = re.match(r"\[CONTEXT: .*?(?:; states: (.*?))?\]\n", texts[-1])
    assert match
    assert not any("; states: " in each for each in texts[:-1])
    return match[1] or ""


def get_request(model_server: ModelServer) -> str:
    """Return the newest request as JSON."""
    return json.dumps(model_server.requests[-1].body, ensure_ascii=False)


def put(home: HomeAssistant, entity_id: str, state: str, name: str = "", **attributes: Any) -> None:
    """Set the state of an entity and expose it."""
    before = home.states.get(entity_id)
    own_name = {"friendly_name": name} if name else {}
    home.states.async_set(entity_id, state, {**(before.attributes if before else {}), **own_name, **attributes})
    async_expose_entity(home, "conversation", entity_id, should_expose=True)


def states_of(home: HomeAssistant) -> HomeStates:
    states = async_get_home_states(home)
    assert states is not None
    return states


async def test_each_request_has_the_states_of_its_moment_and_no_other(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer, kitchen: ar.AreaEntry
) -> None:
    await say(GREETING)
    assert get_states(model_server) == USUAL

    put(home, "input_boolean.kitchen", "on")
    await say(GREETING)
    assert get_states(model_server) == f"Kitchen: kitchen light=on (changed) | {USUAL}"
    assert STATES_HINT in get_request(model_server)

    await say(GREETING)
    assert get_states(model_server) == f"Kitchen: kitchen light=on | {USUAL}"

    put(home, "input_boolean.kitchen", "off")
    await say(GREETING)
    assert get_states(model_server) == f"Kitchen: kitchen light=off (changed) | {USUAL}"


@pytest.mark.parametrize(
    ("agent", "listens"),
    [({CONF_STATES: False}, True), ({"llm_hass_api": []}, False), ({"llm_hass_api": [MEMORY_API_ID]}, False)],
    ids=["off", "no API", "another API"],
)
async def test_no_states_are_sent_without_the_option_or_without_assist(
    *,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    home: HomeAssistant,
    agent: dict[str, Any],
    listens: bool,
) -> None:
    await set_up(**agent)
    await say(GREETING)

    assert (get_states(model_server), STATES_HINT in get_request(model_server)) == ("", False)
    # with tools, the names of the home are needed
    assert (async_get_home_states(home) is not None) is listens
    assert not list(details())


async def test_agent_whose_form_was_never_submitted_with_the_option_sends_states(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, home: HomeAssistant
) -> None:
    entry = await set_up()
    (subentry,) = entry.subentries.values()
    data = {name: value for name, value in subentry.data.items() if name != CONF_STATES}
    home.config_entries.async_update_subentry(entry, subentry, data=data)
    await home.async_block_till_done()
    await say(GREETING)

    assert get_states(model_server) == USUAL


async def test_hidden_entity_is_in_no_request(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    put(home, "input_boolean.kitchen", "on")
    await say(GREETING)
    assert "cellar" not in get_request(model_server)

    async_expose_entity(home, "conversation", "input_boolean.kitchen", should_expose=False)
    await say(GREETING)
    assert "kitchen" not in get_request(model_server)
    assert get_states(model_server) == USUAL

    async_expose_entity(home, "conversation", "input_boolean.cellar", should_expose=True)
    put(home, "input_boolean.cellar", "on")
    await say(GREETING)
    assert "no area: cellar light=on" in get_states(model_server)


FIRST_STATES = {
    "is the kitchen light on?": "no area: kitchen light=off",
    "and what about the worktop?": "no area: kitchen light=off",
    "how is it in the attic?": "Attic: trunk lamp=off",
    "what about the loft": "Attic: trunk lamp=off",
    "did anyone leave a window open?": "no area: skylight=open",
    "which doors are locked?": "no area: gate=unlocked",
}


async def test_what_a_sentence_names_comes_first_also_in_a_full_home(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    attic = ar.async_get(home).async_create("Attic", aliases={"Loft"})
    registry = er.async_get(home)
    trunk = registry.async_get_or_create("light", "test", "trunk", suggested_object_id="trunk")
    registry.async_update_entity(trunk.entity_id, area_id=attic.id, name="trunk lamp")
    registry.async_update_entity("input_boolean.kitchen", aliases=[er.COMPUTED_NAME, "worktop"])
    put(home, trunk.entity_id, "off", "trunk lamp")
    for number in range(60):
        put(home, f"switch.{number}", "on", f"Pump {number}")
    put(home, "binary_sensor.skylight", "on", "skylight", device_class="window")
    put(home, "lock.gate", "unlocked", "gate")
    await home.async_block_till_done(wait_background_tasks=True)

    for sentence, first in FIRST_STATES.items():
        with subtests.test(sentence):
            await say(GREETING, sentence)
            await say(sentence, sentence)

            assert get_states(model_server).startswith(first)
            assert "switch on" in get_states(model_server)


async def test_kinds_are_named_in_the_language_that_is_spoken(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    for number in range(60):
        put(home, f"switch.{number}", "on", f"Pump {number}")
    put(home, "binary_sensor.skylight", "on", "skylight", device_class="window")

    await say("welche Fenster sind offen?", language="de-AT")
    await home.async_block_till_done(wait_background_tasks=True)
    await say("welche Fenster sind offen?", language="de-AT")

    assert get_states(model_server).startswith("no area: skylight=open")


async def test_language_that_does_not_exist_is_not_read(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await home.async_block_till_done(wait_background_tasks=True)
    known = states_of(home).get_home().kind_names
    for language in ("../../de", "xx", ""):
        await say(GREETING, language=language)
    await home.async_block_till_done(wait_background_tasks=True)

    assert states_of(home).get_home().kind_names is known


async def test_name_that_was_taken_out_of_the_aliases_is_not_sent(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    er.async_get(home).async_update_entity("input_boolean.kitchen", aliases=["worktop"])
    put(home, "input_boolean.kitchen", "on")
    await home.async_block_till_done()

    await say(GREETING)

    assert get_states(model_server) == f"no area: worktop=on | {USUAL}"


async def test_renamed_moved_and_removed_entities_are_as_they_are_now(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer, kitchen: ar.AreaEntry
) -> None:
    for light in ("kitchen", "hall"):
        put(home, f"input_boolean.{light}", "on")
    await say(GREETING)
    er.async_get(home).async_update_entity("input_boolean.kitchen", name="Big light")
    ar.async_get(home).async_update(kitchen.id, name="Galley")
    er.async_get(home).async_remove("input_boolean.hall")
    home.states.async_remove("input_boolean.hall")
    await home.async_block_till_done()
    await say(GREETING)

    assert get_states(model_server) == "Galley: Big light=off (changed)"


async def test_area_of_the_speaker_has_its_measurements(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer, kitchen: ar.AreaEntry
) -> None:
    devices = dr.async_get(home)
    satellite = devices.async_get_or_create(config_entry_id=entry.entry_id, identifiers={("test", "satellite")})
    devices.async_update_device(satellite.id, area_id=kitchen.id)
    sensor = er.async_get(home).async_get_or_create("sensor", "test", "stove", suggested_object_id="stove")
    er.async_get(home).async_update_entity(sensor.entity_id, area_id=kitchen.id, name="stove")
    for entity_id in (sensor.entity_id, "sensor.attic"):
        put(home, entity_id, "21.3", device_class="temperature", unit_of_measurement="°C")
    await say(GREETING, device_id=satellite.id)

    assert get_states(model_server) == f"Kitchen: stove=21.5 °C | not listed: 1 measurements | {USUAL}"


@pytest.mark.parametrize(
    ("entity_id", "attributes"),
    [
        ("climate.odd", {"current_temperature": 1e308, "temperature": 20}),
        ("light.odd", {"brightness": 1e308}),
        ("media_player.odd", {"media_title": 10**5000}),
        ("sensor.odd", {"unit_of_measurement": ["°C"], "device_class": ["temperature"]}),
    ],
)
async def test_odd_entity_hides_no_other(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    *,
    entity_id: str,
    attributes: dict[str, Any],
) -> None:
    put(home, entity_id, "on", "", **attributes)
    put(home, "switch.later", "on", "later")
    await set_up()

    await say(GREETING)

    assert "later=on" in get_states(model_server)


async def test_conversation_that_is_stored_copied_or_exported_has_no_states(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    entry = await set_up(options={CONF_PERSISTENCE: "all"})
    put(home, "input_boolean.hall", "on")
    await say(GREETING)
    for content in ("messages", "export"):
        assert "hall light=on" not in json.dumps(await act(home, "get_conversation", content=content))
    await act(home, "import_conversation", conversation_id="copy", export=await export(home))
    put(home, "input_boolean.hall", "off")
    await stop(home, entry)
    await start(home, entry)

    for conversation in ("test", "copy"):
        await say(GREETING, conversation)
        assert get_states(model_server) == USUAL


@pytest.fixture
def figures(entry: MockConfigEntry, get_agent: Callable[[MockConfigEntry], Agent]) -> Callable[[], dict[str, Any]]:
    """Return a function that returns the number of states listed in the last turn and the number of their tokens."""

    def figures() -> dict[str, Any]:
        answer = get_agent(entry).statistics.last_answer
        return {name: answer[name] for name in ("states_listed", "states_tokens")}

    return figures


async def test_figures_are_in_trace_and_last_turn(
    home: HomeAssistant, say: SayFn, figures: Callable[[], dict[str, Any]]
) -> None:
    put(home, "input_boolean.hall", "on")
    await say(GREETING)

    assert figures()["states_listed"] == 1
    assert figures()["states_tokens"] > 5
    assert figures().items() <= next(details()).items()


def details() -> Iterator[dict[str, Any]]:
    """Yield the agent's events with state counts in the newest trace."""
    events = async_get_traces()[-1].as_dict()["events"]
    return (event["data"] for event in events if "states_listed" in (event["data"] or {}))


async def test_states_are_followed_while_an_account_needs_them(home: HomeAssistant, entry: MockConfigEntry) -> None:
    assert len(states_of(home).get_home().entities) == 2

    await home.config_entries.async_unload(entry.entry_id)
    assert async_get_home_states(home) is None


async def test_change_within_rounding_is_none(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    attributes = {"unit_of_measurement": "°C", "device_class": "temperature"}
    put(home, "sensor.attic", "21.34", "attic", **attributes)
    await say("how warm is the attic?")
    put(home, "sensor.attic", "21.41", "attic", **attributes)
    await say("how warm is the attic?")

    assert get_states(model_server) == f"no area: attic=21.5 °C | {USUAL}"


async def test_changes_of_registries_have_all_looked_at_once(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(GREETING)
    entity_ids: list[str] = []

    def count_look(hass: HomeAssistant, assistant: str, entity_id: str) -> bool:
        entity_ids.append(entity_id)
        return async_should_expose(hass, assistant, entity_id)

    monkeypatch.setattr(home_states, "async_should_expose", count_look)
    for number in range(100):
        ar.async_get(home).async_create(f"Room {number}")
    await home.async_block_till_done()
    assert entity_ids == []

    await say(GREETING)
    assert len(entity_ids) == len(set(entity_ids)) == len(home.states.async_all())
