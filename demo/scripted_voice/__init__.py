"""A voice for the demo without a model: it recognizes a sentence that was typed elsewhere, and answers in tones.

`scripted_voice:` in configuration.yaml adds it. The frontend, HTTP and Assist treat it as any other voice.
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
    """Start the import flow of the config entry; the flow aborts if an earlier start has added the entry."""
    hass.async_create_task(hass.config_entries.flow.async_init(DOMAIN, context={"source": SOURCE_IMPORT}, data={}))
    return True


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Set up the speech-to-text, text-to-speech and satellite platforms."""
    await hass.config_entries.async_forward_entry_setups(entry, _PLATFORMS)
    return True


async def async_unload_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Unload the platforms."""
    return await hass.config_entries.async_unload_platforms(entry, _PLATFORMS)
