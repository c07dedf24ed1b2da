"""Tests for the fillers: what a satellite with streaming text-to-speech says while the model is silent."""

import asyncio
from typing import Any

from attr import evolve
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er
import pytest

from custom_components.windowed_conversation.agents import turns
from custom_components.windowed_conversation.bridge import fillers
from custom_components.windowed_conversation.const import CONF_FILLER, CONF_FILLER_SENTENCE
from demo.model_server import ModelServer, call, words
from demo.scripted_voice import tts
from demo.scripted_voice.sound import WAV_HEADER

from .conftest import SayFn, flush_store, get_speech
from .remembered import memory_of
from .satellite import SATELLITE, Ask, Heard
from .test_turns import window_of

FILLER = "Hm. One moment."
SLOW = 0.25


def be_slow(model_server: ModelServer, seconds: float = SLOW) -> None:
    """Let the model be silent for this time before each piece of its answer."""
    model_server.change(delay=seconds)


async def test_filler_opens_a_slow_answer(heard: Heard, ask: Ask, entry, model_server: ModelServer) -> None:
    be_slow(model_server)
    model_server.script(words("Blue."))

    assert await ask("which colour is the sky?") == f"{FILLER} Blue."
    assert heard.utterances == ["Hm.", "One moment.", "Blue."]
    assert [len(piece) > 60 for piece in heard.pieces] == [True, False, False]
    assert all(piece.endswith("\n\n") for piece in heard.pieces[:2])


async def test_quick_answer_has_no_filler(heard: Heard, ask: Ask, model_server: ModelServer) -> None:
    model_server.script(words("Blue."))

    assert await ask("which colour is the sky?") == "Blue."


async def test_filler_is_said_once_in_a_turn_with_tools(ask: Ask, model_server: ModelServer) -> None:
    be_slow(model_server)
    model_server.script(call("recall", query="sky"), words("Blue."))

    assert await ask("which colour is the sky?") == f"{FILLER} Blue."


# The tool that is called, and the sentences after four and twelve seconds.
WORDS_BY_TOOL = [
    ("recall", "Let me check. I'm still checking."),
    ("HassTurnOn", "One moment. I'm still on it."),
    ("get_weather_forecast", "Let me check. Still checking the forecast."),
    ("searchWeb", "Let me check. Still searching the web."),
    ("calendar__create_event", "One moment. I'm still on it."),
]


async def test_words_name_what_is_being_done(
    ask: Ask, model_server: ModelServer, monkeypatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (2.0 * SLOW, 3.25 * SLOW, 3.5 * SLOW))
    be_slow(model_server)
    for number, (tool, sentences) in enumerate(WORDS_BY_TOOL):
        with subtests.test(tool):
            # text-to-speech speaks a new text only
            model_server.script(call(tool, query="sky"), words(f"Green {number}."))

            assert await ask("which colour is grass?") == f"Hm. {sentences} Green {number}."


async def test_filler_is_nowhere_else(
    home: HomeAssistant, ask: Ask, entry, say: SayFn, model_server: ModelServer
) -> None:
    be_slow(model_server)
    model_server.script(words("Blue."))
    await ask("which colour is the sky?")
    await flush_store(home)

    state = home.states.get(SATELLITE)
    assert state is not None
    assert state.attributes["answer"] == "Blue."
    assert FILLER not in str(window_of(entry).messages())
    assert FILLER not in str([request.body for request in model_server.requests])
    memories = await memory_of(home).async_read(lambda memory: list(memory.export()), list[str]())
    assert FILLER not in "".join(memories)


@pytest.mark.parametrize(
    ("fault", "phrase"),
    [("500", "I can't reach my AI service right now."), ("empty_answer", "Something went wrong.")],
)
async def test_error_after_a_filler_is_heard(
    *, ask: Ask, model_server: ModelServer, monkeypatch, fault: str, phrase: str
) -> None:
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (0.0, 0.0))
    model_server.fault(fault)

    answer = await ask("which colour is the sky?")

    assert answer.startswith(FILLER)
    assert answer.count(phrase) == 1


async def test_unexpected_fault_after_a_filler_is_heard(ask: Ask, monkeypatch) -> None:
    async def fail(_state: object) -> None:
        await asyncio.sleep(SLOW)
        raise RuntimeError("broken")

    monkeypatch.setattr(turns, "run_turn", fail)

    assert await ask("which colour is the sky?") == f"{FILLER} Something went wrong. Please try again."


async def test_local_answer_after_a_filler_is_heard(home: HomeAssistant, ask: Ask) -> None:
    async def turn_on_slowly(_call: object) -> None:
        await asyncio.sleep(SLOW)

    home.services.async_register("input_boolean", "turn_on", turn_on_slowly)

    assert await ask("turn on kitchen light") == f"{FILLER} Turned on the switch"


async def test_text_to_speech_that_does_not_stream_says_no_filler(
    heard: Heard, ask: Ask, model_server: ModelServer, monkeypatch
) -> None:
    async def speak_whole(_self: object, message: str, *_more: object, **_options: object) -> tuple[str, bytes]:
        heard.pieces.append(message)
        return "wav", WAV_HEADER + b"\0" * 64

    monkeypatch.setattr(tts.ScriptedTextToSpeech, "async_supports_streaming_input", lambda _self: False)
    monkeypatch.setattr(tts.ScriptedTextToSpeech, "async_get_tts_audio", speak_whole)
    be_slow(model_server)
    model_server.script(words("Blue."))

    assert await ask("which colour is the sky?") == "Blue."


# The choice, the sentence of the user's, and what is heard before the answer.
BEGINNINGS = [
    ("off", "", ""),
    ("off", "Hold on!", ""),
    ("on", "", f"{FILLER} "),
    ("on", " \n", f"{FILLER} "),
    ("on_with_esphome", "", f"{FILLER} "),
    ("on", "Hold on,\nplease!", "Hm. Hold on, please! "),
    ("on_with_esphome", "Hold on!", "Hm. Hold on! "),
]


async def test_options_decide_about_the_filler(
    home: HomeAssistant, entry, ask: Ask, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    be_slow(model_server)
    for number, (mode, sentence, beginning) in enumerate(BEGINNINGS):
        with subtests.test(mode, sentence=sentence):
            options = {**entry.options, CONF_FILLER: mode, CONF_FILLER_SENTENCE: sentence}
            home.config_entries.async_update_entry(entry, options=options)
            await home.async_block_till_done()
            # text-to-speech speaks a new text only
            model_server.script(words(f"Green {number}."))

            assert await ask("which colour is grass?") == f"{beginning}Green {number}."


# The platform of the satellite, the option, whether the satellite has a media player, and whether its filler is said.
SATELLITES = [
    ("voip", "on_with_esphome", True, False),
    ("esphome", "on", True, False),
    ("esphome", "on_with_esphome", True, True),
    ("esphome", "on_with_esphome", False, False),
    ("wyoming", "on", False, True),
]


async def test_filler_is_said_where_it_is_heard_early(
    home: HomeAssistant, heard: Heard, subtests: pytest.Subtests
) -> None:
    registry = er.async_get(home)
    satellite = registry.async_get(SATELLITE)
    assert satellite is not None
    player = registry.async_get_or_create("media_player", "test", "player")
    for platform, option, has_player, is_heard in SATELLITES:
        with subtests.test(platform=platform, option=option, has_player=has_player):
            registry.entities.data[SATELLITE] = evolve(satellite, platform=platform)
            registry.async_update_entity(player.entity_id, device_id=satellite.device_id if has_player else None)

            assert fillers._is_heard_early(home, SATELLITE, fillers.FillerMode(option)) is is_heard


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (("find_pipeline", lambda _hass: None), "The voice of a satellite could not be looked up"),
        (("async_take_room", lambda _hass: None), "A filler failed"),
    ],
)
async def test_fault_of_the_filler_costs_nothing_else(
    *, ask: Ask, model_server: ModelServer, monkeypatch, caplog: pytest.LogCaptureFixture, fault: Any, message: str
) -> None:
    monkeypatch.setattr(fillers, *fault)
    be_slow(model_server)
    model_server.script(words("Blue."))

    assert await ask("which colour is the sky?") == "Blue."
    assert message in caplog.text


async def test_input_that_only_states_a_satellite_says_no_filler(
    home: HomeAssistant, heard: Heard, say: SayFn, model_server: ModelServer
) -> None:
    be_slow(model_server)
    model_server.script(words("Blue."))

    assert get_speech(await say("which colour is the sky?", satellite_id=SATELLITE)) == "Blue."
    assert heard.pieces == []
