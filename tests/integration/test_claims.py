"""Tests for a model that says that it has done what it has not: commands, and everything else that people say."""

import json
from pathlib import Path
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import STATE_ON, STATE_OPEN
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.setup import async_setup_component
import pytest

from demo.model_server import ModelServer, call, words
from tests.routing.entities import Cover, Fixture, Light, Spec, Switch

from .conftest import AGENT, SetUpFn, get_speech
from .states import get_state

SENTENCES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("claims.json").read_text(encoding="utf-8"))
NAMES: dict[str, list[str]] = SENTENCES["names"]
COMMANDS = [(language, *each) for language, sentences in SENTENCES["commands"].items() for each in sentences]
LOOK_UPS = [(language, each) for language, sentences in SENTENCES["look_ups"].items() for each in sentences]
OTHERS = [(language, each) for language, sentences in SENTENCES["others"].items() for each in sentences]
KINDS: dict[str, type[Fixture]] = {"light.ceiling": Light, "cover.shutters": Cover, "switch.fan": Switch}
# The most requests for a call that the other sentences may cost.
MOST_EXTRA_REQUESTS = 4


@pytest.fixture
async def devices(home: HomeAssistant, set_up: SetUpFn) -> dict[str, Fixture]:
    """Return a light in a kitchen, shutters and a coffee machine, which have names in all languages, with an agent."""
    registry, kitchen = er.async_get(home), ar.async_get(home).async_create("Kitchen")
    devices = {each: kind(Spec(each, NAMES[each][0], None, None, None, {})) for each, kind in KINDS.items()}
    for entity_id, device in devices.items():
        domain, names = entity_id.partition(".")[0], NAMES[entity_id]
        assert await async_setup_component(home, domain, {})
        await home.data[domain].async_add_entities([device])
        registry.async_update_entity(entity_id, aliases=[er.COMPUTED_NAME, *names[1:]])
        async_expose_entity(home, "conversation", entity_id, should_expose=True)
    registry.async_update_entity("light.ceiling", area_id=kitchen.id)
    await set_up(routing="model_only")
    return devices


async def say_in(home: HomeAssistant, language: str, text: str) -> str:
    """Say a sentence in a conversation of its own, and return the answer."""
    result = await conversation.async_converse(home, text, None, Context(), language, AGENT)
    return get_speech(result)


def find_device(text: str) -> str:
    """Return the entity that a command means."""
    found = [each for each, names in NAMES.items() if any(name.casefold() in text.casefold() for name in names)]
    return found[0] if found else "light.ceiling"


async def test_every_claim_of_a_model_that_lies_is_made_true(
    home: HomeAssistant, devices: dict[str, Fixture], model_server: ModelServer
) -> None:
    wrong = []
    for language, text, claim in COMMANDS:
        device = find_device(text)
        devices[device].restore("off")
        model_server.script(words(claim), call("HassTurnOn", name=NAMES[device][0]))
        heard = await say_in(home, language, text)
        if get_state(home, device).state not in {STATE_ON, STATE_OPEN} or heard != claim:
            wrong.append((text, heard))

    assert len(COMMANDS) == 30
    assert wrong == []


async def test_every_claim_that_cannot_be_made_true_is_taken_back(
    home: HomeAssistant, devices: dict[str, Fixture], model_server: ModelServer
) -> None:
    believed = []
    for language, text, claim in COMMANDS:
        devices[find_device(text)].restore("off")
        model_server.script(words(claim), call("HassTurnOn", name="Aquarium"))
        heard = await say_in(home, language, text)
        if heard == claim:
            believed.append(text)

    assert believed == []


async def test_what_else_people_say_costs_few_requests(
    home: HomeAssistant, devices: dict[str, Fixture], model_server: ModelServer
) -> None:
    extra = []
    for language, text in OTHERS:
        before = len(model_server.requests)
        model_server.script(words("Of course."), call("nothing_to_do"))
        assert await say_in(home, language, text) == "Of course."
        extra += [text] * (len(model_server.requests) - before - 1)
    model_server.script()

    assert len(OTHERS) == 200
    assert len(extra) <= MOST_EXTRA_REQUESTS, extra


async def test_request_to_be_told_about_a_device_costs_no_other_request(
    home: HomeAssistant, devices: dict[str, Fixture], model_server: ModelServer
) -> None:
    for language, text in LOOK_UPS:
        model_server.script(words("It is off."))
        await say_in(home, language, text)

    assert len(model_server.requests) == len(LOOK_UPS)
