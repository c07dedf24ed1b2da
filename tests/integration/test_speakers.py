"""Tests of the sources of a speaker: who hears memories, whose reminders are set, and whom the gate asks."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
import re
from typing import Any, cast

from freezegun.api import FrozenDateTimeFactory
from homeassistant.auth.const import GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.components.assist_pipeline.pipeline import Pipeline, async_get_pipeline, async_update_pipeline
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import async_fire_mqtt_message

from custom_components.windowed_conversation.const import CONF_DEVICE_OWNERS, CONF_SCOPE, DOMAIN
from custom_components.windowed_conversation.memory.turn.speaker import SpeakerSource
from custom_components.windowed_conversation.reminders.core.reminder import Reminder, read_reminders
from custom_components.windowed_conversation.turn.routing import Scope
from demo.model_server import ModelServer
from tests.documents import DOCS, blocks

from .conftest import SayFn, SetUpFn, flush_store
from .remembered import add_fact, list_facts, memory_of, recorded_turns
from .satellite import SATELLITE, Heard, press
from .states import add_satellite
from .test_gate import QUESTION, Services, calls
from .test_recall import asked

__all__ = ["calls"]

ENTITY = "sensor.satellite_speaker"
ENGINE = "stt.scripted_voice"
WORDS = {"Ada": "wren", "Grace": "gull"}

type Speak = Callable[[str], Coroutine[Any, Any, str]]


@dataclass(slots=True)
class Room:
    """A satellite in a home with two people and a guest. `speak` speaks to it as somebody who is known by a source."""

    home: HomeAssistant
    heard: Heard
    set_up: SetUpFn
    say: SayFn
    monkeypatch: pytest.MonkeyPatch
    device: str
    people: dict[str, str]
    row: dict[str, Any] = field(default_factory=dict)

    async def begin(self, source: SpeakerSource, who: str, **more: Any) -> None:
        """Set the home up so that the satellite knows its speakers by a source."""
        rows = {
            SpeakerSource.LOGIN: {},
            SpeakerSource.PIPELINE: {},
            SpeakerSource.SATELLITE: {"person": self.people[who]} if who in self.people else {},
            SpeakerSource.ENTITY: {"entity": ENTITY},
            SpeakerSource.PREFIX: {"engine": ENGINE},
        }
        self.row = {"device": self.device, **rows[source], **more}
        await self.set_up(options={CONF_DEVICE_OWNERS: [self.row]} if len(self.row) > 1 else {})
        for name, word in WORDS.items():
            await add_fact(
                self.home, f"The dentist has a {word}", person=self.people[name], private=True, source="said"
            )

    async def speak(self, source: SpeakerSource, who: str, text: str) -> str:
        """Say something to the satellite and return the answer. A speaker with a login types it instead."""
        person = self.people.get(who)
        if source is SpeakerSource.LOGIN:
            result = await self.say(text, None, context=Context(user_id=person))
            return str(result.response.speech.get("plain", {}).get("speech", ""))
        if source is SpeakerSource.ENTITY:
            self.home.states.async_set(ENTITY, who, force_update=True)
        if source is SpeakerSource.PIPELINE:
            self.monkeypatch.setattr(Pipeline, "user_id", person, raising=False)
        return await self.press(f"[{who}] {text}" if source is SpeakerSource.PREFIX else text)

    async def press(self, text: str) -> str:
        """Speak to the satellite, and return the answer."""
        self.heard.begin()
        await press(self.home, text)
        for entry in self.home.config_entries.async_loaded_entries(DOMAIN):
            for agent in entry.runtime_data.agents.values():
                agent.notify_listeners()
        await self.home.async_block_till_done(wait_background_tasks=True)
        await flush_store(self.home)
        return self.heard.text


@pytest.fixture
async def room(home: HomeAssistant, heard: Heard, set_up: SetUpFn, say: SayFn, monkeypatch: pytest.MonkeyPatch) -> Room:
    # the account that the satellite's pipeline came with has no table
    for entry in home.config_entries.async_entries(DOMAIN):
        await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)
    groups = {"Ada": GROUP_ID_USER, "Grace": GROUP_ID_USER, "Leo": GROUP_ID_READ_ONLY}
    people = {name: (await home.auth.async_create_user(name, group_ids=[group])).id for name, group in groups.items()}
    satellite = er.async_get(home).async_get(SATELLITE)
    assert satellite is not None
    assert satellite.device_id is not None
    return Room(home, heard, set_up, say, monkeypatch, satellite.device_id, people)


# Kim has no login: a guest.
SPEAKERS = ["Ada", "Grace", "Kim"]


@pytest.mark.parametrize("source", list(SpeakerSource))
@pytest.mark.parametrize("who", SPEAKERS)
async def test_speaker_hears_and_tells_as_the_person_whom_the_source_names(
    room: Room, model_server: ModelServer, *, source: SpeakerSource, who: str, subtests: pytest.Subtests
) -> None:
    person = room.people.get(who)
    await room.begin(source, who)

    await room.speak(source, who, "good morning, what a day")
    system, said = asked(model_server)
    with subtests.test("hears"):
        assert {name for name, word in WORDS.items() if word in system + said} == {who} & WORDS.keys()
    with subtests.test("stamp"):
        note = {SpeakerSource.LOGIN: "", SpeakerSource.ENTITY: ", by voice", SpeakerSource.PREFIX: ", by voice"}.get(
            source, ", by this device"
        )
        names = re.findall(r"speaker: ([^;\]]*)", said)
        assert names == ([f"{who}{note}"] if person else [])
    with subtests.test("text"):
        assert said.endswith("\n\ngood morning, what a day")
    with subtests.test("remembers"):
        before = {each.text for each in await list_facts(room.home, person)}
        await room.speak(source, who, "remember that my locker has an ibis")
        told = [each for each in await list_facts(room.home, person) if each.text not in before]
        assert [(each.person, each.private) for each in told] == ([(person, True)] if person else [])
    with subtests.test("reminder"):
        await room.speak(source, who, "remind me in twenty minutes to water the ficus")
        (reminder,) = await memory_of(room.home).async_read(read_reminders, list[Reminder]())
        assert (reminder.text, reminder.person) == ("water the ficus", person)
    with subtests.test("record"):
        turns = await recorded_turns(room.home)
        assert {(each["person"], each["known_by"]) for each in turns} == {(person, source.value if person else None)}


@pytest.mark.parametrize("source", list(SpeakerSource))
async def test_speaker_without_a_login_is_asked_before_forgetting_and_opening(
    room: Room, calls: Services, *, source: SpeakerSource, subtests: pytest.Subtests
) -> None:
    await room.begin(source, "Ada")
    with subtests.test("gate"):
        answer = await room.speak(source, "Ada", "unlock the side door")
        assert (bool(calls), QUESTION in answer) == (source is SpeakerSource.LOGIN, source is not SpeakerSource.LOGIN)
    with subtests.test("forgetting"):
        await room.speak(source, "Ada", "never mind")
        await room.speak(source, "Ada", "forget that the dentist has a wren")
        facts = [each.text for each in await list_facts(room.home, room.people["Ada"])]
        assert facts == ([] if source is SpeakerSource.LOGIN else ["The dentist has a wren"])


@pytest.mark.parametrize("source", [SpeakerSource.SATELLITE, SpeakerSource.ENTITY, SpeakerSource.PREFIX])
@pytest.mark.parametrize(("who", "is_done"), [("Ada", True), ("Leo", False), ("Kim", False)])
async def test_trusted_source_opens_for_whom_a_login_would(
    room: Room, calls: Services, *, source: SpeakerSource, who: str, is_done: bool
) -> None:
    await room.begin(source, who, trusted=True)

    await room.speak(source, who, "unlock the side door")

    assert bool(calls) is is_done


# States of the entity, each with its attributes, its age in seconds, and whether it is believed.
STATES: list[tuple[str, dict[str, Any], float, bool]] = [
    ("Ada", {}, 0, True),
    ("ada", {}, 9, True),
    ("person.ada", {}, 0, True),
    ("Countess", {}, 0, True),
    ("Ada", {}, 11, False),
    ("Ada", {"confidence": 0.71}, 0, True),
    ("Ada", {"confidence": "0.95"}, 0, True),
    ("Ada", {"confidence": 88}, 0, True),
    ("Ada", {"confidence": 0.7}, 0, False),
    ("Ada", {"confidence": 12}, 0, False),
    ("Ada", {"confidence": 400}, 0, False),
    ("Ada", {"confidence": "nan"}, 0, False),
    ("Ada", {"confidence": None}, 0, False),
    ("Ada", {"confidence": "high"}, 0, False),
    ("unknown", {}, 0, False),
    ("unavailable", {}, 0, False),
    ("", {}, 0, False),
    ("Ad", {}, 0, False),
    ("Ada and Grace", {}, 0, False),
    # a Cyrillic letter, a wide one, a mark that turns the text around, and an invisible character
    ("\u0410da", {}, 0, False),
    ("\uff21da", {}, 0, False),
    ("\u202eadA", {}, 0, False),
    ("Ada\u200b", {}, 0, False),
    # two users of one name, and a user and a person without a login
    ("Kim", {}, 0, False),
    ("Sam", {}, 0, False),
    # names that only look different, and one from right to left
    ("Zoe", {}, 0, False),
    ("\u05e0\u05d5\u05e2\u05d4", {}, 0, False),
]


async def test_entity_is_believed_only_if_it_is_fresh_sure_and_clear(
    room: Room, freezer: FrozenDateTimeFactory, subtests: pytest.Subtests
) -> None:
    home = room.home
    for name in ("Kim", "Kim", "Sam", "Zoe", "\uff3aoe"):
        await home.auth.async_create_user(name)
    home.states.async_set("person.ada", "home", {"friendly_name": "Countess", "user_id": room.people["Ada"]})
    home.states.async_set("person.child", "home", {"friendly_name": "Sam"})
    await room.begin(SpeakerSource.ENTITY, "Ada")
    for number, (state, attributes, age, is_believed) in enumerate(STATES):
        with subtests.test(str(number)):
            home.states.async_set(ENTITY, state, attributes)
            freezer.tick(timedelta(seconds=age))

            await room.press("good morning")

            turns = await recorded_turns(home)
            assert len(turns) == number + 1
            assert turns[-1]["person"] == (room.people["Ada"] if is_believed else None)


async def test_name_from_right_to_left_is_a_name(room: Room) -> None:
    noa = (await room.home.auth.async_create_user("\u05e0\u05d5\u05e2\u05d4")).id
    await room.begin(SpeakerSource.ENTITY, "Ada")
    room.home.states.async_set(ENTITY, "\u05e0\u05d5\u05e2\u05d4")

    await room.press("good morning")

    (turn,) = await recorded_turns(room.home)
    assert turn["person"] == noa


@pytest.mark.parametrize("setter", ["guest", "guest's automation", "removed user", "owner", "device"])
async def test_entity_that_a_guest_or_an_automation_has_set_is_not_believed(room: Room, *, setter: str) -> None:
    owner = await room.home.auth.async_create_user("Owner", group_ids=["system-admin"])
    contexts = {
        "guest": Context(user_id=room.people["Leo"]),
        "guest's automation": Context(parent_id=Context(user_id=room.people["Leo"]).id),
        "removed user": Context(user_id="f" * 32),
        "owner": Context(user_id=owner.id),
        "device": Context(),
    }
    await room.begin(SpeakerSource.ENTITY, "Ada")
    room.home.states.async_set(ENTITY, "Ada", context=contexts[setter])

    await room.press("good morning")

    (turn,) = await recorded_turns(room.home)
    assert turn["person"] == (room.people["Ada"] if setter in ("owner", "device") else None)


# Sentences as the engine writes them, each with the text that is left and the person.
PREFIXES = [
    ("[Ada] good morning", "good morning", "Ada"),
    ("[ada]good morning", "good morning", "Ada"),
    ("[Grace] [Ada] good morning", "[Ada] good morning", "Grace"),
    ("[unknown] good morning", "good morning", None),
    ("[\u202eadA] good morning", "good morning", None),
    ("[Ada]", "[Ada]", None),
    ("good morning [Ada]", "good morning [Ada]", None),
    ("(Ada) good morning", "(Ada) good morning", None),
]


async def test_prefix_is_cut_off_and_only_the_first_one_counts(
    room: Room, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    await room.begin(SpeakerSource.PREFIX, "Ada")
    for number, (spoken, text, who) in enumerate(PREFIXES):
        with subtests.test(spoken):
            await room.press(spoken)

            turns = await recorded_turns(room.home)
            assert len(turns) == number + 1
            assert asked(model_server)[1].endswith(f"\n\n{text}")
            assert turns[-1]["person"] == (room.people[who] if who else None)


@pytest.mark.parametrize("engine", ["stt.another", None])
async def test_prefix_of_an_engine_that_is_not_named_is_a_lie(
    room: Room, model_server: ModelServer, *, engine: str | None
) -> None:
    await room.begin(SpeakerSource.LOGIN, "Ada", **({"engine": engine} if engine else {}))

    await room.press("[Ada] good morning")

    (turn,) = await recorded_turns(room.home)
    assert asked(model_server)[1].endswith("\n\n[Ada] good morning")
    assert turn["person"] is None


async def test_prefix_without_speech_to_text_is_a_lie(room: Room, model_server: ModelServer) -> None:
    await room.begin(SpeakerSource.LOGIN, "Ada", permission="everything")
    await async_update_pipeline(room.home, async_get_pipeline(room.home), stt_engine=None, stt_language=None)

    await room.say("[Ada] good morning", None, satellite_id=SATELLITE)

    (turn,) = await recorded_turns(room.home)
    assert asked(model_server)[1].endswith("\n\n[Ada] good morning")
    assert turn["person"] is None


async def test_prefix_that_somebody_types_is_a_lie(room: Room, model_server: ModelServer) -> None:
    await room.begin(SpeakerSource.PREFIX, "Ada")

    await room.say("[Ada] good morning", None, context=Context(user_id=room.people["Leo"]))
    await room.say("[Ada] good morning", None, device_id=room.device)

    turns = await recorded_turns(room.home)
    assert [each["person"] for each in turns] == [room.people["Leo"], None]


async def test_prefix_does_not_keep_a_command_from_home_assistant(room: Room) -> None:
    await room.begin(SpeakerSource.PREFIX, "Ada")

    answer = await room.press("[Ada] turn on the kitchen light")

    assert "[Ada]" not in answer
    (turn,) = await recorded_turns(room.home)
    assert turn["route"] == "local"


async def test_entity_counts_at_its_own_satellite_alone(room: Room) -> None:
    await room.begin(SpeakerSource.ENTITY, "Ada")
    room.home.states.async_set(ENTITY, "Ada")

    await room.say("good morning", None, device_id=add_satellite(room.home, "Hall"))

    (turn,) = await recorded_turns(room.home)
    assert turn["person"] is None


@pytest.mark.parametrize("scope", [Scope.CONVERSATION, Scope.DEVICE, Scope.USER])
async def test_another_voice_in_the_middle_of_a_conversation_has_a_window_of_its_own(
    room: Room, model_server: ModelServer, *, scope: Scope
) -> None:
    row = {"device": room.device, "entity": ENTITY}
    await room.set_up(options={CONF_DEVICE_OWNERS: [row]}, **{CONF_SCOPE: scope})

    await room.speak(SpeakerSource.ENTITY, "Ada", "my diary is behind the heron, keep it to yourself")
    await room.speak(SpeakerSource.ENTITY, "Grace", "so what did I just say?")
    graces = str(model_server.requests[-1].body)
    await room.speak(SpeakerSource.ENTITY, "Kim", "and what did I say?")
    guests = str(model_server.requests[-1].body)
    await room.speak(SpeakerSource.ENTITY, "Ada", "go on then please, what was it?")

    assert "heron" not in graces + guests
    assert "heron" in str(model_server.requests[-1].body)


MQTT: dict[str, Any]
TEMPLATE: dict[str, Any]
MQTT, TEMPLATE = [cast("Any", parse_yaml(each)) for each in blocks(DOCS / "speakers.md", "yaml")]
DOCUMENTED = "sensor.kitchen_speaker"


@pytest.mark.parametrize("expected_lingering_timers", [True])
@pytest.mark.parametrize(("published", "who"), [(["Ada"], "Ada"), (["Ada", "Grace"], "Grace"), (["Ada", "user"], None)])
async def test_speaker_is_known_by_the_documented_sensor_of_voicebm(
    room: Room, mqtt_mock_entry: Any, freezer: FrozenDateTimeFactory, *, published: list[str], who: str | None
) -> None:
    home = room.home
    room.monkeypatch.setattr("homeassistant.config.load_yaml_config_file", lambda *_: MQTT)
    await mqtt_mock_entry()
    await room.begin(SpeakerSource.LOGIN, "Ada", entity=DOCUMENTED)
    async_fire_mqtt_message(home, "voicebm/kitchen/identity", "Ada")
    freezer.tick(timedelta(minutes=5))
    for each in published:
        async_fire_mqtt_message(home, "voicebm/kitchen/identity", each)
    await home.async_block_till_done()

    await room.press("good morning")

    (turn,) = await recorded_turns(home)
    assert turn["person"] == (room.people[who] if who else None)


@pytest.mark.parametrize(("confidence", "is_believed"), [(0.9, True), (0.4, False)])
async def test_speaker_is_known_by_the_documented_template_of_an_event(
    room: Room, freezer: FrozenDateTimeFactory, *, confidence: float, is_believed: bool
) -> None:
    assert await async_setup_component(room.home, "template", TEMPLATE)
    await room.begin(SpeakerSource.LOGIN, "Ada", entity=DOCUMENTED)
    for _ in range(2):
        freezer.tick(timedelta(minutes=5))
        data = {"room": "kitchen", "name": "Ada", "confidence": confidence}
        room.home.bus.async_fire("speaker_recognized", data)
        await room.home.async_block_till_done()

    await room.press("good morning")

    (turn,) = await recorded_turns(room.home)
    assert turn["person"] == (room.people["Ada"] if is_believed else None)


# A sensor of Murdock's, with a confidence in percent, and the engine's prefix of Wyoming Voice Match.
@pytest.mark.parametrize(("percent", "is_believed"), [(91.4, True), (55.0, False)])
async def test_speaker_is_known_by_a_sensor_with_a_percentage(room: Room, *, percent: float, is_believed: bool) -> None:
    await room.begin(SpeakerSource.ENTITY, "Ada")
    attributes = {"confidence": percent, "distance": 0.21, "nearest_speaker": "ada", "role": "adult"}
    room.home.states.async_set(ENTITY, "ada", attributes)

    await room.press("good morning")

    (turn,) = await recorded_turns(room.home)
    assert turn["person"] == (room.people["Ada"] if is_believed else None)


@pytest.mark.parametrize("way", ["service", "automation", "template"])
async def test_guest_names_nobody_through_a_helper(room: Room, *, way: str) -> None:
    home, guest = room.home, Context(user_id=room.people["Grace"])
    assert await async_setup_component(home, "input_text", {"input_text": {"who": {}, "copy": {}}})
    trigger = {"trigger": "state", "entity_id": "input_text.copy"}
    action = {"action": "input_text.set_value", "data": {"entity_id": "input_text.who", "value": "Ada"}}
    automation = {"automation": {"triggers": trigger, "actions": action}}
    sensor = {"sensor": {"name": "Copied", "state": "{{ states('input_text.who') }}"}}
    assert await async_setup_component(home, "template", {"template": sensor})
    if way == "automation":
        assert await async_setup_component(home, "automation", automation)
    await room.begin(SpeakerSource.LOGIN, "Ada", entity="sensor.copied" if way == "template" else "input_text.who")
    target = "input_text.copy" if way == "automation" else "input_text.who"
    data = {"entity_id": target, "value": "Ada"}
    await home.services.async_call("input_text", "set_value", data, blocking=True, context=guest)
    await home.async_block_till_done()

    await room.press("good morning")

    (turn,) = await recorded_turns(home)
    state = home.states.get("sensor.copied")
    assert state is not None
    assert (state.state, turn["person"]) == ("Ada", None)
