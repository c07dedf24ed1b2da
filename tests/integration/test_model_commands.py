"""Tests for what stayed with the model: its commands, their figures, and Home Assistant's own sentences for them."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import product
import time
from typing import Any, override

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_USER
from homeassistant.components.conversation.default_agent import DefaultAgent
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.light import LightEntity
from homeassistant.components.light.const import DATA_COMPONENT as DATA_LIGHT, ColorMode
from homeassistant.core import Context, HomeAssistant, ServiceCall
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import CONF_MEMORY, CONF_RECORD, CONF_ROUTING, DOMAIN, RecordLevel
from custom_components.windowed_conversation.page.model_commands import async_read_model_commands
from custom_components.windowed_conversation.record import TurnRecord
from custom_components.windowed_conversation.record.fields import decode_json
from demo.model_server import ModelServer, call, words
from tests.record.recorded import whole, writes
from tests.window.turns import begin_turn

from .actions import act
from .conftest import SayFn, SetUpFn, flush_store
from .remembered import memory_of
from .rows import Row, row
from .states import get_state

__all__ = ["row"]

BED, OWNER = "light.bed_light", "Owner"

type BeginRow = Callable[[str], Coroutine[Any, Any, AbstractContextManager[None]]]


class Light(LightEntity):
    """A light that can be dimmed."""

    _attr_color_mode = ColorMode.BRIGHTNESS

    def __init__(self, name: str) -> None:
        self._attr_name = name
        self._attr_unique_id = name
        self._attr_is_on = False
        self._attr_supported_color_modes = {ColorMode.BRIGHTNESS}

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


ON = ("HassTurnOn", '{"name": "Bed Light"}')


def build_record(sentence: str, number: int = 0, tool_call: tuple[str, str] = ON, **more: Any) -> TurnRecord:
    """Return the record of a turn in which the model called a tool, or else turned the bed light on."""
    tool, arguments = tool_call
    call = {"name": tool, "arguments": decode_json(arguments), "result": '{"speech": {}}'}
    fields: dict[str, Any] = {"conversation_id": None, "reason": "no_local_match", "failed_tool_calls": 0}
    fields |= {"tools": [tool], "tool_calls": [call], **more}
    return whole(number, sentence, time=time.time() - number, **fields)


async def record(home: HomeAssistant, *turns: TurnRecord) -> None:
    """Write turns to the record."""
    for write in writes(*turns):
        memory_of(home).async_queue_record(write)
    await flush_store(home)


@pytest.fixture
def begin_row(home: HomeAssistant, entry: MockConfigEntry, subtests: pytest.Subtests) -> BeginRow:
    """Return a function that forgets the turns of earlier rows and begins a subtest. The turns of each row differ."""

    async def begin_row(name: str) -> AbstractContextManager[None]:
        await act(home, "forget", everyone=True, everything=True)
        assert await read(home) == []
        return subtests.test(name)

    return begin_row


@pytest.mark.parametrize(
    ("sentence", "tool", "arguments", "before"),
    [
        ("could it be bright beside my bed", "HassTurnOn", {"name": "Bed Light"}, "turn_off"),
        ("I can't see my book, half is enough", "HassLightSet", {"name": "Bed Light", "brightness": 50}, "turn_off"),
        ("it is too dark in here for sleep", "HassTurnOff", {"area": "Bedroom", "domain": ["light"]}, "turn_on"),
    ],
)
async def test_sentence_is_answered_locally_with_the_same_result(
    *,
    home: HomeAssistant,
    entry: MockConfigEntry,
    model_server: ModelServer,
    say: SayFn,
    sentence: str,
    tool: str,
    arguments: dict[str, Any],
    before: str,
) -> None:
    await command(model_server, say, sentence, tool, arguments=arguments)
    (group,) = await read(home)
    by_model = get_state(home, BED)
    await home.services.async_call("light", before, {"entity_id": BED}, blocking=True)
    model_server.log.clear()

    await say(group["sentence"])

    locally = get_state(home, BED)
    assert (locally.state, locally.attributes) == (by_model.state, by_model.attributes)
    assert model_server.requests == []


async def test_sentence_is_in_the_language_of_the_home(home: HomeAssistant, entry: MockConfigEntry) -> None:
    await home.config.async_update(language="de")
    await record(home, build_record("it is dark"))

    (group,) = await read(home)

    assert group["sentence"] == "mach Bed Light an"


ARGUMENTS_OF_NOTHING = [
    '{"name": "Nobody"}',
    '{"area": "Nowhere"}',
    '{"area": "Bedroom", "floor": "Roof"}',
    "{}",
    "[]",
    "not JSON",
]


async def test_call_that_names_nothing_has_no_target(home: HomeAssistant, begin_row: BeginRow) -> None:
    for number, arguments in enumerate(ARGUMENTS_OF_NOTHING):
        with await begin_row(arguments):
            await record(home, build_record("make it nice", number, ("HassTurnOn", arguments)))

            (group,) = await read(home)

            assert (group["target"], group["sentence"]) == (None, None)


@pytest.mark.usefixtures("entry")
async def test_sentence_has_the_words_for_a_value(home: HomeAssistant) -> None:
    tool_call = ("HassLightSet", '{"name": "Bed Light", "color": "red"}')
    await record(home, build_record("make it look like a sunset", tool_call=tool_call))

    (group,) = await read(home)

    assert {"red", "Bed", "Light"} <= set(group["sentence"].split())


@pytest.mark.usefixtures("entry")
async def test_value_that_no_sentence_has_gets_none(home: HomeAssistant) -> None:
    tool_call = ("HassTurnOn", '{"name": "Bed Light", "mood": "cosy"}')
    await record(home, build_record("turn on the reading thing", tool_call=tool_call))

    (group,) = await read(home)

    assert (group["target"]["entity_id"], group["sentence"]) == (BED, None)


@pytest.mark.usefixtures("entry")
async def test_entity_without_a_registry_entry_gets_a_sentence(home: HomeAssistant) -> None:
    home.states.async_set("light.loose", "off", {"friendly_name": "Loose lantern"})
    async_expose_entity(home, "conversation", "light.loose", should_expose=True)
    await record(home, build_record("turn on the reading thing", tool_call=("HassTurnOn", '{"name": "Loose lantern"}')))

    (group,) = await read(home)

    assert group["sentence"] == "turn on Loose lantern"


@pytest.mark.usefixtures("entry")
async def test_names_of_the_home_that_two_entities_have_are_no_target(home: HomeAssistant) -> None:
    home.states.async_set("light.twin", "off", {"friendly_name": "Bed Light"})
    async_expose_entity(home, "conversation", "light.twin", should_expose=True)
    await record(home, build_record("turn on the reading thing"))

    (group,) = await read(home)

    assert (group["target"], group["sentence"]) == (None, None)


@pytest.mark.usefixtures("entry")
async def test_without_home_assistants_sentences_there_is_none(
    home: HomeAssistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await record(home, build_record("turn on the reading thing"))
    monkeypatch.delattr(DefaultAgent, "async_get_or_load_intents")

    (group,) = await read(home)

    assert (group["target"]["entity_id"], group["sentence"]) == (BED, None)


async def test_sentences_with_the_same_words_or_the_same_call_are_one_group(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    await command(model_server, say, "Turn on the floor thing.", arguments={"name": "Floor lamp"})
    for sentence in ("turn on the reading thing", "Turn on the reading thing!", "let the reading thing shine"):
        await command(model_server, say, sentence)

    groups = await read(home)

    counts = [(each["said"], each["count"]) for each in groups]
    assert counts == [("let the reading thing shine", 3), ("Turn on the floor thing.", 1)]


async def test_each_turn_is_counted_once_in_whatever_it_is_found(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    await set_up(**{CONF_RECORD: RecordLevel.FULL})
    for conversation in ("one", "one", "two"):
        await command(model_server, say, "turn on the reading thing", conversation_id=conversation)

    (group,) = await read(home)

    assert group["count"] == 3


async def test_cost_is_the_sum_of_what_is_known(home: HomeAssistant, entry: MockConfigEntry) -> None:
    costs = ("0.25", None, "0.5")
    await record(home, *(build_record("it is dark", number, cost=cost) for number, cost in enumerate(costs)))
    await record(home, build_record("it is bright", 9, ("HassTurnOff", ON[1])))

    groups = await read(home)

    assert [(each["count"], each["cost"]) for each in groups] == [(3, 0.75), (1, None)]


async def test_turn_that_is_not_recorded_is_absent(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    await set_up(**{CONF_RECORD: RecordLevel.OFF})
    await command(model_server, say, "turn on the reading thing")

    assert await read(home) == []


async def test_deleted_conversation_is_known_from_the_record_of_turns(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    await set_up(**{CONF_RECORD: RecordLevel.FULL, CONF_MEMORY: "off"})
    await command(model_server, say, "turn on the reading thing")
    await act(home, "delete_conversation")

    (group,) = await read(home)

    assert (group["said"], group["target"]["entity_id"]) == ("turn on the reading thing", BED)


async def test_deleted_conversation_is_known_from_memory_by_its_tool(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    await command(model_server, say, "turn on the reading thing")
    await act(home, "delete_conversation")

    (group,) = await read(home)

    last = group.pop("last")
    assert datetime.fromisoformat(last).timestamp() == pytest.approx(time.time(), abs=600)
    fields = {"said": "turn on the reading thing", "count": 1, "cost": None, "tool": "HassTurnOn"}
    assert group == {**fields, "target": None, "sentence": None}


async def test_questions_and_jokes_are_absent(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    await say("tell me a joke about lamps")
    await command(model_server, say, "is the reading thing on?", "GetLiveContext", arguments={})

    assert await read(home) == []


async def test_command_that_the_home_answered_is_absent(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    await say("turn on the bed light")

    assert (await read(home), model_server.requests) == ([], [])


async def test_command_that_failed_gets_no_sentence(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    await command(model_server, say, "turn on the reading thing", arguments={"name": "Unknown thing"})

    (group,) = await read(home)

    assert (group["tool"], group["target"], group["sentence"]) == ("HassTurnOn", None, None)


async def test_command_of_an_agent_that_always_asks_its_model_is_absent(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    await set_up(**{CONF_ROUTING: "model_only", CONF_RECORD: RecordLevel.FULL})
    await command(model_server, say, "turn on the reading thing")

    assert await read(home) == []


async def test_command_with_several_targets_gets_no_sentence(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    both = call("HassTurnOn", name="Bed Light") + call("HassTurnOn", name="Floor lamp")
    model_server.script(both, words("Done."))
    await say("turn on the reading thing")

    (group,) = await read(home)

    assert (group["tool"], group["target"], group["sentence"]) == ("HassTurnOn", None, None)


@pytest.fixture
async def people(home: HomeAssistant) -> list[Context]:
    """Create an owner and two other people, and return the contexts of these."""
    await home.auth.async_create_user(OWNER, group_ids=[GROUP_ID_ADMIN])
    users = [await home.auth.async_create_user(name, group_ids=[GROUP_ID_USER]) for name in ("Ada", "Grace")]
    return [Context(user_id=user.id) for user in users]


async def test_commands_of_another_person_are_absent(
    *, home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer, say: SayFn, people: list[Context]
) -> None:
    for memory, level, is_deleted in product(("off", "on"), (RecordLevel.OFF, RecordLevel.FULL), (False, True)):
        conversation_id = f"memory {memory}, record {level}, deleted {is_deleted}"
        async with row(conversation_id):
            await set_up(**{CONF_RECORD: level, CONF_MEMORY: memory})
            for person, thing in zip(people, ("reading", "sleeping"), strict=True):
                sentence = f"turn on the {thing} thing"
                await command(model_server, say, sentence, context=person, conversation_id=conversation_id)
            for person in people * is_deleted:
                await act(home, "delete_conversation", person, conversation_id=conversation_id)

            sentences = [[group["said"] for group in await read(home, person)] for person in people]

            is_stored = level is RecordLevel.FULL
            assert sentences == [["turn on the reading thing"] * is_stored, ["turn on the sleeping thing"] * is_stored]


async def test_administrator_reads_no_commands_of_other_people(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn, people: list[Context]
) -> None:
    await set_up(**{CONF_RECORD: RecordLevel.FULL})
    await command(model_server, say, "turn on the reading thing", context=people[0])
    (owner,) = [user for user in await home.auth.async_get_users() if user.name == OWNER]

    assert await read(home, Context(user_id=owner.id)) == []


async def test_tool_in_a_turn_reads_nothing_that_is_personal(
    *,
    home: HomeAssistant,
    set_up: SetUpFn,
    model_server: ModelServer,
    say: SayFn,
    people: list[Context],
    get_agent: Callable[[MockConfigEntry], Agent],
) -> None:
    entry = await set_up(**{CONF_RECORD: RecordLevel.FULL})
    await command(model_server, say, "turn on the reading thing", context=people[0])
    await act(home, "delete_conversation", people[0])

    async with begin_turn(get_agent(entry).windows, "shared"):
        inside = await read(home, people[0])

    assert inside == []


async def test_who_may_not_read_an_agent_reads_nothing(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    await command(model_server, say, "turn on the reading thing")
    await home.auth.async_create_user(OWNER, group_ids=[GROUP_ID_ADMIN])
    guest = await home.auth.async_create_user("Guest", group_ids=[])

    with pytest.raises(Unauthorized):
        await read(home, Context(user_id=guest.id))


HOSTILE_SENTENCES = {
    "megabyte": "turn on the reading thing " * 40_000,
    "markup": "turn on <img src=x onerror=alert(1)></script> **now** [x](javascript:1)",
    "invisible": "turn on \u202ethe \u0000reading\u2066 thing\n\n# please",
    "brackets": "turn on " + "[" * 5_000,
    "template": "turn on {name} (a|b) [c] <d>",
    "verbs": "turn " * 100,
    "prepositions": "on " * 166,
}


async def test_hostile_sentence_stays_bounded(home: HomeAssistant, begin_row: BeginRow) -> None:
    for number, (kind, sentence) in enumerate(HOSTILE_SENTENCES.items()):
        with await begin_row(kind):
            await record(home, build_record(sentence, number))
            began = time.perf_counter()

            (group,) = await read(home)

            assert time.perf_counter() - began < 10
            assert len(group["said"]) <= 500
            assert "\n" not in group["said"]
            assert "Bed Light" in group["sentence"]


async def test_groups_are_limited(home: HomeAssistant, entry: MockConfigEntry) -> None:
    calls = [("HassTurnOn", f'{{"name": "Lamp {number}"}}') for number in range(60)]
    await record(home, *(build_record("do it", number, each) for number, each in enumerate(calls)))

    assert len(await read(home)) == 50


async def test_old_sentences_are_absent(home: HomeAssistant, entry: MockConfigEntry) -> None:
    await record(home, build_record("turn on the reading thing", 29 * 24 * 60 * 60))

    assert await read(home) == []


async def test_nothing_is_read_while_the_store_is_closed(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer, say: SayFn
) -> None:
    await command(model_server, say, "turn on the reading thing")
    assert await home.async_add_executor_job(memory_of(home).writer.close, 60.0)

    assert await read(home) == []
