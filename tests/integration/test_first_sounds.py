"""Tests for what is heard at satellites, second by second on a virtual clock, while the model is silent."""

import asyncio
from collections.abc import Callable

from attr import evolve
from homeassistant.components.tts.const import DATA_TTS_MANAGER
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import entity_registry as er
import pytest

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.agents.local_intents import async_prepare_first_command
from custom_components.windowed_conversation.bridge import delivery, fillers
from custom_components.windowed_conversation.bridge.turn_report import EVENT_ANSWER
from custom_components.windowed_conversation.const import CONF_FILLER
from custom_components.windowed_conversation.turn import turn as turn_module
from custom_components.windowed_conversation.turn.asking import ask_question
from custom_components.windowed_conversation.turn.state import ModelRun
from demo.model_server import ModelServer, words
from tests.clock import IdleClock

from .satellite import SATELLITE, Heard, press

_FILLER_SECONDS = fillers.FILLER_SECONDS

type KeepSilent = Callable[[float], None]

PROMISE = "This is taking a while. I'll let you know here."
NOTICE = "This is taking a while. You'll get a notification."
FIRST, SECOND, THIRD = (1.3, "Hm."), (4.0, "One moment."), (12.0, "I'm still on it.")


@pytest.fixture
async def keep_silent(home: HomeAssistant, heard: Heard, idle_clock: IdleClock, monkeypatch) -> KeepSilent:
    """Return a function that lets the model be silent for some seconds before it is asked. All other times are real."""
    await async_prepare_first_command(home)
    monkeypatch.setattr(fillers, "FILLER_SECONDS", _FILLER_SECONDS)
    # the time of a state is not that of the virtual clock
    monkeypatch.setattr(delivery, "_IDLE_SECONDS", 0.0)
    # its request would take an answer that a test has scripted
    monkeypatch.setattr(Agent, "give_head_start", lambda _agent: None)

    def keep_silent(seconds: float) -> None:
        async def ask_later(run: ModelRun) -> None:
            await asyncio.sleep(seconds)
            await ask_question(run)

        monkeypatch.setattr(turn_module, "ask_question", ask_later)

    idle_clock.leap()
    return keep_silent


def disguise(home: HomeAssistant, platform: str) -> None:
    """Make the satellite one of another integration, with a media player."""
    registry = er.async_get(home)
    entry = registry.async_get(SATELLITE)
    assert entry is not None
    registry.entities.data[SATELLITE] = evolve(entry, platform=platform)
    player = registry.async_get_or_create("media_player", "test", "player")
    registry.async_update_entity(player.entity_id, device_id=entry.device_id)


# The seconds of silence, and what is heard before the answer, or before it is announced.
STREAMING = {
    0.5: [],
    2.0: [FIRST],
    3.0: [FIRST],
    6.0: [FIRST, SECOND],
    12.5: [FIRST, SECOND, THIRD],
    40.0: [FIRST, SECOND, THIRD, (25.0, PROMISE)],
    100.0: [FIRST, SECOND, THIRD, (25.0, PROMISE)],
}
SILENT = {seconds: [(10.0, PROMISE)] if seconds > 10.0 else [] for seconds in STREAMING}
# The last one chose the silence.
PLAYERS = [
    ("wyoming", "on", STREAMING),
    ("esphome", "on_with_esphome", STREAMING),
    ("esphome", "on", SILENT),
    ("voip", "on", {seconds: [(25.0, NOTICE)] if seconds > 25.0 else [] for seconds in STREAMING}),
    ("wyoming", "off", {seconds: [(25.0, PROMISE)] if seconds > 25.0 else [] for seconds in STREAMING}),
]


@pytest.mark.parametrize(("platform", "mode", "sounds"), PLAYERS, ids=[f"{each[0]}-{each[1]}" for each in PLAYERS])
async def test_time_line_of_a_silent_model(
    *,
    home: HomeAssistant,
    heard: Heard,
    entry,
    model_server: ModelServer,
    keep_silent: KeepSilent,
    subtests: pytest.Subtests,
    platform: str,
    mode: str,
    sounds: dict[float, list[tuple[float, str]]],
) -> None:
    disguise(home, platform)
    home.config_entries.async_update_entry(entry, options={**entry.options, CONF_FILLER: mode})
    await home.async_block_till_done()
    for seconds, expected in sounds.items():
        with subtests.test(seconds=seconds):
            keep_silent(seconds)
            # it would speak a text only once
            home.data[DATA_TTS_MANAGER].mem_cache.clear()
            answer = "Blue."
            model_server.script(words(answer))
            delivered = asyncio.Event()
            home.bus.async_listen_once(EVENT_ANSWER, callback(lambda _, delivered=delivered: delivered.set()))
            is_promised = bool(expected) and expected[-1][1] in (PROMISE, NOTICE)
            heard.begin()

            await press(home, "which colour is the sky?")
            await asyncio.wait({asyncio.create_task(delivered.wait())}, timeout=200.0 * is_promised)

            late = 'About "which colour is the sky": ' if is_promised else ""
            is_heard = not is_promised or platform != "voip"
            assert [text for _, text in heard.timeline] == [
                *[text for _, text in expected],
                *([f"{late}{answer}"] if is_heard else []),
            ]
            assert [at for at, _ in heard.timeline][: len(expected)] == [at for at, _ in expected]
