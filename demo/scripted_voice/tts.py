"""Text-to-speech that converts each chunk of an answer to tones as soon as it arrives."""

from collections.abc import AsyncGenerator
from typing import override

from homeassistant.components.tts.const import DATA_TTS_MANAGER
from homeassistant.components.tts.entity import TextToSpeechEntity, TTSAudioRequest, TTSAudioResponse
from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback

from .sound import WAV_HEADER, synthesize_text


async def async_setup_entry(hass: HomeAssistant, _entry: ConfigEntry, add: AddConfigEntryEntitiesCallback) -> None:
    """Add the entity."""
    # the satellite recognizes only sound that was made since the start
    hass.data[DATA_TTS_MANAGER].use_file_cache = False
    add([ScriptedTextToSpeech()])


class ScriptedTextToSpeech(TextToSpeechEntity):
    """Text-to-speech that accepts streamed text; Home Assistant detects this from the overridden method."""

    _attr_name = "Scripted voice"
    _attr_unique_id = "text_to_speech"
    _attr_supported_languages = ["en"]  # noqa: RUF012
    _attr_default_language = "en"

    @override
    async def async_stream_tts_audio(self, request: TTSAudioRequest) -> TTSAudioResponse:
        return TTSAudioResponse("wav", _generate_audio(request.message_gen))


async def _generate_audio(pieces: AsyncGenerator[str]) -> AsyncGenerator[bytes]:
    yield WAV_HEADER
    async for piece in pieces:
        yield synthesize_text(piece)
