"""Tests for what stayed with the model: the commands that a model carried out, and proved suggestions for them."""

from collections.abc import AsyncIterator
import time
from typing import Any, override

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.light import ColorMode, LightEntity
from homeassistant.components.light.const import DATA_COMPONENT as DATA_LIGHT
from homeassistant.const import CONF_LLM_HASS_API
from homeassistant.core import Context, HomeAssistant, ServiceCall
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_RECORD, CONF_ROUTING, DOMAIN, RecordLevel
from custom_components.windowed_conversation.memory import CallRecord, PastTurn, TurnRecord, TurnText
from custom_components.windowed_conversation.page import model_commands
from custom_components.windowed_conversation.page.model_commands import async_read_model_commands
from demo.model_server import ModelServer, call, words

from .actions import act
from .conftest import SayFn, SetUpFn, flush_store
from .remembered import memory_of
from .states import get_state
from .test_recall import ada, grace

__all__ = ["ada", "grace"]

BED = "light.bed_light"


class Light(LightEntity):
    """A light that can be dimmed."""

    _attr_supported_color_modes = {ColorMode.BRIGHTNESS}
    _attr_color_mode = ColorMode.BRIGHTNESS

    def __init__(self, name: str) -> None:
        self._attr_name = name
        self._attr_unique_id = name
        self._attr_is_on = False

    @override
    async def async_turn_on(self, **kwargs: Any) -> None:
        self._attr_is_on = True
        self._attr_brightness = kwargs.get("brightness", 255)

    @override
    async def async_turn_off(self, **kwargs: Any) -> None:
        self._attr_is_on = False


@pytest.fixture(autouse=True)
async def _bedroom(home: HomeAssistant) -> None:
    """Add a bed light in a bedroom, and a floor lamp."""
    assert await async_setup_component(home, "light", {})
    await home.data[DATA_LIGHT].async_add_entities([Light("Bed Light"), Light("Floor lamp")])
    area = ar.async_get(home).async_create("Bedroom")
    er.async_get(home).async_update_entity(BED, area_id=area.id)
    for entity_id in (BED, "light.floor_lamp"):
        async_expose_entity(home, "conversation", entity_id, should_expose=True)


async def read(home: HomeAssistant, context: Context | None = None) -> list[Any]:
    """Return the groups that a caller reads."""
    response = await async_read_model_commands(ServiceCall(home, DOMAIN, "model_commands", {}, context or Context()))
    assert response is not None
    groups = response["groups"]
    assert isinstance(groups, list)
    return groups


async def command(model_server: ModelServer, say: SayFn, text: str, tool: str = "HassTurnOn", /, **more: Any) -> None:
    """Say a sentence that the model carries out with a tool. `arguments` are those of the tool."""
    arguments = more.pop("arguments", {"name": "Bed Light"})
    model_server.script(call(tool, **arguments), words("Done."))
    await say(text, **more)


def recorded(said: str, number: int = 0, **more: Any) -> TurnRecord:
    """Return the record of a turn in which the model turned the bed light on."""
    text = TurnText(said, "Done.", (CallRecord("HassTurnOn", '{"name": "Bed Light"}', '{"speech": {}}'),))
    fields = {"route": "model", "end": "answered", "reason": "no_local_match", "words": text, "level": "full", **more}
    return TurnRecord(id=f"turn-{number:04}", at=time.time() - number, agent="agent", **fields)


async def record(home: HomeAssistant, *turns: TurnRecord) -> None:
    """Write turns to the record."""
    for turn in turns:
        memory_of(home).async_queue_record(turn)
    await flush_store(home)


@pytest.mark.parametrize(
    ("language", "said", "alias"),
    [
        ("en", "turn on the reading thing", "reading thing"),
        ("en", "please turn on the Reading Thing!", "Reading Thing"),
        ("de", "schalte das Leseding ein", "Leseding"),
    ],
)
async def test_suggested_alias_makes_the_sentence_local(
    *, home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn, language: str, said: str, alias: str
) -> None:
    await command(model_server, say, said, language=language)

    (group,) = await read(home)
    suggested = group["suggestion"]
    aliases = [er.COMPUTED_NAME, suggested["alias"]]
    er.async_get(home).async_update_entity(suggested["entity_id"], aliases=aliases)
    await home.async_block_till_done()
    model_server.log.clear()
    await say(said, language=language)

    assert (group["tool"], group["target"]["entity_id"], group["count"]) == ("HassTurnOn", BED, 1)
    assert suggested["alias"] == alias
    assert model_server.requests == []


async def test_alias_of_an_area_is_suggested(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    arguments = {"area": "Bedroom", "domain": ["light"]}
    await command(model_server, say, "turn on the lights in the sleepy den", arguments=arguments)

    (group,) = await read(home)

    assert group["target"] == {"entity_id": None, "area_id": "bedroom", "name": "Bedroom"}
    expected = {"kind": "alias", "entity_id": None, "area_id": "bedroom", "alias": "sleepy den"}
    assert group["suggestion"] == expected


@pytest.mark.parametrize(
    ("language", "said", "tool", "arguments", "before"),
    [
        ("en", "could it be bright beside my bed", "HassTurnOn", {"name": "Bed Light"}, "turn_off"),
        ("en", "I can't see my book in bed, half is enough", "HassLightSet", {"name": "Bed Light", "brightness": 50}, "turn_off"),
        ("de", "ich sehe mein Buch nicht", "HassTurnOn", {"name": "Bed Light"}, "turn_off"),
        ("en", "it is too dark in here for sleep", "HassTurnOff", {"area": "Bedroom", "domain": ["light"]}, "turn_on"),
    ],
)
async def test_suggested_sentence_is_answered_locally_with_the_same_result(
    *,
    home: HomeAssistant,
    entry: MockConfigEntry,
    model_server: ModelServer,
    say: SayFn,
    language: str,
    said: str,
    tool: str,
    arguments: dict[str, Any],
    before: str,
) -> None:
    await command(model_server, say, said, tool, arguments=arguments, language=language)
    (group,) = await read(home)
    done = get_state(home, BED)
    await home.services.async_call("light", before, {"entity_id": BED}, blocking=True)
    model_server.log.clear()

    assert group["suggestion"]["kind"] == "sentence"
    await say(group["suggestion"]["sentence"], language=language)

    now = get_state(home, BED)
    assert (now.state, now.attributes) == (done.state, done.attributes)
    assert model_server.requests == []


@pytest.mark.parametrize(
    "said",
    [
        # a word of Home Assistant's own sentences
        "turn on the light",
        "turn it on",
        # the name of something else
        "turn on the floor lamp",
        "turn on the kitchen light",
        # only digits
        "turn on 4711",
        # too many words
        "turn on my very old green reading thing from grandma",
    ],
)
@pytest.mark.usefixtures("entry")
async def test_unusable_words_are_no_alias(home: HomeAssistant, said: str) -> None:
    await record(home, recorded(said))

    (group,) = await read(home)

    assert group["suggestion"]["kind"] == "sentence"
