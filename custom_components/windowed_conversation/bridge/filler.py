"""The filler: one short sentence with which a voice satellite opens an answer that takes long."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
import logging

from homeassistant.components.assist_pipeline import OPTION_PREFERRED
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline, async_get_pipelines
from homeassistant.components.assist_satellite.const import DATA_COMPONENT
from homeassistant.components.conversation import ConversationInput
from homeassistant.components.tts.const import DATA_COMPONENT as TTS_COMPONENT
from homeassistant.const import Platform
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er

from .chat_log import ChatLogReply
from .errors import SENTENCE_ENDS, async_get_spoken_text, log_fault

_LOGGER = logging.getLogger(__name__)

# In seconds after the input. A person who hears nothing for longer asks again.
FILLER_SECONDS = 4.0

# Text-to-speech starts after more than 60 characters (`STREAM_RESPONSE_CHARS` of `assist_pipeline`), and speaks a
# sentence at once if a blank line follows. Spaces count, and are not spoken.
_MIN_CHARS = 61
_ENDING = "\n\n"
_MAX_SENTENCE_CHARS = 200

# The translation keys of the sentences before and after a tool was called.
FILLER_KEYS = ("filler", "filler_tool")

# The satellites of this integration ring a phone, and play nothing before the answer is complete.
VOIP_PLATFORM = "voip"
_ESPHOME_PLATFORM = "esphome"


class FillerMode(StrEnum):
    """The satellites that speak a filler; any other value of the option is the sentence to speak."""

    OFF = "off"
    ON = "on"
    ON_WITH_ESPHOME = "on_with_esphome"


class Filler:
    """Speaks the filler of one turn, if its satellite plays speech while the rest is still being written.

    The sentence is in no window, request, memory, record, chat log or response: only the listener of the chat log gets
    it. `option` is a `FillerMode` or a sentence of the user's.
    """

    def __init__(self, hass: HomeAssistant, user_input: ConversationInput, reply: ChatLogReply, option: str) -> None:
        self._hass = hass
        self._input = user_input
        self._reply = reply
        self._option = option

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Speak the filler after this time, or the beginning of the answer, unless the context has ended."""
        if self._option == FillerMode.OFF or self._input.satellite_id is None or not self._reply.has_listener:
            yield
            return
        task = self._hass.async_create_background_task(self._async_speak_safely(seconds), "filler", eager_start=False)
        try:
            yield
        finally:
            task.cancel()

    async def _async_speak_safely(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        try:
            await self._async_speak()
        except Exception as err:  # noqa: BLE001 - a fault costs nothing but the filler
            log_fault(_LOGGER, "A filler failed in an unexpected way", err)

    async def _async_speak(self) -> None:
        if not _is_heard_early(self._hass, self._input.satellite_id or "", self._option):
            return
        if self._reply.has_begun:
            self._speak_beginning()
            return
        key = FILLER_KEYS[self._reply.has_called_tools]
        sentence = await async_get_spoken_text(self._hass, self._input.language, "common", key)
        if self._option not in set(FillerMode):
            sentence = " ".join(self._option.split())[:_MAX_SENTENCE_CHARS]
        if not self._reply.has_begun:
            self._reply.speak(f"{sentence.ljust(_MIN_CHARS - len(_ENDING))}{_ENDING}")

    def _speak_beginning(self) -> None:
        """Let text-to-speech start with whole sentences that are too short for it, such as those before a search."""
        text = self._reply.text.rstrip()
        if len(text) < _MIN_CHARS and text.endswith(SENTENCE_ENDS) and not self._reply.has_called_tools:
            self._reply.speak(f"{_ENDING.rjust(_MIN_CHARS - len(text))}", is_new=False)


def _is_heard_early(hass: HomeAssistant, satellite_id: str, option: str) -> bool:
    """Return whether a satellite plays speech before the answer is complete, and may get a filler."""
    entry = er.async_get(hass).async_get(satellite_id)
    component = hass.data.get(DATA_COMPONENT)
    satellite = component.get_entity(satellite_id) if component else None
    if entry is None or satellite is None or entry.platform == VOIP_PLATFORM:
        return False
    if entry.platform == _ESPHOME_PLATFORM and not (
        option == FillerMode.ON_WITH_ESPHOME and _has_media_player(hass, entry)
    ):
        return False
    state = hass.states.get(satellite.pipeline_entity_id) if satellite.pipeline_entity_id else None
    named = [each for each in async_get_pipelines(hass) if state is not None and each.name == state.state]
    pipeline = named[0] if named and state and state.state != OPTION_PREFERRED else async_get_pipeline(hass)
    engines = hass.data.get(TTS_COMPONENT)
    engine = engines.get_entity(pipeline.tts_engine) if engines and pipeline.tts_engine else None
    return engine is not None and engine.async_supports_streaming_input()


def _has_media_player(hass: HomeAssistant, entry: er.RegistryEntry) -> bool:
    """Return whether the device of a satellite has a media player; others play speech only when it is complete."""
    if entry.device_id is None:
        return False
    entries = er.async_entries_for_device(er.async_get(hass), entry.device_id)
    return any(each.domain == Platform.MEDIA_PLAYER for each in entries)
