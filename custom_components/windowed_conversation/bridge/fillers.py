"""Fillers: what a satellite says before an answer that takes long, if it plays speech while the rest is written."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
import logging
import re

from homeassistant.components.conversation import ConversationInput
from homeassistant.components.tts.const import DATA_COMPONENT as TTS_COMPONENT
from homeassistant.const import Platform
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er

from ..turn.tool_names import resolve_tool_name
from .chat_log import ChatLogReply
from .delivery import VOIP_PLATFORM, async_take_room
from .errors import SENTENCE_ENDS, async_get_spoken_text, log_and_suppress_faults
from .persons import find_pipeline
from .tools import read_annotations

_LOGGER = logging.getLogger(__name__)

# In seconds after the input: a sound, a sentence, and a sentence on what is being done. A voice takes some tenths of a
# second, so the sound is heard after a second and a half.
FILLER_SECONDS = (1.3, 4.0, 12.0)

# Text-to-speech starts after more than 60 characters, and speaks a sentence at once if a blank line follows. Spaces
# count, and are not spoken. See `homeassistant.components.assist_pipeline.default_pipeline.STREAM_RESPONSE_CHARS`.
_MIN_CHARS = 61
_ENDING = "\n\n"
_MAX_SENTENCE_CHARS = 200

# The subjects of look-ups that have a sentence of their own, by words in the names of tools.
_SUBJECTS = {
    "forecast": {"weather", "forecast"},
    "web": {"web", "internet", "google", "wikipedia", "news"},
    "calendar": {"calendar"},
}
# A look-up, whatever its tool says: nobody changes the weather or the web.
_UNCHANGEABLE_SUBJECTS = ("forecast", "web")
_WORD_PATTERN = re.compile("[A-Z]?[a-z]+")

# The translation keys of all fillers.
FILLER_KEYS = (
    "filler_sound",
    "filler",
    "filler_check",
    "filler_still",
    "other_question",
    *[f"filler_still_{subject}" for subject in ("check", *_SUBJECTS)],
)

_ESPHOME_PLATFORM = "esphome"


class FillerMode(StrEnum):
    """The satellites that speak fillers."""

    OFF = "off"
    ON = "on"
    ON_WITH_ESPHOME = "on_with_esphome"


class Fillers:
    """Speaks the fillers of one turn, if its satellite plays speech while the rest is still being written.

    They are in no window, request, memory, record, chat log or response: only the listener of the chat log gets them.
    `own_sentence` is the sentence of the user's own option, or an empty text.
    """

    def __init__(
        self,
        hass: HomeAssistant,
        user_input: ConversationInput,
        reply: ChatLogReply,
        mode: FillerMode,
        own_sentence: str,
    ) -> None:
        self._hass = hass
        self._satellite_id = user_input.satellite_id or ""
        self._language = user_input.language
        self._reply = reply
        self._own_sentence = " ".join(own_sentence.split())[:_MAX_SENTENCE_CHARS]
        self.are_heard = False
        if mode is not FillerMode.OFF and self._satellite_id and reply.has_listener:
            # a fault costs nothing but the fillers
            with log_and_suppress_faults(_LOGGER, "The voice of a satellite could not be looked up"):
                self.are_heard = _is_heard_early(hass, self._satellite_id, mode)

    @contextmanager
    def waiting(self, received_at: float) -> Iterator[None]:
        """Speak the fillers, or the beginning of the answer, until the context ends.

        `received_at` is the time of the input on the clock of the event loop.
        """
        if not self.are_heard:
            yield
            return
        task = self._hass.async_create_background_task(self._async_speak(received_at), "fillers", eager_start=False)
        try:
            yield
        finally:
            task.cancel()

    async def _async_speak(self, received_at: float) -> None:
        with log_and_suppress_faults(_LOGGER, "A filler failed in an unexpected way"):
            for number, seconds in enumerate(FILLER_SECONDS):
                await asyncio.sleep(received_at + seconds - self._hass.loop.time())
                if self._reply.has_begun:
                    self._speak_beginning()
                elif async_take_room(self._hass, self._satellite_id):
                    await self._async_speak_filler(number)

    async def _async_speak_filler(self, number: int) -> None:
        if self._reply.waits_for_turn:
            if number > 0:
                return
            key = "other_question"
        else:
            subject = self._find_subject()
            sentence = "filler_check" if subject else "filler"
            key = ("filler_sound", sentence, f"filler_still_{subject}".rstrip("_"))[number]
        text = await async_get_spoken_text(self._hass, self._language, "common", key)
        if number == 1 and self._own_sentence:
            text = self._own_sentence
        if not self._reply.has_begun:
            # once speech has begun, a blank line is enough
            width = 0 if self._reply.is_being_spoken else _MIN_CHARS - len(_ENDING)
            self._reply.speak(f"{text.ljust(width)}{_ENDING}")

    def _find_subject(self) -> str:
        """Return the subject that the last tool looks up, "check" for another look-up, or an empty text for none."""
        api, name = self._reply.chat_log.llm_api, self._reply.last_tool_name
        offered = {tool.name: tool for tool in api.tools} if api else {}
        tool = offered.get(resolve_tool_name(name, offered))
        words = {word.lower() for word in _WORD_PATTERN.findall(name)}
        subject = next((subject for subject, signs in _SUBJECTS.items() if signs & words), "check")
        changes_nothing = tool is not None and read_annotations(tool).read_only
        return subject if changes_nothing or subject in _UNCHANGEABLE_SUBJECTS else ""

    def _speak_beginning(self) -> None:
        """Let text-to-speech start with whole sentences that are too short for it, such as those before a search."""
        text = self._reply.text.rstrip()
        if len(text) < _MIN_CHARS and text.endswith(SENTENCE_ENDS) and not self._reply.last_tool_name:
            self._reply.speak(f"{_ENDING.rjust(_MIN_CHARS - len(text))}", is_new=False)


def _is_heard_early(hass: HomeAssistant, satellite_id: str, mode: FillerMode) -> bool:
    """Return whether a satellite plays speech before the answer is complete, and may get a filler."""
    entry = er.async_get(hass).async_get(satellite_id)
    pipeline = find_pipeline(hass, satellite_id)
    if entry is None or pipeline is None or entry.platform == VOIP_PLATFORM:
        return False
    if entry.platform == _ESPHOME_PLATFORM:
        # one without a media player plays speech only when it is complete
        parts = er.async_entries_for_device(er.async_get(hass), entry.device_id) if entry.device_id else ()
        has_player = any(each.domain == Platform.MEDIA_PLAYER for each in parts)
        if mode is not FillerMode.ON_WITH_ESPHOME or not has_player:
            return False
    engines = hass.data.get(TTS_COMPONENT)
    engine = engines.get_entity(pipeline.tts_engine) if engines and pipeline.tts_engine else None
    return engine is not None and engine.async_supports_streaming_input()
