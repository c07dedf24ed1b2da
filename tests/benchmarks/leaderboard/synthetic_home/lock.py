"""Locks."""

from typing import Any

from homeassistant.components.lock import LockEntity

from .entity import AddConfigEntryEntitiesCallback, ConfigEntry, HomeAssistant, SyntheticEntity, add_entities


class SyntheticLock(SyntheticEntity, LockEntity):
    """A lock."""

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        self._attr_is_locked = self.described.state == "locked"

    async def async_lock(self, **kwargs: Any) -> None:
        """Lock."""
        self._attr_is_locked = True
        self.async_write_ha_state()

    async def async_unlock(self, **kwargs: Any) -> None:
        """Unlock."""
        self._attr_is_locked = False
        self.async_write_ha_state()


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry, add: AddConfigEntryEntitiesCallback) -> None:
    """Add the locks."""
    await add_entities(SyntheticLock, "lock", entry, add)
