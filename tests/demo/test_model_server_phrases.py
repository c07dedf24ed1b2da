"""Tests that Home Assistant's local intents and memory leave every phrase of the table to the model."""

import json

from homeassistant.components import conversation
from homeassistant.components.conversation.agent_manager import get_agent_manager
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import Context
from homeassistant.helpers import area_registry as ar, entity_registry as er, llm
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation.bridge.memory_answers import match_request
from demo.model_server import EXAMPLE_PHRASES

from .model_talk import called, result

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


@pytest.mark.parametrize("phrase", [phrase for phrase, _ in EXAMPLE_PHRASES])
async def test_a_phrase_is_left_to_the_model(home, phrase):
    assert await recognized(home, phrase) is None


def test_memory_leaves_every_phrase_to_the_model():
    assert [phrase for phrase, _ in EXAMPLE_PHRASES if match_request(phrase, "en")] == []


@pytest.mark.parametrize("sentence", ["turn on the kitchen light", "please switch on the kitchen light"])
async def test_a_plain_command_is_not(home, sentence):
    assert await recognized(home, sentence) is not None


async def test_the_tools_that_it_looks_for_are_offered_by_home_assistant(home):
    context = llm.LLMContext("test", Context(), "en", "conversation", None)
    api = await llm.async_get_api(home, llm.LLM_API_ASSIST, context)
    assert {"HassTurnOn", "HassTurnOff", "GetLiveContext", "GetDateTime"} <= {
        tool.name.split("__")[-1] for tool in api.tools
    }


@pytest.fixture
async def assist(home):
    """Return a function that calls the tool requested by an answer, and returns the call and its result as messages."""

    async def switch(call):
        (entity_id,) = call.data["entity_id"]
        home.states.async_set(entity_id, call.service.removeprefix("turn_"), home.states.get(entity_id).attributes)

    for service in ("turn_on", "turn_off"):
        home.services.async_register("light", service, switch)
    api = await llm.async_get_api(
        home, llm.LLM_API_ASSIST, llm.LLMContext("test", Context(), "en", "conversation", None)
    )

    async def call_tool(call_id, heard):
        name = heard.calls[0].function.name
        arguments = json.loads("".join(call.function.arguments for call in heard.calls))
        answered = await api.async_call_tool(llm.ToolInput(name, arguments))
        return called(call_id, name, **arguments), result(call_id, answered.data)

    return call_tool


async def test_it_looks_and_then_switches_with_home_assistants_own_tools(home, assist, ask):
    said = "is the kitchen light on? if not, switch it on"
    looked = await assist("a", await ask(said))
    switched = await assist("b", await ask(said, *looked))
    heard = await ask(said, *looked, *switched)
    assert heard.text == "Done, the kitchen light is on."
    assert home.states.get("light.kitchen").state == "on"


async def test_it_reads_the_whole_home_with_home_assistants_own_tools(home, assist, ask):
    await assist("a", await ask("I would like the bedroom light switched on"))
    said = "which devices are on?"
    heard = await ask(said, *await assist("b", await ask(said)))
    assert heard.text == "These are on: Bedroom light."
