"""A Home Assistant in this process, with its own folder, ready to set up integrations, and without a web server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
import tempfile

from homeassistant import auth, bootstrap, loader
from homeassistant.config_entries import ConfigEntries
from homeassistant.core import CoreState, HomeAssistant


@asynccontextmanager
async def run_home_assistant() -> AsyncIterator[HomeAssistant]:
    """Yield an empty, running Home Assistant, and stop it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        hass = HomeAssistant(folder)
        loader.async_setup(hass)
        hass.config.skip_pip = True
        hass.config_entries = ConfigEntries(hass, {})
        await bootstrap.async_load_base_functionality(hass)
        hass.auth = await auth.auth_manager_from_config(hass, [], [])
        hass.set_state(CoreState.running)
        try:
            yield hass
        finally:
            await hass.async_stop(force=True)
