"""Tests for a room with two satellites, or a satellite with two agents: one thing is said at a time."""

import asyncio
from typing import Any

from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline, async_update_pipeline
from homeassistant.components.assist_satellite.const import DATA_COMPONENT
from homeassistant.core import Event, HomeAssistant
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er
from homeassistant.helpers.device_registry import DeviceInfo
import pytest

from custom_components.windowed_conversation.agents import hand_over
from custom_components.windowed_conversation.bridge import fillers
from demo.model_server import ModelServer, words
from demo.scripted_voice.assist_satellite import ScriptedSatellite

from .conftest import until
from .more_agents import add_agent
from .satellite import SATELLITE, Heard, press
from .test_hand_over import ABOUT, PROMISE, Gate, answers, gate, outcomes

__all__ = ["answers", "gate"]

SKY, GRASS = "which colour is the sky?", "and the grass?"
LATE_GREEN = 'About "and the grass": Green.'


@pytest.fixture
async def other(home: HomeAssistant, heard: Heard) -> str:
    """Add a second satellite to the room of the first one, and return its entity id."""
    first = home.data[DATA_COMPONENT].get_entity(SATELLITE)
    assert first is not None
    assert first.platform.config_entry is not None
    second = ScriptedSatellite(first.platform.config_entry)
    second._attr_unique_id = "other"
    second._attr_device_info = DeviceInfo(identifiers={("scripted_voice", "other")}, name="Other")
    await first.platform.async_add_entities([second])
    move(home, "Kitchen", SATELLITE, second.entity_id)
    return second.entity_id


def move(home: HomeAssistant, room: str, *satellite_ids: str) -> None:
    area = ar.async_get(home).async_get_or_create(room)
    for each in satellite_ids:
        entry = er.async_get(home).async_get(each)
        assert entry is not None
        assert entry.device_id is not None
        dr.async_get(home).async_update_device(entry.device_id, area_id=area.id)


async def start_turn(home: HomeAssistant, sentence: str, satellite_id: str) -> asyncio.Task[None]:
    """Speak a sentence to a satellite, and return the pipeline's task once the turn runs."""
    task = asyncio.create_task(press(home, sentence, satellite_id))
    await until(lambda: hand_over._get_running_turns(home).is_in_use(satellite_id))
    return task


async def test_announcement_waits_for_a_turn_at_another_satellite_of_the_room(
    *, home: HomeAssistant, heard: Heard, other: str, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    model_server.script(words("Blue."), words("Green."))
    gate.close(SKY, GRASS)
    await press(home, SKY)
    gate.stop_hand_overs()
    second = await start_turn(home, GRASS, other)
    await until(lambda: len(gate.turns) == 2)

    gate.release(SKY)
    await asyncio.sleep(0.5)
    assert heard.utterances == [PROMISE]
    gate.release(GRASS)
    await second
    await until(lambda: bool(answers))

    assert heard.utterances == [PROMISE, "Green.", f"{ABOUT} Blue."]


async def test_announcement_does_not_wait_for_another_room(
    *, home: HomeAssistant, heard: Heard, other: str, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    move(home, "Cellar", other)
    model_server.script(words("Blue."), words("Green."))
    gate.close(SKY, GRASS)
    await press(home, SKY)
    gate.stop_hand_overs()
    second = await start_turn(home, GRASS, other)
    await until(lambda: len(gate.turns) == 2)

    gate.release(SKY)
    await until(lambda: bool(answers))
    gate.release(GRASS)
    await second

    assert heard.utterances == [PROMISE, f"{ABOUT} Blue.", "Green."]


async def test_announcement_of_an_automation_in_the_room_is_waited_for(
    *, home: HomeAssistant, heard: Heard, other: str, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    model_server.script(words("Blue."))
    gate.close(SKY)
    await press(home, SKY)
    home.states.async_set(other, "responding")

    gate.release(SKY)
    await asyncio.sleep(0.5)
    assert heard.utterances == [PROMISE]
    home.states.async_set(other, "idle")
    await until(lambda: bool(answers))

    assert heard.utterances == [PROMISE, f"{ABOUT} Blue."]


@pytest.fixture
def announcing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let an announcement take time, and return how many there are at once, at the beginning of each."""
    announce, counts, running = ScriptedSatellite.async_announce, list[int](), list[str]()

    async def announce_slowly(self: ScriptedSatellite, announcement: Any) -> None:
        running.append(self.entity_id)
        counts.append(len(running))
        await announce(self, announcement)
        await asyncio.sleep(0.3)
        running.remove(self.entity_id)

    monkeypatch.setattr(ScriptedSatellite, "async_announce", announce_slowly)
    return counts


async def test_announcements_of_a_room_come_one_after_the_other(
    *,
    home: HomeAssistant,
    heard: Heard,
    other: str,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Event],
    announcing: list[int],
) -> None:
    model_server.script(words("Blue."), words("Green."))
    gate.close(SKY, GRASS)
    await press(home, SKY)
    await press(home, GRASS, other)

    gate.release(SKY)
    gate.release(GRASS)
    await until(lambda: len(answers) == 2)

    assert announcing == [1, 1]
    assert sorted(heard.utterances[-2:]) == [LATE_GREEN, f"{ABOUT} Blue."]


async def test_announcements_of_two_agents_on_one_satellite_come_one_after_the_other(
    *,
    home: HomeAssistant,
    entry,
    heard: Heard,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Event],
    announcing: list[int],
) -> None:
    await add_agent(home, entry)
    model_server.script(words("Blue."), words("Green."))
    gate.close(SKY, GRASS)
    await press(home, SKY)
    await async_update_pipeline(home, async_get_pipeline(home), conversation_engine="conversation.grace")
    await press(home, GRASS)

    gate.release(SKY)
    gate.release(GRASS)
    await until(lambda: len(answers) == 2)

    assert announcing == [1, 1]
    assert outcomes(answers) == ["announced", "announced"]
    assert {event.data["entity_id"] for event in answers} == {"conversation.ada", "conversation.grace"}


async def test_filler_is_not_said_while_the_room_hears_an_announcement(
    *,
    home: HomeAssistant,
    heard: Heard,
    other: str,
    model_server: ModelServer,
    gate: Gate,
    announcing: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model_server.script(words("Blue."), words("Green."))
    gate.close(SKY, GRASS)
    await press(home, SKY)
    gate.stop_hand_overs()
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (0.1, 1.0))
    gate.release(SKY)
    await until(lambda: announcing == [1])

    second = await start_turn(home, GRASS, other)
    await until(lambda: "One moment." in heard.utterances)
    gate.release(GRASS)
    await second

    assert heard.utterances == [PROMISE, f"{ABOUT} Blue.", "One moment.", "Green."]


async def test_two_satellites_that_hear_a_sentence_say_one_filler(
    *, home: HomeAssistant, heard: Heard, other: str, model_server: ModelServer, gate: Gate, monkeypatch
) -> None:
    model_server.script(words("Blue."), words("Blue."))
    gate.stop_hand_overs()
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (0.1,))
    gate.close(SKY)
    turns = [await start_turn(home, SKY, each) for each in (SATELLITE, other)]
    await asyncio.sleep(0.5)

    gate.release(SKY)
    await asyncio.wait(turns)
    await home.async_block_till_done(wait_background_tasks=True)

    assert heard.utterances.count("Hm.") == 1
