"""Sensors, with the states of the inventory."""

from typing import Any

from homeassistant.components.sensor import SensorEntity

from .entity import AddConfigEntryEntitiesCallback, ConfigEntry, HomeAssistant, SyntheticEntity, add_entities


class SyntheticSensor(SyntheticEntity, SensorEntity):
    """A sensor."""

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        self._attr_native_value = self.described.state
        unit = (self.described.attributes or {}).get("native_unit_of_measurement")
        self._attr_native_unit_of_measurement = None if unit is None else str(unit)


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry, add: AddConfigEntryEntitiesCallback) -> None:
    """Add the sensors."""
    await add_entities(SyntheticSensor, "sensor", entry, add)
