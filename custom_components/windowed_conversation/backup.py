"""Home Assistant's backups find all that is kept in one whole file."""

from homeassistant.core import HomeAssistant

from .agents.store import async_store


async def async_pre_backup(hass: HomeAssistant) -> None:
    """Have everything in the file, and nothing written to it while it is copied."""
    if (store := async_store(hass)) is not None:
        await store.async_hold()


async def async_post_backup(hass: HomeAssistant) -> None:
    """Go on writing."""
    if (store := async_store(hass)) is not None:
        store.writer.release()
