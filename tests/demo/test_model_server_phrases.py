"""Tests that the scripted model understands each phrase of its table, and that nothing local answers it before."""

from homeassistant.components import conversation
from homeassistant.components.conversation.agent_manager import get_agent_manager
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import Context
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation.memory.bridge.sentences import match_request
from demo.model_server import EXAMPLE_PHRASES

from .model_talk import assistant

HOME = {
    "light.kitchen": ("Kitchen light", "Kitchen"),
    "light.bedroom": ("Bedroom light", "Bedroom"),
    "switch.coffee": ("Coffee machine", "Kitchen"),
}


@pytest.fixture
async def home(hass):
    for component in ("homeassistant", "conversation", "intent", "llm", "light", "switch", "sensor", "person"):
        assert await async_setup_component(hass, component, {})
    for entity_id, (name, area) in HOME.items():
        domain, _, object_id = entity_id.partition(".")
        entry = er.async_get(hass).async_get_or_create(domain, "demo", object_id, suggested_object_id=object_id)
        er.async_get(hass).async_update_entity(
            entry.entity_id, name=name, area_id=ar.async_get(hass).async_get_or_create(area).id
        )
        hass.states.async_set(entity_id, "off", {"friendly_name": name})
        async_expose_entity(hass, "conversation", entity_id, should_expose=True)
    return hass


async def recognized(hass, sentence):
    agent = get_agent_manager(hass).default_agent
    assert agent is not None
    asked = conversation.ConversationInput(
        text=sentence,
        context=Context(),
        conversation_id=None,
        device_id=None,
        satellite_id=None,
        language="en",
        agent_id=conversation.HOME_ASSISTANT_AGENT,
    )
    return await agent.async_recognize_intent(asked, strict_intents_only=True)


async def test_a_phrase_is_left_to_the_model(home, subtests):
    for phrase, _ in EXAMPLE_PHRASES:
        with subtests.test(phrase=phrase):
            assert await recognized(home, phrase) is None


async def test_every_phrase_of_the_table_is_understood(ask, subtests):
    for phrase in [phrase for phrase, _ in EXAMPLE_PHRASES if not phrase.startswith("fail")]:
        with subtests.test(phrase=phrase):
            heard = await ask("order pizza", assistant("Gladly. Which size would you like?"), phrase)
            assert heard.calls or not heard.text.startswith("I am a scripted model and know only")


def test_memory_leaves_every_phrase_to_the_model():
    assert [phrase for phrase, _ in EXAMPLE_PHRASES if match_request(phrase, "en")] == []


@pytest.mark.parametrize("sentence", ["turn on the kitchen light", "please switch on the kitchen light"])
async def test_a_plain_command_is_not(home, sentence):
    assert await recognized(home, sentence) is not None
