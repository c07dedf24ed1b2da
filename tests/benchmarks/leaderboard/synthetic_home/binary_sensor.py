"""Binary sensors, with the states of the inventory."""

from typing import Any

from homeassistant.components.binary_sensor import BinarySensorEntity

from .entity import AddConfigEntryEntitiesCallback, ConfigEntry, HomeAssistant, SyntheticEntity, add_entities


class SyntheticBinarySensor(SyntheticEntity, BinarySensorEntity):
    """A binary sensor."""

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        self._attr_is_on = str(self.described.state).lower() in ("on", "true")


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry, add: AddConfigEntryEntitiesCallback) -> None:
    """Add the binary sensors."""
    await add_entities(SyntheticBinarySensor, "binary_sensor", entry, add)
