"""A satellite: pressing its button sends the sentence to the preferred assistant. Its speaker is always unknown."""

from collections.abc import AsyncIterator
import time
from typing import override

from homeassistant.components.assist_pipeline import PipelineEvent, PipelineEventType
from homeassistant.components.assist_pipeline.pipeline import PipelineStage
from homeassistant.components.assist_satellite import (
    AssistSatelliteAnnouncement,
    AssistSatelliteConfiguration,
    AssistSatelliteEntity,
    AssistSatelliteEntityFeature,
)
from homeassistant.components.tts import ATTR_PREFERRED_FORMAT, async_get_stream
from homeassistant.config_entries import ConfigEntry
from homeassistant.core import Event, EventStateChangedData, HomeAssistant
from homeassistant.helpers.device_registry import DeviceInfo
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.helpers.event import async_track_state_change_event

from .sound import recognize_sound

_BUTTON_ENTITY_ID = "input_button.satellite"
# A tenth of a second of audio: the speech-to-text entity recognizes the sentence in any audio.
_AUDIO_SAMPLES = bytes(3200)
# In seconds. After a longer pause, another text begins.
_PAUSE_SECONDS = 1.0


async def async_setup_entry(_hass: HomeAssistant, entry: ConfigEntry, add: AddConfigEntryEntitiesCallback) -> None:
    """Add the entity."""
    add([ScriptedSatellite(entry)])


class ScriptedSatellite(AssistSatelliteEntity):
    """A satellite whose player reads the speech as soon as there is any.

    One attribute shows the answer, another one each text that was heard, with its time in seconds after the sentence.
    """

    _attr_has_entity_name = True
    _attr_name = None
    _attr_supported_features = AssistSatelliteEntityFeature.ANNOUNCE
    # the format of the voice, so that its sound is not converted and can be recognized
    _attr_tts_options = {ATTR_PREFERRED_FORMAT: "wav"}  # noqa: RUF012
    _attr_unique_id = "satellite"

    def __init__(self, entry: ConfigEntry) -> None:
        """Set the device information; the device belongs to no person."""
        self._attr_device_info = DeviceInfo(identifiers={(entry.domain, "satellite")}, name="Satellite")
        self._attr_extra_state_attributes = {}
        self._speech_token: str | None = None
        self._is_playing = False
        self._heard: list[dict[str, float | str]] = []
        self._asked_at = self._heard_at = 0.0

    @override
    async def async_added_to_hass(self) -> None:
        await super().async_added_to_hass()
        self.async_on_remove(async_track_state_change_event(self.hass, _BUTTON_ENTITY_ID, self._on_button_press))

    @override
    def async_get_configuration(self) -> AssistSatelliteConfiguration:
        return AssistSatelliteConfiguration(available_wake_words=[], active_wake_words=[], max_active_wake_words=0)

    @override
    async def async_set_configuration(self, config: AssistSatelliteConfiguration) -> None:
        """Ignore the configuration, because there are no wake words."""

    @override
    async def async_announce(self, announcement: AssistSatelliteAnnouncement) -> None:
        """Read the speech of an announcement, and show its text as the answer."""
        self._show_answer(announcement.message)
        if announcement.tts_token:
            await self._async_read_speech(announcement.tts_token)

    @override
    def on_pipeline_event(self, event: PipelineEvent) -> None:
        if event.type is PipelineEventType.INTENT_START:
            self._heard, self._asked_at = [], time.monotonic()
            self._attr_extra_state_attributes = {"heard": []}
        data = event.data or {}
        if event.type is PipelineEventType.RUN_START:
            self._speech_token, self._is_playing = data.get("tts_output", {}).get("token"), False
        if event.type is PipelineEventType.INTENT_END:
            speech = data["intent_output"]["response"]["speech"]
            self._show_answer(speech["plain"]["speech"])
        if data.get("tts_start_streaming") or event.type is PipelineEventType.TTS_END:
            self._play()
        if event.type is PipelineEventType.TTS_END:
            self.tts_response_finished()

    def _play(self) -> None:
        """Read the speech of the running pipeline, once."""
        if self._speech_token and not self._is_playing:
            self._is_playing = True
            self.hass.async_create_background_task(self._async_read_speech(self._speech_token), "play speech")

    async def _async_read_speech(self, token: str) -> None:
        if (stream := async_get_stream(self.hass, token)) is not None:
            async for chunk in stream.async_stream_result():
                if text := recognize_sound(chunk):
                    self._note_heard(text)

    def _note_heard(self, text: str) -> None:
        """Show a text that is heard. The words of an answer are one text, unless there is a pause between them."""
        now = time.monotonic()
        if self._heard and now - self._heard_at < _PAUSE_SECONDS:
            self._heard[-1] = {**self._heard[-1], "text": f"{self._heard[-1]['text']}{text}"}
        else:
            self._heard.append({"after": round(now - self._asked_at, 2), "text": text.lstrip()})
        self._heard_at = now
        self._attr_extra_state_attributes = {**self._attr_extra_state_attributes, "heard": [*self._heard]}
        self.async_write_ha_state()

    def _show_answer(self, text: str) -> None:
        self._attr_extra_state_attributes = {**self._attr_extra_state_attributes, "answer": text}

    async def _on_button_press(self, event: Event[EventStateChangedData]) -> None:
        old = event.data["old_state"]
        if old is not None and event.data["new_state"] is not None:
            await self.async_accept_pipeline_from_satellite(_generate_audio(), end_stage=PipelineStage.TTS)


async def _generate_audio() -> AsyncIterator[bytes]:
    yield _AUDIO_SAMPLES
