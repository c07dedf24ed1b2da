"""A voice for the demo that needs no model: it hears a sentence that is typed elsewhere, and answers in tones.

`scripted_voice:` in configuration.yaml adds it. For the frontend, HTTP and Assist it is a voice like any other.
"""

from homeassistant.config_entries import SOURCE_IMPORT, ConfigEntry
from homeassistant.const import Platform
from homeassistant.core import HomeAssistant
from homeassistant.helpers import config_validation as cv
from homeassistant.helpers.typing import ConfigType

DOMAIN = "scripted_voice"
CONFIG_SCHEMA = cv.empty_config_schema(DOMAIN)

_PLATFORMS = (Platform.ASSIST_SATELLITE, Platform.STT, Platform.TTS)


async def async_setup(hass: HomeAssistant, _config: ConfigType) -> bool:
    """Add the entry; the flow ends where an earlier start has added it."""
    hass.async_create_task(hass.config_entries.flow.async_init(DOMAIN, context={"source": SOURCE_IMPORT}, data={}))
    return True


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Add speech-to-text, text-to-speech and a satellite."""
    await hass.config_entries.async_forward_entry_setups(entry, _PLATFORMS)
    return True


async def async_unload_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Remove them."""
    return await hass.config_entries.async_unload_platforms(entry, _PLATFORMS)
