"""Speech-to-text that returns the state of `input_text.spoken_sentence` for any audio."""

from collections.abc import AsyncIterable
from typing import override

from homeassistant.components.stt import (
    AudioBitRates,
    AudioChannels,
    AudioCodecs,
    AudioFormats,
    AudioSampleRates,
    SpeechMetadata,
    SpeechResult,
    SpeechResultState,
    SpeechToTextEntity,
)
from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback

_SENTENCE_ENTITY_ID = "input_text.spoken_sentence"


async def async_setup_entry(_hass: HomeAssistant, _entry: ConfigEntry, add: AddConfigEntryEntitiesCallback) -> None:
    """Add the entity."""
    add([ScriptedSpeechToText()])


class ScriptedSpeechToText(SpeechToTextEntity):
    """Speech-to-text that reads the audio to its end, as Assist sends it, and then returns the sentence."""

    _attr_name = "Scripted voice"
    _attr_unique_id = "speech_to_text"

    @property
    @override
    def supported_languages(self) -> list[str]:
        return ["en"]

    @property
    @override
    def supported_formats(self) -> list[AudioFormats]:
        return [AudioFormats.WAV]

    @property
    @override
    def supported_codecs(self) -> list[AudioCodecs]:
        return [AudioCodecs.PCM]

    @property
    @override
    def supported_bit_rates(self) -> list[AudioBitRates]:
        return [AudioBitRates.BITRATE_16]

    @property
    @override
    def supported_sample_rates(self) -> list[AudioSampleRates]:
        return [AudioSampleRates.SAMPLERATE_16000]

    @property
    @override
    def supported_channels(self) -> list[AudioChannels]:
        return [AudioChannels.CHANNEL_MONO]

    @override
    async def async_process_audio_stream(self, metadata: SpeechMetadata, stream: AsyncIterable[bytes]) -> SpeechResult:
        async for _ in stream:
            pass
        sentence = self.hass.states.get(_SENTENCE_ENTITY_ID)
        return SpeechResult(sentence.state if sentence else None, SpeechResultState.SUCCESS)
