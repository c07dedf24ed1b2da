"""Delivery of an answer after its turn: announced on a satellite, sent to a person's phones, or only mentioned.

In a room, which is an area with its satellites, one thing is said at a time.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
import logging
import math
import time

from homeassistant.components import persistent_notification
from homeassistant.components.assist_satellite.const import (
    DOMAIN as SATELLITE_DOMAIN,
    AssistSatelliteEntityFeature,
)
from homeassistant.components.assist_satellite.entity import AssistSatelliteState
from homeassistant.components.assist_satellite.errors import SatelliteBusyError
from homeassistant.const import ATTR_ENTITY_ID, ATTR_SUPPORTED_FEATURES, STATE_UNAVAILABLE, Platform
from homeassistant.core import Context, HomeAssistant, State, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import entity_registry as er
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN
from .errors import SENTENCE_ENDS, async_get_spoken_text, log_fault

_LOGGER = logging.getLogger(__name__)

# The satellites of this integration ring a phone, and play nothing before the answer is complete.
VOIP_PLATFORM = "voip"

# In seconds. A satellite is idle for a moment before it listens to the answer to a question.
_IDLE_SECONDS = 2.0
_RETRY_SECONDS = 0.25
# The longest wait for an idle satellite, in seconds.
_MAX_WAIT_SECONDS = 300.0
# The longest time that a filler takes to say, in seconds.
_FILLER_SPEECH_SECONDS = 3.0
# The longest question that an answer repeats, in characters.
_MAX_QUESTION_CHARS = 60

_PHONE_DOMAIN = "mobile_app"

# Until when our fillers and announcements speak, on the event loop's clock, by the entity IDs of their satellites.
_SPEECH_ENDS_KEY: HassKey[dict[str, float]] = HassKey(f"{DOMAIN}_speech_ends")


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


@callback
def async_can_announce(hass: HomeAssistant, satellite_id: str) -> bool:
    """Return whether a satellite can announce an answer later. A phone would ring."""
    entry, state = er.async_get(hass).async_get(satellite_id), hass.states.get(satellite_id)
    if entry is None or entry.platform == VOIP_PLATFORM or state is None or state.state == STATE_UNAVAILABLE:
        return False
    return bool(state.attributes.get(ATTR_SUPPORTED_FEATURES, 0) & AssistSatelliteEntityFeature.ANNOUNCE)


@callback
def async_take_room(hass: HomeAssistant, satellite_id: str) -> bool:
    """Reserve the room of a satellite for a filler. Return whether the satellite may speak the filler now."""
    ends, now = hass.data.setdefault(_SPEECH_ENDS_KEY, {}), hass.loop.time()
    others = _list_room(hass, satellite_id) - {satellite_id}
    if ends.get(satellite_id) == math.inf or any(
        ends.get(each, 0.0) > now or hass.states.is_state(each, AssistSatelliteState.RESPONDING) for each in others
    ):
        return False
    ends[satellite_id] = now + _FILLER_SPEECH_SECONDS
    return True


def _list_room(hass: HomeAssistant, satellite_id: str) -> set[str]:
    """Return the entity IDs of the satellites in the area of a satellite, including its own."""
    registry = er.async_get(hass)

    def find_area(entity_id: str) -> str | None:
        entry = registry.async_get(entity_id)
        return er.async_get_effective_area_id(hass, entry) if entry else None

    area_id, satellites = find_area(satellite_id), hass.states.async_entity_ids(SATELLITE_DOMAIN)
    return {satellite_id, *[each for each in satellites if area_id and find_area(each) == area_id]}


async def async_format_late_answer(
    hass: HomeAssistant, language: str, question: str, answer: str, *, is_error: bool
) -> str:
    """Return an answer with the beginning of its question, which its listener may have forgotten by then."""
    question = " ".join(question.split()).rstrip("".join(SENTENCE_ENDS))
    if len(question) > _MAX_QUESTION_CHARS:
        beginning = question[:_MAX_QUESTION_CHARS]
        question = f"{beginning.rpartition(' ')[0] or beginning}…"
    text = await async_get_spoken_text(hass, language, "common", "late_error" if is_error else "late_answer")
    return text.format(question=question, answer=answer)


async def async_announce(
    hass: HomeAssistant, registry_id: str, text: str, context: Context, is_in_use: Callable[[str], bool]
) -> bool:
    """Announce a text on a satellite once its room is quiet, within five minutes. Return whether that succeeded.

    The satellite is given by its ID in the entity registry, because it may be renamed while its turn runs. `is_in_use`
    returns whether one of our turns uses the satellite with an entity ID: an announcement would cancel that turn, and
    the state of a satellite may be idle although a turn is running.
    """
    ends_at, speech_ends = time.monotonic() + _MAX_WAIT_SECONDS, hass.data.setdefault(_SPEECH_ENDS_KEY, {})
    while time.monotonic() < ends_at:
        entry = er.async_get(hass).async_get(registry_id)
        if entry is None or not async_can_announce(hass, entry.entity_id):
            return False
        room, now = _list_room(hass, entry.entity_id), hass.loop.time()
        if not any(
            is_in_use(each) or speech_ends.get(each, 0.0) > now or _is_busy(hass.states.get(each)) for each in room
        ):
            speech_ends[entry.entity_id] = math.inf
            try:
                with suppress(SatelliteBusyError):
                    return await _async_call_announce(hass, entry.entity_id, text, context)
            finally:
                del speech_ends[entry.entity_id]
        await asyncio.sleep(_RETRY_SECONDS)
    return False


def _is_busy(state: State | None) -> bool:
    """Return whether a satellite is, or was a moment ago, in a conversation."""
    if state is None or state.state == STATE_UNAVAILABLE:
        return False
    return state.state != AssistSatelliteState.IDLE or time.time() - state.last_changed_timestamp < _IDLE_SECONDS


async def _async_call_announce(hass: HomeAssistant, satellite_id: str, text: str, context: Context) -> bool:
    """Announce a text now. Return whether that was possible. Raises `SatelliteBusyError`."""
    try:
        # The context has no user: the satellite of a person who may only read would refuse to speak.
        await hass.services.async_call(
            SATELLITE_DOMAIN,
            "announce",
            {"message": text, "preannounce": True},
            blocking=True,
            context=Context(parent_id=context.id),
            target={ATTR_ENTITY_ID: satellite_id},
        )
    except SatelliteBusyError:
        raise
    except Exception as err:  # noqa: BLE001 - the answer is delivered in another way
        if isinstance(err, HomeAssistantError | TimeoutError):
            _LOGGER.debug("%s cannot announce: %s", satellite_id, type(err).__name__)
        else:
            log_fault(_LOGGER, "An announcement failed in an unexpected way", err)
        return False
    return True


async def async_notify(hass: HomeAssistant, person: str | None, title: str, text: str, context: Context) -> bool:
    """Send a text to all phones of a person, given as the user id. Return whether it reached a phone."""
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
