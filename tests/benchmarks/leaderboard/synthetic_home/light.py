"""Lights, which are on or off."""

from typing import Any

from homeassistant.components.light import LightEntity
from homeassistant.components.light.const import ColorMode

from .entity import AddConfigEntryEntitiesCallback, ConfigEntry, HomeAssistant, SyntheticEntity, add_entities


class SyntheticLight(SyntheticEntity, LightEntity):
    """A light."""

    _attr_color_mode = ColorMode.ONOFF
    _attr_supported_color_modes = {ColorMode.ONOFF}  # noqa: RUF012 - as Home Assistant defines it

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        self._attr_is_on = self.described.state != "off"

    async def async_turn_on(self, **kwargs: Any) -> None:
        """Turn on."""
        self._attr_is_on = True
        self.async_write_ha_state()

    async def async_turn_off(self, **kwargs: Any) -> None:
        """Turn off."""
        self._attr_is_on = False
        self.async_write_ha_state()


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry, add: AddConfigEntryEntitiesCallback) -> None:
    """Add the lights."""
    await add_entities(SyntheticLight, "light", entry, add)
