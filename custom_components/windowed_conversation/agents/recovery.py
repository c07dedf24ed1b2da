"""An account whose server is away when it is set up: how long the server has to answer, and looking until it is back.

What a set-up does, and which of its errors are to be waited for, is not decided here.
"""

import asyncio
from datetime import datetime, timedelta
import logging

from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import CALLBACK_TYPE, CoreState, HomeAssistant, callback
from homeassistant.helpers.event import async_track_time_interval
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN
from ..providers.errors import DeadlineExceeded, ProviderError, Unavailable
from ..providers.events import ListedModel, Provider
from .agent import AccountConfigEntry

_LOGGER = logging.getLogger(__name__)

# How often to look. A look that is answered at its very end, and a set-up after it, are still within a minute.
_INTERVAL = timedelta(seconds=20)

# How long a server has for the whole list of its models, in seconds: as long as core's own integrations for OpenAI,
# Anthropic and Gemini give it.
_PATIENCE = 10.0
# While Home Assistant starts it waits for each account. A packet that is lost is sent again after one second and after
# three (RFC 6298): an answer after that is still heard, and a server that is silent costs the start half of the time.
_PATIENCE_AT_START = 5.0

_LOOKS: HassKey[dict[str, CALLBACK_TYPE]] = HassKey(f"{DOMAIN}_looks")


async def async_list_models(hass: HomeAssistant, provider: Provider) -> list[ListedModel]:
    """Return the models that a server lists; raises `ProviderError`.

    The SDKs' own time-outs are for each read: a server that sends a byte now and then would be waited for without end.
    """
    seconds = _PATIENCE if hass.state is CoreState.running else _PATIENCE_AT_START
    try:
        async with asyncio.timeout(seconds):
            return await provider.list_models()
    except TimeoutError as err:
        raise DeadlineExceeded("the models are not listed in time") from err


@callback
def async_look_out(hass: HomeAssistant, entry: AccountConfigEntry, provider: Provider) -> None:
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
            await async_list_models(hass, provider)
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
def async_stop_looking(hass: HomeAssistant, entry: AccountConfigEntry) -> None:
    """Look no more; nothing where nobody does."""
    stop = hass.data.get(_LOOKS, {}).pop(entry.entry_id, None)
    if stop is not None:
        stop()


def _waits(entry: AccountConfigEntry) -> bool:
    return entry.state is ConfigEntryState.SETUP_RETRY
