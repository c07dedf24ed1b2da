"""A turn by voice, as a satellite takes it: a spoken sentence, the complete pipeline, and the audio of the answer.

The scripted_voice integration recognizes speech and speaks.
"""

import asyncio
from collections.abc import Callable
import time

from demo.client import Client, Json
from demo.turns import Turn, TurnEventCallback, apply_event

SENTENCE_ENTITY_ID = "input_text.spoken_sentence"
SATELLITE_ENTITY_ID = "assist_satellite.satellite"
BUTTON_ENTITY_ID = "input_button.satellite"
_POLL_SECONDS = 0.1
_SAMPLE_RATE = 16_000
# A tenth of a second of audio: the speech-to-text entity recognizes the sentence in any audio.
_AUDIO_SAMPLES = bytes(_SAMPLE_RATE // 10 * 2)


async def take_voice_turn(
    client: Client,
    text: str,
    *,
    pipeline: str | None = None,
    speech: float = 0.0,
    watch: TurnEventCallback = lambda _kind, _value: None,
) -> Turn:
    """Speak `text` to the pipeline, which takes `speech` seconds, and return once the answer was spoken.

    `watch` is called as by `turns.take_turn`, and also with ("audio", bytes) as audio of the answer arrives.
    """
    await client.call_action("input_text.set_value", SENTENCE_ENTITY_ID, value=text)
    turn = Turn(text)
    fields = {"start_stage": "stt", "end_stage": "tts", "input": {"sample_rate": _SAMPLE_RATE}}
    events = client.iter_events("assist_pipeline/run", **fields, **({"pipeline": pipeline} if pipeline else {}))
    began = time.perf_counter()
    listening = None
    try:
        async for event in events:
            if event["type"] == "run-start":
                listening = asyncio.create_task(_receive_audio(client, event["data"]["tts_output"]["url"], watch))
                await _send_speech(client, event["data"]["runner_data"]["stt_binary_handler_id"], speech)
            apply_event(turn, event, time.perf_counter() - began, watch)
            if event["type"] == "tts-end" and listening:
                await listening
            if event["type"] == "run-end":
                break
    finally:
        await events.aclose()
        if listening:
            listening.cancel()
    return turn


async def ask_satellite(
    client: Client, text: str, *, is_done: Callable[[list[Json]], bool], watch: Callable[[Json], None]
) -> list[Json]:
    """Speak `text` to the satellite. Return its `heard` attribute once it is idle and `is_done` is true of that.

    `watch` is called with each text that was heard.
    """
    await client.call_action("input_text.set_value", SENTENCE_ENTITY_ID, value=text)
    before = (await client.get(f"/api/states/{SATELLITE_ENTITY_ID}"))["last_changed"]
    await client.call_action("input_button.press", BUTTON_ENTITY_ID)
    watched = 0
    while True:
        state = await client.get(f"/api/states/{SATELLITE_ENTITY_ID}")
        heard: list[Json] = state["attributes"].get("heard", []) if state["last_changed"] > before else []
        ended = state["state"] == "idle" and is_done(heard)
        # the last text may not be complete yet
        for each in heard[watched:] if ended else heard[watched:-1]:
            watch(each)
            watched += 1
        if ended:
            return heard
        await asyncio.sleep(_POLL_SECONDS)


async def _send_speech(client: Client, handler_id: int, seconds: float) -> None:
    await client.send_audio(handler_id, _AUDIO_SAMPLES)
    await asyncio.sleep(seconds)
    await client.send_audio(handler_id, b"")


async def _receive_audio(client: Client, path: str, watch: TurnEventCallback) -> None:
    async for chunk in client.iter_audio(path):
        watch("audio", chunk)
