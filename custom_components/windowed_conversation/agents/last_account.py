"""Memory after the last account is removed: it stays for some days, unless somebody decides otherwise."""

import asyncio
from datetime import datetime
import sqlite3
import time
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HassJob, HomeAssistant, callback
from homeassistant.helpers.event import async_call_later
from homeassistant.util import dt as dt_util
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN
from ..store import cancel_deletion_of, delete_file, delete_overdue
from .issues import async_raise_or_clear_left
from .store import async_leave_store, async_store, store_path

_DAYS = 7
_SECONDS_PER_DAY = 86_400

_LEAVING: HassKey[asyncio.Lock] = HassKey(f"{DOMAIN}_leaving")


@callback
def async_leaving(hass: HomeAssistant) -> asyncio.Lock:
    """Return the lock that is held until the store is closed after the last account was removed."""
    return hass.data.setdefault(_LEAVING, asyncio.Lock())


async def async_leave(hass: HomeAssistant, account: ConfigEntry[Any]) -> None:
    """Keep memory for some days after the last account was removed. If it has nothing, delete the file at once."""
    until = time.time() + _DAYS * _SECONDS_PER_DAY
    async with async_leaving(hass):
        if not await async_leave_store(hass, account, until):
            await hass.async_add_executor_job(delete_file, store_path(hass))
            return
    async_raise_or_clear_left(hass, dt_util.as_local(dt_util.utc_from_timestamp(until)).date())
    _async_delete_at(hass, until)


@callback
def _async_delete_at(hass: HomeAssistant, until: float) -> None:
    async def delete(_now: datetime) -> None:
        if (now := time.time()) < until:
            # the clock was set back
            _async_delete_at(hass, until)
        elif async_store(hass) is None and await hass.async_add_executor_job(delete_overdue, store_path(hass), now):
            async_raise_or_clear_left(hass, None)

    async_call_later(hass, until - time.time(), HassJob(delete, cancel_on_shutdown=True))


async def async_delete_left(hass: HomeAssistant) -> bool:
    """Delete the file that the last account has left, unless it is in use again. Return whether nothing is left."""
    return async_store(hass) is None and await hass.async_add_executor_job(delete_file, store_path(hass))


async def async_keep_left(hass: HomeAssistant) -> bool:
    """Keep the file that the last account has left for good. Return whether that was possible."""
    try:
        await hass.async_add_executor_job(cancel_deletion_of, store_path(hass))
    except sqlite3.Error:
        return False
    return True
