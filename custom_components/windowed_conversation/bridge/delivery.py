"""Two ways to deal with an answer that takes long: a filler before it, or its delivery after its turn.

A delivered answer is announced on a satellite, sent to a person's phones, or only mentioned.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
import logging
import time

from homeassistant.components import persistent_notification
from homeassistant.components.assist_pipeline import OPTION_PREFERRED
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline, async_get_pipelines
from homeassistant.components.assist_satellite.const import DATA_COMPONENT, DOMAIN as SATELLITE_DOMAIN
from homeassistant.components.assist_satellite.entity import AssistSatelliteState
from homeassistant.components.assist_satellite.errors import SatelliteBusyError
from homeassistant.components.conversation import ConversationInput
from homeassistant.components.tts.const import DATA_COMPONENT as TTS_COMPONENT
from homeassistant.const import ATTR_ENTITY_ID, STATE_UNAVAILABLE, Platform
from homeassistant.core import Context, HomeAssistant, State
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import entity_registry as er

from ..const import DOMAIN
from .chat_log import ChatLogReply
from .errors import SENTENCE_ENDS, async_get_spoken_text, log_fault

_LOGGER = logging.getLogger(__name__)

# In seconds after the input. A person who hears nothing for longer asks again.
FILLER_SECONDS = 4.0

# Text-to-speech starts after more than 60 characters, and speaks a sentence at once if a blank line follows. Spaces
# count, and are not spoken. See `homeassistant.components.assist_pipeline.default_pipeline.STREAM_RESPONSE_CHARS`.
_MIN_CHARS = 61
_ENDING = "\n\n"
_MAX_SENTENCE_CHARS = 200

# The translation keys of the sentences before and after a tool was called.
FILLER_KEYS = ("filler", "filler_tool")

# The satellites of this integration ring a phone, and play nothing before the answer is complete.
_VOIP_PLATFORM = "voip"
_ESPHOME_PLATFORM = "esphome"

# In seconds. A satellite is idle for a moment before it listens to the answer to a question.
_IDLE_SECONDS = 2.0
_RETRY_SECONDS = 0.25
# The longest wait for an idle satellite, in seconds.
_MAX_WAIT_SECONDS = 300.0

_PHONE_DOMAIN = "mobile_app"


class FillerMode(StrEnum):
    """The satellites that speak a filler."""

    OFF = "off"
    ON = "on"
    ON_WITH_ESPHOME = "on_with_esphome"


class Filler:
    """Speaks the filler of one turn, if its satellite plays speech while the rest is still being written.

    The sentence is in no window, request, memory, record, chat log or response: only the listener of the chat log gets
    it. `own_sentence` is the sentence of the user's own option, or an empty text.
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
        self._input = user_input
        self._reply = reply
        self._mode = mode
        self._own_sentence = " ".join(own_sentence.split())[:_MAX_SENTENCE_CHARS]

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Speak the filler after this time, or the beginning of the answer, unless the context has ended."""
        if self._mode is FillerMode.OFF or self._input.satellite_id is None or not self._reply.has_listener:
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
        if not _is_heard_early(self._hass, self._input.satellite_id or "", self._mode):
            return
        if self._reply.has_begun:
            self._speak_beginning()
            return
        key = FILLER_KEYS[self._reply.has_called_tools]
        sentence = self._own_sentence or await async_get_spoken_text(self._hass, self._input.language, "common", key)
        if not self._reply.has_begun:
            self._reply.speak(f"{sentence.ljust(_MIN_CHARS - len(_ENDING))}{_ENDING}")

    def _speak_beginning(self) -> None:
        """Let text-to-speech start with whole sentences that are too short for it, such as those before a search."""
        text = self._reply.text.rstrip()
        if len(text) < _MIN_CHARS and text.endswith(SENTENCE_ENDS) and not self._reply.has_called_tools:
            self._reply.speak(f"{_ENDING.rjust(_MIN_CHARS - len(text))}", is_new=False)


def _is_heard_early(hass: HomeAssistant, satellite_id: str, mode: FillerMode) -> bool:
    """Return whether a satellite plays speech before the answer is complete, and may get a filler."""
    entry = er.async_get(hass).async_get(satellite_id)
    component = hass.data.get(DATA_COMPONENT)
    satellite = component.get_entity(satellite_id) if component else None
    if entry is None or satellite is None or entry.platform == _VOIP_PLATFORM:
        return False
    if entry.platform == _ESPHOME_PLATFORM and not (
        mode is FillerMode.ON_WITH_ESPHOME and _has_media_player(hass, entry)
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


class Delivery(StrEnum):
    """The outcome of a promised answer.

    A `READY` answer was only mentioned in a notification, because everybody in the home sees it. An `ENDED` one was not
    wanted any more, and an `INTERRUPTED` one was lost to a reload or a restart.
    """

    ANNOUNCED = "announced"
    NOTIFIED = "notified"
    READY = "ready"
    ENDED = "ended"
    INTERRUPTED = "interrupted"


async def async_announce(
    hass: HomeAssistant, registry_id: str, text: str, context: Context, is_in_use: Callable[[str], bool]
) -> bool:
    """Announce a text on a satellite as soon as it is idle. Return False if it cannot announce anything.

    The satellite is given by its ID in the entity registry, because it may be renamed while its turn runs. `is_in_use`
    returns whether one of our turns uses the satellite with an entity ID: an announcement would cancel that turn, and
    the state of a satellite may be idle although a turn is running.
    """
    ends_at = time.monotonic() + _MAX_WAIT_SECONDS
    while time.monotonic() < ends_at:
        entry = er.async_get(hass).async_get(registry_id)
        # an announcement would ring the phone
        if entry is None or entry.platform == _VOIP_PLATFORM:
            return False
        state = hass.states.get(entry.entity_id)
        if state is None or state.state == STATE_UNAVAILABLE:
            return False
        if _is_idle(state) and not is_in_use(entry.entity_id):
            with suppress(SatelliteBusyError):
                return await _async_call_announce(hass, entry.entity_id, text, context)
        await asyncio.sleep(_RETRY_SECONDS)
    return False


def _is_idle(state: State) -> bool:
    return state.state == AssistSatelliteState.IDLE and time.time() - state.last_changed_timestamp >= _IDLE_SECONDS


async def _async_call_announce(hass: HomeAssistant, satellite_id: str, text: str, context: Context) -> bool:
    """Announce a text now. Return whether that was possible. Raises `SatelliteBusyError`."""
    # The context has no user: the satellite of a person who may only read would refuse to speak.
    data, target = {"message": text, "preannounce": True}, {ATTR_ENTITY_ID: satellite_id}
    call = partial(hass.services.async_call, SATELLITE_DOMAIN, "announce", data, blocking=True, target=target)
    try:
        await call(context=Context(parent_id=context.id))
    except SatelliteBusyError:
        raise
    except (HomeAssistantError, TimeoutError) as err:
        _LOGGER.debug("%s cannot announce: %s", satellite_id, type(err).__name__)
        return False
    except Exception as err:  # noqa: BLE001 - the answer is delivered in another way
        log_fault(_LOGGER, "An announcement failed in an unexpected way", err)
        return False
    return True


async def async_notify(hass: HomeAssistant, person: str | None, title: str, text: str, context: Context) -> bool:
    """Send a text to all phones of a person, given as the user id. Return whether a phone has got it."""
    if person is None:
        return False
    registry, sent = er.async_get(hass), False
    for phone in hass.config_entries.async_entries(_PHONE_DOMAIN):
        if phone.data.get("user_id") != person:
            continue
        for entry in er.async_entries_for_config_entry(registry, phone.entry_id):
            if entry.domain == Platform.NOTIFY:
                sent |= await _async_send(hass, entry.entity_id, {"title": title, "message": text}, context)
    return sent


async def _async_send(hass: HomeAssistant, entity_id: str, data: dict[str, str], context: Context) -> bool:
    target, parent = {ATTR_ENTITY_ID: entity_id}, Context(parent_id=context.id)
    try:
        await hass.services.async_call(
            Platform.NOTIFY, "send_message", data, blocking=True, context=parent, target=target
        )
    except Exception as err:  # noqa: BLE001 - a phone may be out of reach, with any error of its connection
        _LOGGER.debug("%s cannot be reached: %s", entity_id, type(err).__name__)
        return False
    return True


def async_mention(hass: HomeAssistant, title: str, text: str, turn_id: str) -> None:
    """Show everybody in the home a notification with this text, which must say nothing private."""
    persistent_notification.async_create(hass, text, title, f"{DOMAIN}_{turn_id}")
