"""Fixtures of a satellite with streaming text-to-speech: what is said to it, and what its voice says."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from homeassistant.components.assist_pipeline.pipeline import (
    PipelineStage,
    async_get_pipeline,
    async_update_pipeline,
)
from homeassistant.components.assist_satellite.const import DATA_COMPONENT
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockModule, mock_integration, mock_platform

from custom_components.windowed_conversation.bridge import fillers
from demo import scripted_voice
from demo.scripted_voice import assist_satellite, config_flow, stt, tts

AGENT = "conversation.ada"
SATELLITE = "assist_satellite.satellite"

type Ask = Callable[[str], Coroutine[Any, Any, str]]


@dataclass
class Heard:
    """The pieces of text that the satellite's voice has spoken, and the time of each in seconds."""

    pieces: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    began: float = 0.0

    def begin(self) -> None:
        """Forget earlier pieces, and note the time."""
        self.pieces.clear()
        self.times.clear()
        self.began = asyncio.get_running_loop().time()

    @property
    def utterances(self) -> list[str]:
        """The spoken pieces, each without white space around it."""
        return [piece.strip() for piece in self.pieces]

    @property
    def timeline(self) -> list[tuple[float, str]]:
        """The tenth of a second of each spoken piece since `begin`, and the piece."""
        return [(round(at - self.began, 1), text) for at, text in zip(self.times, self.utterances, strict=True)]

    @property
    def text(self) -> str:
        """All of the spoken text, without the white space between sentences."""
        return " ".join("".join(self.pieces).split())


@pytest.fixture
async def heard(home: HomeAssistant, entry, monkeypatch: pytest.MonkeyPatch) -> Heard:
    """Set up the satellite and its voice, and yield what is heard."""
    heard = Heard()

    def speak(piece: str) -> bytes:
        heard.pieces.append(piece)
        heard.times.append(asyncio.get_running_loop().time())
        return b"\0" * 64

    monkeypatch.setattr(tts, "synthesize_text", speak)
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (0.1, 0.15, 1000.0))
    mock_integration(home, MockModule("scripted_voice", async_setup_entry=scripted_voice.async_setup_entry))
    for module in (assist_satellite, config_flow, stt, tts):
        mock_platform(home, f"scripted_voice.{module.__name__.rpartition('.')[2]}", cast("Any", module))
    for name in ("assist_pipeline", "assist_satellite", "stt", "tts"):
        assert await async_setup_component(home, name, {})
    voice = MockConfigEntry(domain="scripted_voice")
    voice.add_to_hass(home)
    assert await home.config_entries.async_setup(voice.entry_id)
    await async_update_pipeline(
        home,
        async_get_pipeline(home),
        conversation_engine=AGENT,
        stt_engine="stt.scripted_voice",
        stt_language="en",
        tts_engine="tts.scripted_voice",
        tts_language="en",
    )
    await home.async_block_till_done()
    return heard


async def press(home: HomeAssistant, sentence: str, satellite_id: str = SATELLITE) -> None:
    """Speak a sentence to a satellite, and wait until its pipeline has ended."""
    home.states.async_set("input_text.spoken_sentence", sentence)
    satellite = home.data[DATA_COMPONENT].get_entity(satellite_id)
    assert satellite is not None
    await satellite.async_accept_pipeline_from_satellite(_generate_audio(), end_stage=PipelineStage.TTS)


@pytest.fixture
def ask(home: HomeAssistant, heard: Heard) -> Ask:
    """Return a function that speaks to the satellite, waits until it has answered, and returns what was heard."""

    async def ask(sentence: str) -> str:
        heard.begin()
        await press(home, sentence)
        await home.async_block_till_done(wait_background_tasks=True)
        return heard.text

    return ask


async def _generate_audio() -> AsyncIterator[bytes]:
    yield bytes(3200)
