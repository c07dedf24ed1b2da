"""Tests that Home Assistant's sentences and names are loaded before the first input needs them."""

from datetime import timedelta

from homeassistant.components import conversation
from homeassistant.components.conversation.default_agent import DefaultAgent
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_fire_time_changed

from custom_components.windowed_conversation.const import CONF_ROUTING

from .conftest import AGENT, SetUpFn


async def test_sentences_are_loaded_before_they_are_needed(home: HomeAssistant, entry: MockConfigEntry) -> None:
    agent = conversation.agent_manager.async_get_agent(home, AGENT)
    assert agent is not None

    await agent.async_prepare("de")

    own_agent = get_default_agent(home)
    assert "de" in own_agent._lang_intents


def get_default_agent(home: HomeAssistant) -> DefaultAgent:
    """Return Home Assistant's built-in conversation agent."""
    agent = conversation.agent_manager.async_get_agent(home)
    assert isinstance(agent, DefaultAgent)
    return agent


async def get_cached_names(home: HomeAssistant) -> dict | None:
    """Add an area, let six seconds pass, and return the name lists that Home Assistant has cached, or None."""
    own_agent = get_default_agent(home)
    await own_agent.async_prepare("en")
    ar.async_get(home).async_create("Attic")
    await home.async_block_till_done()
    assert own_agent._slot_lists is None
    async_fire_time_changed(home, dt_util.utcnow() + timedelta(seconds=6))
    await home.async_block_till_done(wait_background_tasks=True)
    return own_agent._slot_lists


@pytest.mark.parametrize("routing", ["local_first", "local_only"])
async def test_names_are_collected_again_after_a_change(routing: str, home: HomeAssistant, set_up: SetUpFn) -> None:
    await set_up(**{CONF_ROUTING: routing})

    assert await get_cached_names(home) is not None


async def test_names_are_not_collected_for_an_agent_that_asks_the_model_only(
    home: HomeAssistant, set_up: SetUpFn
) -> None:
    await set_up(**{CONF_ROUTING: "model_only"})

    assert await get_cached_names(home) is None
