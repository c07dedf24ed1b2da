"""What tools and commands say of the home counts as told: not again, and never without what has changed since."""

import json
import re

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers.event import async_track_state_change_event
import pytest

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_PLACEMENT,
    CONF_MEMORY,
    CONF_STATES,
    CONF_TOOL_RESULTS,
)
from custom_components.windowed_conversation.turn.context import ContextPlacement
from demo.model_server import Answer, ModelServer, call, words

from .conftest import Say, SetUp

HELLO = "hello there"
LOOKS = "please look it up"
ON = call("HassTurnOn", name="kitchen light")
LOOK = call("get_states", names=["kitchen light"])
CORES_LOOK = call("GetLiveContext")


@pytest.fixture(autouse=True)
async def _agent(set_up: SetUp) -> None:
    await set_up(**{CONF_STATES: True, CONF_MEMORY: False})


def sent(model_server: ModelServer) -> str:
    """Return the newest request as a text."""
    return json.dumps(model_server.requests[-1].body, ensure_ascii=False)


def told(model_server: ModelServer) -> str:
    """Return what the newest request tells of the home before the user's last message."""
    said = [each["content"] for each in model_server.requests[-1].body["messages"] if each["role"] == "user"]
    found = re.match(r"\[CONTEXT: .*?(?:; (states.*?))?\]\n", said[-1])
    assert found
    return found[1] or ""


def switch(home: HomeAssistant, state: str) -> None:
    """Switch the kitchen light by hand."""
    before = home.states.get("input_boolean.kitchen")
    assert before is not None
    home.states.async_set(before.entity_id, state, before.attributes)


async def test_what_a_tool_has_changed_is_not_told_again(say: Say, model_server: ModelServer) -> None:
    model_server.script(ON, words("Done."))
    await say(LOOKS)
    await say(HELLO)

    assert told(model_server) == ""


@pytest.mark.parametrize(
    "answers", [(ON,), (ON, LOOK), (ON, call("GetLiveContext"))], ids=["on", "looked", "core looked"]
)
async def test_what_is_as_it_was_before_a_tool_changed_it_is_told(
    home: HomeAssistant, say: Say, model_server: ModelServer, answers: tuple[Answer, ...]
) -> None:
    model_server.script(*answers, words("Done."))
    await say(LOOKS)
    switch(home, "off")
    await say(HELLO)

    assert told(model_server) == "states changed: no area: kitchen light=off"


@pytest.mark.parametrize("look", [LOOK, CORES_LOOK], ids=["ours", "core's"])
async def test_what_is_as_it_was_before_a_tool_looked_is_told(
    home: HomeAssistant, say: Say, model_server: ModelServer, look: Answer
) -> None:
    """The kitchen light follows the hall light, so it changes in the turn without a tool of its own."""
    async_track_state_change_event(home, "input_boolean.hall", callback(lambda _event: switch(home, "on")))
    await say(HELLO)
    model_server.script(call("HassTurnOn", name="hall light"), look, words("Done."))
    await say(LOOKS)
    switch(home, "off")
    await say(HELLO)

    assert told(model_server) == "states changed: no area: kitchen light=off"


async def test_command_that_was_undone_by_hand_is_told(
    home: HomeAssistant, say: Say, model_server: ModelServer
) -> None:
    await say(HELLO)
    await say("turn on the kitchen light")
    switch(home, "off")
    await say(HELLO)

    assert told(model_server) == "states changed: no area: kitchen light=off"


async def test_tool_that_finds_nothing_to_do_has_the_state_told(
    home: HomeAssistant, say: Say, model_server: ModelServer
) -> None:
    switch(home, "on")
    model_server.script(ON, words("Done."))
    await say(LOOKS)
    await say(HELLO)

    assert told(model_server) == "states changed: no area: kitchen light=on"


async def test_entity_that_was_only_looked_up_is_told_when_it_changes(
    home: HomeAssistant, say: Say, model_server: ModelServer
) -> None:
    home.states.async_set("timer.egg", "active")
    async_expose_entity(home, "conversation", "timer.egg", should_expose=True)
    model_server.script(call("get_states", domains=["timer"]), words("Done."))
    await say(LOOKS)
    await say(HELLO)
    assert told(model_server) == ""

    home.states.async_set("timer.egg", "idle")
    await say(HELLO)
    assert told(model_server) == "states changed: no area: egg=idle"


@pytest.mark.parametrize(
    "more", [(results, placement) for results in ("stub", "keep") for placement in ContextPlacement]
)
async def test_results_lose_what_is_hidden(
    home: HomeAssistant, set_up: SetUp, say: Say, model_server: ModelServer, more: tuple[str, ContextPlacement]
) -> None:
    agent = {CONF_STATES: True, CONF_MEMORY: False, CONF_CONTEXT_PLACEMENT: more[1]}
    await set_up(options={CONF_TOOL_RESULTS: more[0]}, **agent)
    model_server.script(call("get_states"), words("Done."))
    await say(LOOKS, agent_id="conversation.ada_2")
    async_expose_entity(home, "conversation", "input_boolean.kitchen", should_expose=False)
    await say(HELLO, agent_id="conversation.ada_2")

    assert "get_states" in sent(model_server)
    assert "kitchen" not in sent(model_server)


async def test_results_lose_states_when_the_option_is_turned_off(
    home: HomeAssistant, say: Say, model_server: ModelServer
) -> None:
    (entry,) = home.config_entries.async_entries("windowed_conversation")
    model_server.script(LOOK, words("Done."))
    await say(LOOKS)
    subentry = next(iter(entry.subentries.values()))
    home.config_entries.async_update_subentry(entry, subentry, data={**subentry.data, CONF_STATES: False})
    await home.async_block_till_done()
    await say(HELLO)

    assert "light=" not in sent(model_server)
