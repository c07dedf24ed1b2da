"""The reminders of the household at run time: their list beside the store."""

from collections.abc import Callable
from functools import partial

from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN
from ..reminders.bridge.schedule import ReminderList
from .store import async_get_store

_REMINDERS_KEY: HassKey[ReminderList] = HassKey(f"{DOMAIN}_reminders")


@callback
def async_get_reminders(hass: HomeAssistant) -> ReminderList:
    """Return the reminders of the household. They are delivered once they are acquired."""
    if _REMINDERS_KEY not in hass.data:
        hass.data[_REMINDERS_KEY] = ReminderList(hass, partial(async_get_store, hass))
    return hass.data[_REMINDERS_KEY]


async def async_acquire_reminders(hass: HomeAssistant, is_in_use: Callable[[str], bool]) -> CALLBACK_TYPE:
    """Have reminders delivered at satellites that are not in use, until the returned function is called."""
    reminders, store = async_get_reminders(hass), async_get_store(hass)
    if store is not None and reminders.async_read not in store.opening_listeners:
        store.opening_listeners.append(reminders.async_read)
    return await reminders.async_acquire(is_in_use)
