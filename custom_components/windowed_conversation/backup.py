"""Backup hooks: the store's file is complete and is not written to while Home Assistant copies it."""

from homeassistant.core import HomeAssistant

from .agents.store import async_get_store


async def async_pre_backup(hass: HomeAssistant) -> None:
    """Write all pending changes to the store's file, and pause further writes until the backup is done."""
    if (store := async_get_store(hass)) is not None:
        await store.async_pause_writes()


async def async_post_backup(hass: HomeAssistant) -> None:
    """Resume writing to the store's file."""
    if (store := async_get_store(hass)) is not None:
        store.writer.resume_writing()
