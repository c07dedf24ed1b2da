"""An account whose server is away when it is set up: looks whether the server is back, then sets the account up again.

What a set-up does, and which of its errors are to be waited for, is not decided here.
"""

from datetime import datetime, timedelta
import logging

from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.helpers.event import async_track_time_interval
from homeassistant.util.hass_dict import HassKey

from .agent import Account
from .const import DOMAIN
from .providers.errors import DeadlineExceeded, ProviderError, Unavailable
from .providers.events import Provider

_LOGGER = logging.getLogger(__name__)

# How often to look. A look that is answered at its very end, and a set-up after it, are still within a minute.
_INTERVAL = timedelta(seconds=20)

_LOOKS: HassKey[dict[str, CALLBACK_TYPE]] = HassKey(f"{DOMAIN}_looks")


@callback
def async_look_out(hass: HomeAssistant, entry: Account, provider: Provider) -> None:
    """Look for the server from now on; called where the set-up is about to end with `ConfigEntryNotReady`.

    Home Assistant would try again by itself after 5, 10, 20 and up to 600 seconds, and log a line each time: that is
    called off as soon as it is arranged, which is before the event loop comes to anything else.
    """
    async_stop_looking(hass, entry)
    hass.loop.call_soon(entry.async_cancel_retry_setup)
    if not entry.logger.isEnabledFor(logging.INFO):
        # else Home Assistant says it; at a start by the logger of its own, whose level is higher in most homes
        seconds = _INTERVAL.total_seconds()
        _LOGGER.warning("The server of %s cannot be reached; looking for it every %.0f seconds", entry.title, seconds)

    async def look() -> None:
        try:
            await provider.list_models()
        except Unavailable, DeadlineExceeded:
            return
        except ProviderError:
            # there is a server: what else is wrong, the set-up tells
            pass
        if _waits(entry):
            _LOGGER.info("The server of %s answers again", entry.title)
            async_stop_looking(hass, entry)
            hass.config_entries.async_schedule_reload(entry.entry_id)

    @callback
    def on_time(_now: datetime) -> None:
        if not _waits(entry):
            async_stop_looking(hass, entry)
            return
        hass.async_create_background_task(look(), f"look for the server of {entry.title}")

    stop = async_track_time_interval(hass, on_time, _INTERVAL, cancel_on_shutdown=True)
    hass.data.setdefault(_LOOKS, {})[entry.entry_id] = stop


@callback
def async_stop_looking(hass: HomeAssistant, entry: Account) -> None:
    """Look no more; nothing where nobody does."""
    stop = hass.data.get(_LOOKS, {}).pop(entry.entry_id, None)
    if stop is not None:
        stop()


def _waits(entry: Account) -> bool:
    return entry.state is ConfigEntryState.SETUP_RETRY
