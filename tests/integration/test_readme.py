"""Tests that the examples in the README and the documentation work unchanged, apart from the agent's name."""

import json
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import CONF_URL
from homeassistant.core import Context, HomeAssistant
from homeassistant.setup import async_setup_component
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.const import CONF_PROVIDER, CONF_STATES, PROVIDER_OPENAI
from demo.model_server import ModelServer, words
from tests.documents import DOC_PAGES, DOCS, blocks

from .conftest import AGENT, SayFn, SetUpFn, get_speech
from .remembered import list_facts
from .states import get_state

# `test_last_night.py` runs the examples of this page separately.
BY_THEMSELVES = DOCS / "troubleshooting.md"
# Duplicates are removed, because one example is on two pages.
SHOWN = dict.fromkeys(block for page in DOC_PAGES if page != BY_THEMSELVES for block in blocks(page, "yaml"))
EXAMPLES: list[Any] = [parse_yaml(block.replace("openai_conversation", AGENT.partition(".")[2])) for block in SHOWN]


async def test_actions_do_what_they_show(home: HomeAssistant, set_up: SetUpFn) -> None:
    actions = [example for example in EXAMPLES if "action" in example]
    results = {"variables": {"results": "{{ dict(window=window, forgotten=forgotten) }}"}}
    sequence = [*actions, results, {"stop": "", "response_variable": "results"}]
    await set_up()
    assert await async_setup_component(home, "script", {"script": {"shown": {"sequence": sequence}}})

    shown: Any = await home.services.async_call("script", "shown", {}, blocking=True, return_response=True)

    assert shown["window"]["statistics"]["exchanges"] == 1
    assert [memory["text"] for memory in shown["forgotten"]["memories"]] == ["The bins go out on Friday"]


async def test_card_shows_a_sensor_that_exists(home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer) -> None:
    (card,) = [example for example in EXAMPLES if "entities" in example]
    await set_up(account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url})

    assert [entity_id for entity_id in card["entities"] if home.states.get(entity_id) is None] == []


# What people say to an agent with the options of the set-up. The end-to-end tests say README's own sentences.
LIGHT = "Turn on the kitchen light"
BEFORE = "What did I just do?"
LEFT_OPEN = "Did anyone leave something open?"
PRESIDENT = "Who is the president of France?"
ANYONE = "Is anyone home?"
BINS = "the bins go out on Friday"
REMEMBER = f"Remember that {BINS}"
CORRECT = "That's wrong, the bins go out on Thursday"
FORGET = "Forget everything about me"


@pytest.fixture
def anna(home: HomeAssistant) -> Context:
    """Return the context of Anna, who is at home."""
    home.states.async_set("person.anna", "home", {"friendly_name": "Anna"})
    async_expose_entity(home, "conversation", "person.anna", should_expose=True)
    return Context(user_id=MockUser(name="Anna").add_to_hass(home).id)


def sent(model_server: ModelServer) -> str:
    """Return the newest request as JSON."""
    return json.dumps(model_server.requests[-1].body)


async def test_command_is_carried_out_without_a_request(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    await say(LIGHT)

    assert get_state(home, "input_boolean.kitchen").state == "on"
    assert model_server.requests == []


async def test_model_knows_the_command_that_was_carried_out_locally(
    entry, say: SayFn, model_server: ModelServer
) -> None:
    await say(LIGHT)
    await say(BEFORE)

    assert LIGHT in sent(model_server)


async def test_states_go_along_with_the_question(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    home.states.async_set("cover.garage", "open", {"friendly_name": "Garage door", "device_class": "garage"})
    async_expose_entity(home, "conversation", "cover.garage", should_expose=True)
    await set_up(**{CONF_STATES: True})
    model_server.script(words("The garage door is open."))

    await say(LEFT_OPEN)

    assert len(model_server.requests) == 1
    assert "Garage door=open" in sent(model_server)


async def test_president_is_a_question_for_the_model(anna, entry, say: SayFn, model_server: ModelServer) -> None:
    await say(PRESIDENT)

    assert PRESIDENT in sent(model_server)


async def test_people_at_home_are_known_without_the_model(anna, entry, say: SayFn, model_server: ModelServer) -> None:
    found = await say(ANYONE)

    assert [state.name for state in found.response.matched_states] == ["Anna"]
    assert model_server.requests == []


async def test_fact_is_known_in_a_later_conversation(
    anna: Context, entry, say: SayFn, model_server: ModelServer
) -> None:
    await say(REMEMBER, "one", context=anna)
    await say("when do the bins go out?", "two", context=anna)

    assert BINS in sent(model_server)


async def test_correction_replaces_the_fact(home: HomeAssistant, anna: Context, entry, say: SayFn) -> None:
    await say(REMEMBER, context=anna)
    await say(CORRECT, context=anna)

    assert [fact.text for fact in await list_facts(home) if fact.text.endswith("Friday")] == []
    assert [fact.text for fact in await list_facts(home) if fact.text.endswith("Thursday")]


async def test_everything_about_a_person_is_deleted_after_a_yes(
    home: HomeAssistant, anna: Context, entry, say: SayFn
) -> None:
    await say("remember that my favourite color is green", context=anna)
    await say("remember that I am allergic to nuts", context=anna)

    question = get_speech(await say(FORGET, context=anna))
    before = await list_facts(home, anna.user_id)
    await say("yes", context=anna)

    assert "2 facts" in question
    assert len(before) == 2
    assert await list_facts(home, anna.user_id) == []
