"""The entities of an inventory."""

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.helpers.entity import Entity
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback

from synthetic_home.inventory import Entity as InventoryEntity, Inventory


class SyntheticEntity(Entity):
    """An entity of the inventory; `described` is its part of the inventory."""

    _attr_should_poll = False

    def __init__(self, described: InventoryEntity, inventory: Inventory) -> None:
        self.described = described
        self.entity_id = described.id or ""
        self._attr_unique_id = described.id
        self._attr_name = described.name
        self._area_name = next((area.name for area in inventory.areas if area.id == described.area), None)

    async def async_added_to_hass(self) -> None:
        """Expose the entity, and assign it to its area."""
        async_expose_entity(self.hass, "conversation", self.entity_id, True)
        if self._area_name:
            area = ar.async_get(self.hass).async_get_or_create(self._area_name)
            er.async_get(self.hass).async_update_entity(self.entity_id, area_id=area.id)


async def add_entities(
    kind: type[SyntheticEntity], domain: str, entry: ConfigEntry, add: AddConfigEntryEntitiesCallback
) -> None:
    """Add the entities of a domain."""
    inventory: Inventory = entry.runtime_data
    add([kind(each, inventory) for each in inventory.entities if str(each.id).startswith(f"{domain}.")])


__all__ = ["AddConfigEntryEntitiesCallback", "ConfigEntry", "HomeAssistant", "SyntheticEntity", "add_entities"]
