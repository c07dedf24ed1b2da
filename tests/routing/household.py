"""The people of a home and what they use: persons, zones, satellites, timers, and a shopping list."""

from collections.abc import Iterable, Mapping
from typing import Any, override

from homeassistant.components.assist_pipeline import PipelineEvent
from homeassistant.components.assist_satellite import (
    AssistSatelliteConfiguration,
    AssistSatelliteEntity,
    AssistSatelliteEntityFeature,
)
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.components.intent.timers import TimerInfo, TimerManager
from homeassistant.config_entries import SOURCE_USER
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
from homeassistant.util import slugify

_SHOPPING_LIST = "shopping_list"


async def add_persons(hass: HomeAssistant, persons: Mapping[str, str], zones: Iterable[str]) -> None:
    """Add person entities, each with a phone that reports a place, and zones."""
    if not persons:
        return
    far = [{"name": name, "latitude": 50 + at, "longitude": 5} for at, name in enumerate(zones)]
    assert await async_setup_component(hass, "zone", {"zone": far})
    for name, place in persons.items():
        move_person(hass, f"person.{slugify(name)}", place)
    config = [
        {"id": slugify(name), "name": name, "device_trackers": [f"device_tracker.{slugify(name)}"]} for name in persons
    ]
    assert await async_setup_component(hass, "person", {"person": config})
    await hass.async_block_till_done()


def move_person(hass: HomeAssistant, entity_id: str, place: str) -> None:
    """Make a person's phone report a place."""
    phone = f"device_tracker.{entity_id.partition('.')[2]}"
    hass.states.async_set(phone, place, {"source_type": "router"}, force_update=True)


class Satellite(AssistSatelliteEntity):
    """A satellite that records its announcements."""

    _attr_supported_features = AssistSatelliteEntityFeature.ANNOUNCE

    def __init__(self, name: str, device_id: str) -> None:
        self._attr_name = name
        self._attr_unique_id = slugify(name)
        self.device_id = device_id
        self.announcements: list[str] = []

    @override
    async def async_internal_announce(self, message: str | None = None, *_: Any, **__: Any) -> None:
        self.announcements.append(message or "")

    @override
    def async_get_configuration(self) -> AssistSatelliteConfiguration:
        return AssistSatelliteConfiguration([], [], 0)

    @override
    async def async_set_configuration(self, config: AssistSatelliteConfiguration) -> None:
        """Do nothing, because there is no configuration."""

    @override
    def on_pipeline_event(self, event: PipelineEvent) -> None:
        """Ignore the event."""


async def add_satellites(hass: HomeAssistant, devices: Mapping[str, str]) -> tuple[Satellite, ...]:
    """Add a satellite for each name with the given device, and register a timer handler for each."""
    if not devices:
        return ()
    assert await async_setup_component(hass, "assist_satellite", {})
    satellites = tuple(Satellite(name, device_id) for name, device_id in devices.items())
    await hass.data["assist_satellite"].async_add_entities(satellites)
    for satellite in satellites:
        er.async_get(hass).async_update_entity(satellite.entity_id, device_id=satellite.device_id)
        async_register_timer_handler(hass, satellite.device_id, _ignore)
    return satellites


def _ignore(*_: Any) -> None:
    """Ignore a timer's event."""


class Timers:
    """The timers of a home."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._manager: TimerManager = hass.data[TIMER_DATA]

    def start(self, name: str, device_id: str | None, language: str) -> None:
        """Start a timer of ten minutes with this name."""
        self._manager.start_timer(device_id, None, 10, None, language, name=name)

    def now(self) -> list[TimerInfo]:
        """Return the current timers, oldest first."""
        return list(self._manager.timers.values())

    def clear(self) -> None:
        """Cancel all timers."""
        for timer in self.now():
            self._manager.cancel_timer(timer.id)


class ShoppingList:
    """Home Assistant's own shopping list."""

    def __init__(self, entity_id: str, data: Any) -> None:
        self.entity_id = entity_id
        self._data = data

    @classmethod
    async def set_up(cls, hass: HomeAssistant, items: Iterable[str]) -> ShoppingList:
        """Set up the shopping list as a user does, and add these items."""
        flow = await hass.config_entries.flow.async_init(_SHOPPING_LIST, context={"source": SOURCE_USER})
        await hass.config_entries.flow.async_configure(flow["flow_id"], {})
        await hass.async_block_till_done()
        (entry,) = hass.config_entries.async_entries(_SHOPPING_LIST)
        (entity,) = er.async_entries_for_config_entry(er.async_get(hass), entry.entry_id)
        shopping = cls(entity.entity_id, entry.runtime_data)
        shopping.put(items)
        return shopping

    @property
    def open_items(self) -> tuple[str, ...]:
        """The items that are not yet completed."""
        return tuple(item["name"] for item in self._data.items if not item["complete"])

    def put(self, items: Iterable[str]) -> None:
        """Replace the items on the list with these."""
        self._data.items = [{"name": name, "id": name, "complete": False} for name in items]
        self._data._async_notify()
