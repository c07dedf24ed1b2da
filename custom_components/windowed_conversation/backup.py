"""Home Assistant's backups find all that is remembered in one whole file."""

from homeassistant.core import HomeAssistant

from .agents.memory import async_memory


async def async_pre_backup(hass: HomeAssistant) -> None:
    """Have everything in the file, and nothing written to it while it is copied."""
    if (memory := async_memory(hass)) is not None:
        await memory.async_hold()


async def async_post_backup(hass: HomeAssistant) -> None:
    """Go on writing."""
    if (memory := async_memory(hass)) is not None:
        memory.writer.release()
