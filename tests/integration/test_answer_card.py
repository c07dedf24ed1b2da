"""Tests for what can be shown beside an answer: its entities and its sources."""

from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers.template import Template
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.windowed_conversation.bridge.turn_report import EVENT_TURN
from custom_components.windowed_conversation.const import CONF_ROUTING
from demo.model_server import ModelServer, call, words
from tests.documents import DOCS

from .conftest import SayFn, SetUpFn

_PAGE = (DOCS / "sensors.md").read_text(encoding="utf-8")
CARD: Any = parse_yaml(_PAGE.split("```yaml\n")[1].split("```")[0])
LIGHT = "input_boolean.kitchen"


@pytest.fixture
def entities(home: HomeAssistant) -> Any:
    """Return a function that returns the entities of the newest event."""
    events = async_capture_events(home, EVENT_TURN)
    return lambda: events[-1].data["entities"]


async def test_response_and_event_have_the_entities_that_a_tool_reached(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, entities: Any
) -> None:
    await set_up(**{CONF_ROUTING: "model_only"})
    model_server.script(call("HassTurnOn", name="kitchen light"), words("Done."))

    answer = await say("make it bright")

    (target,) = answer.response.as_dict()["data"]["success"]
    assert (target["id"], target["type"], target["name"]) == (LIGHT, "entity", "kitchen light")
    assert entities() == [LIGHT]


async def test_entity_that_the_question_or_the_answer_names_is_shown(
    *, set_up: SetUpFn, say: SayFn, model_server: ModelServer, entities: Any, subtests: pytest.Subtests
) -> None:
    await set_up(**{CONF_ROUTING: "model_only", "states": True})
    for question, answer in (("is the kitchen light on?", "Yes."), ("what is on?", "The kitchen light.")):
        with subtests.test(question=question):
            model_server.script(words(answer))

            await say(question)

            assert entities() == [LIGHT]


async def test_answer_about_nothing_in_the_home_has_no_entities(
    *, set_up: SetUpFn, say: SayFn, model_server: ModelServer, entities: Any
) -> None:
    await set_up(**{CONF_ROUTING: "model_only", "states": True})
    model_server.script(words("Blue."))

    answer = await say("which colour is the sky?")

    assert (entities(), answer.response.as_dict()["data"]["success"], answer.response.card) == ([], [], {})


async def test_local_command_has_its_entities(set_up: SetUpFn, say: SayFn, entities: Any) -> None:
    await set_up()

    await say("turn on the kitchen light")

    assert entities() == [LIGHT]


async def test_card_of_the_documentation_shows_the_entities_of_the_last_answer(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn
) -> None:
    await set_up()
    await say("turn on the kitchen light")
    await home.async_block_till_done()

    shown = Template(CARD["content"], home).async_render(parse_result=False)
    assert "**kitchen light**: on" in shown
