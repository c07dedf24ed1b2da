"""Tests that the documentation lists exactly the data of events and the attributes of sensors."""

from collections.abc import Callable
from dataclasses import fields
import re

from homeassistant.components.sensor import SensorEntityCapabilityAttribute
from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.agents.hand_over import async_fire_lost_answers
from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_OPENAI
from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.sensor import COST_SENSORS, SENSORS
from demo.model_server import ModelServer
from tests.documents import DOCS, column, table
from tests.repository_files import TEXTS

from .conftest import SayFn, SetUpFn, until
from .summarizing import SMALL, STORY

# The pages are read at import time, because reading files in the event loop is not allowed.
EVENTS = column(DOCS / "actions.md", "Events")
ATTRIBUTES = table(DOCS / "sensors.md", "Attributes")


@pytest.fixture
async def priced(set_up: SetUpFn, model_server: ModelServer) -> MockConfigEntry:
    """Return an account whose agent has cost sensors and a small window that is summarized."""
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    return await set_up(options=SMALL, account=account)


async def test_events_hold_what_is_documented(
    home: HomeAssistant, priced, say: SayFn, get_agent: Callable[[MockConfigEntry], Agent]
) -> None:
    fired = {event: async_capture_events(home, event) for event in EVENTS}
    for _ in range(5):
        await say(STORY)
    for ask in ("remember", "forget"):
        await say(f"{ask} that the bins go out on Friday")
    agent = get_agent(priced)
    agent.state.promises.restore({"a promise": "a conversation"})
    async_fire_lost_answers(agent)
    await until(lambda: all(fired.values()))

    documented = {event: set(column(DOCS / "actions.md", event)) for event in EVENTS}
    assert {event: set(captured[0].data) for event, captured in fired.items()} == documented


def test_usage_in_events_is_what_is_documented() -> None:
    (usage,) = [row[1] for row in table(DOCS / "actions.md", EVENTS[0]) if row[0] == "`usage`"]

    assert set(re.findall(r"`(\w+)`", usage)) == {field.name for field in fields(Usage)}


def test_attributes_are_those_that_are_documented(priced, get_agent: Callable[[MockConfigEntry], Agent]) -> None:
    named = [(each.key, each.attributes_fn) for each in (*SENSORS, *COST_SENSORS) if each.attributes_fn]

    attributes = {
        (TEXTS["entity"]["sensor"][key]["name"], f"`{name}`")
        for key, read in named
        # an attribute of every sensor, which the last route has without a value
        for name in read(get_agent(priced)).keys() - {SensorEntityCapabilityAttribute.STATE_CLASS}
    }

    assert {tuple(row[:2]) for row in ATTRIBUTES} == attributes
