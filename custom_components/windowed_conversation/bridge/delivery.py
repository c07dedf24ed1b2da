"""Delivery of an answer after its turn: announced on a satellite, sent to a person's phones, or only mentioned."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from functools import partial
import logging
import time

from homeassistant.components import persistent_notification
from homeassistant.components.assist_satellite.const import DOMAIN as SATELLITE_DOMAIN
from homeassistant.components.assist_satellite.entity import AssistSatelliteState
from homeassistant.components.assist_satellite.errors import SatelliteBusyError
from homeassistant.const import ATTR_ENTITY_ID, STATE_UNAVAILABLE, Platform
from homeassistant.core import Context, HomeAssistant, State
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import entity_registry as er

from ..const import DOMAIN
from .errors import log_fault
from .filler import VOIP_PLATFORM

_LOGGER = logging.getLogger(__name__)

# In seconds. A satellite is idle for a moment before it listens to the answer to a question.
_IDLE_SECONDS = 2.0
_RETRY_SECONDS = 0.25
# The longest wait for an idle satellite, in seconds.
_MAX_WAIT_SECONDS = 300.0

_PHONE_DOMAIN = "mobile_app"


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
    hass: HomeAssistant, satellite_id: str, text: str, context: Context, is_in_use: Callable[[], bool]
) -> bool:
    """Announce a text on a satellite as soon as it is idle. Return False if it cannot announce anything.

    `is_in_use` returns whether one of our turns uses the satellite: an announcement would cancel that turn, and the
    state of a satellite may be idle although a turn is running.
    """
    entry = er.async_get(hass).async_get(satellite_id)
    # an announcement would ring the phone
    if entry is None or entry.platform == VOIP_PLATFORM:
        return False
    ends_at = time.monotonic() + _MAX_WAIT_SECONDS
    while time.monotonic() < ends_at:
        state = hass.states.get(satellite_id)
        if state is None or state.state == STATE_UNAVAILABLE:
            return False
        if _is_idle(state) and not is_in_use():
            with suppress(SatelliteBusyError):
                return await _async_call_announce(hass, satellite_id, text, context)
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
