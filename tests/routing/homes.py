"""Builds homes in Home Assistant: areas, devices, entities and people, all of them exposed to Assist.

This module does not use pytest, so that the benchmark can build the same homes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.config_entries import SOURCE_IGNORE, ConfigEntry
from homeassistant.core import HomeAssistant, State
from homeassistant.helpers import (
    area_registry as ar,
    device_registry as dr,
    entity_registry as er,
    floor_registry as fr,
)
from homeassistant.setup import async_setup_component

from .entities import Fixture, Json, Spec
from .household import Satellite, ShoppingList, Timers, add_persons, add_satellites, move_person
from .things import CLASSES, TodoList

_COMPONENTS = ("homeassistant", "conversation", "intent", "assist_pipeline")
_ASSISTANT_ID = "conversation"

# Home Assistant's shopping list has this name here, because its entity id depends on the language of the home.
SHOPPING_LIST = "shopping_list"


@dataclass(frozen=True, slots=True)
class HomePlan:
    """The plan of a home. A person's place is a zone's name, "home" or "not_home"; each satellite is in an area."""

    specs: tuple[Spec, ...]
    areas: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    devices: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    language: str = "en"
    persons: Mapping[str, str] = field(default_factory=dict)
    zones: tuple[str, ...] = ()
    satellites: Mapping[str, str] = field(default_factory=dict)
    shopping_list: tuple[str, ...] | None = None

    @classmethod
    def read(cls, fixtures: Json, **more: Any) -> HomePlan:
        """Return the plan in a file of the data sets; `more` has the values of fields that these files do not have."""
        return cls(
            specs=tuple(_spec(each) for each in fixtures["entities"]),
            areas={each["id"]: (each["name"], each.get("floor")) for each in fixtures["areas"]},
            devices={each["id"]: (each["name"], each.get("area")) for each in fixtures.get("devices", ())},
            language=fixtures.get("language", "en"),
            **more,
        )


def _spec(entity: Json) -> Spec:
    state = entity.get("state")
    if isinstance(state, dict):
        state = state["out"]
    if isinstance(state, bool):
        state = "on" if state else "off"
    return Spec(
        entity_id=entity["id"],
        name=entity["name"],
        area=entity.get("area"),
        device=entity.get("device"),
        state=None if state is None else str(state),
        attributes=entity.get("attributes") or {},
    )


type Seen = dict[str, tuple[str, Mapping[str, Any], tuple[str, ...]]]


@dataclass(slots=True)
class Home:
    """A home that was built, with access to its current state."""

    hass: HomeAssistant
    plan: HomePlan
    entity_by_id: Mapping[str, Fixture]
    satellites: tuple[Satellite, ...]
    shopping: ShoppingList | None
    timers: Timers
    first: Seen = field(default_factory=dict)

    @property
    def device_id(self) -> str | None:
        """The device id of the first satellite, which is the source of all input."""
        return self.satellites[0].device_id if self.satellites else None

    @property
    def satellite_id(self) -> str | None:
        """The entity id of the first satellite."""
        return self.satellites[0].entity_id if self.satellites else None

    @property
    def announcements(self) -> list[str]:
        """The announcements of all satellites, without repetitions."""
        return list(dict.fromkeys(text for satellite in self.satellites for text in satellite.announcements))

    def seen(self) -> Seen:
        """Return the state, attributes and open items of every entity of the home."""
        seen = {entity_id: self._seen(self.hass.states.get(entity_id)) for entity_id in self._entity_ids()}
        return seen | ({SHOPPING_LIST: ("", {}, self.shopping.open_items)} if self.shopping else {})

    async def restore(self, setup: Mapping[str, Json], timers: Iterable[str] = ()) -> None:
        """Restore the home as it was built, except for the states and attributes in `setup`, and start the timers."""
        self.timers.clear()
        for satellite in self.satellites:
            satellite.announcements.clear()
        now = self.seen()
        for entity_id in [each for each, before in self.first.items() if each in setup or now[each] != before]:
            await self._put(entity_id, setup.get(entity_id, {}))
        for name in timers:
            self.timers.start(name, self.device_id, self.plan.language)
        await self.hass.async_block_till_done()

    async def _put(self, entity_id: str, given: Json) -> None:
        if fixture := self.entity_by_id.get(entity_id):
            fixture.restore(None if "state" not in given else str(given["state"]), given.get("attributes"))
        elif self.shopping and entity_id == SHOPPING_LIST:
            self.shopping.put(given.get("attributes", {}).get("todo_items", self.plan.shopping_list or ()))
        else:
            move_person(self.hass, entity_id, given.get("state") or self.first[entity_id][0])

    def _entity_ids(self) -> Iterable[str]:
        yield from self.entity_by_id
        yield from self.hass.states.async_entity_ids("person")

    def _seen(self, state: State | None) -> tuple[str, Mapping[str, Any], tuple[str, ...]]:
        assert state
        fixture = self.entity_by_id.get(state.entity_id)
        if isinstance(fixture, TodoList):
            return state.state, {}, tuple(fixture.open_items)
        if state.domain == "person":
            return state.state, {}, ()
        return state.state, state.attributes, ()


async def build(hass: HomeAssistant, plan: HomePlan) -> Home:
    """Build a home in a Home Assistant that does not have one yet."""
    hass.config.language = plan.language
    for component in _COMPONENTS:
        assert await async_setup_component(hass, component, {})
    entry = await _owner(hass)
    areas = _add_areas(hass, plan)
    devices = {key: _add_device(hass, entry, name, areas.get(area or "")) for key, (name, area) in plan.devices.items()}
    fixtures = await _add_entities(hass, plan, areas, devices)
    await add_persons(hass, plan.persons, plan.zones)
    satellites = await add_satellites(
        hass,
        {name: _add_device(hass, entry, name, areas[area]) for name, area in plan.satellites.items()},
    )
    shopping = await ShoppingList.set_up(hass, plan.shopping_list) if plan.shopping_list is not None else None
    await hass.async_block_till_done()
    home = Home(hass, plan, fixtures, satellites, shopping, Timers(hass))
    home.first = home.seen()
    for entity_id in home.first:
        exposed = shopping.entity_id if shopping and entity_id == SHOPPING_LIST else entity_id
        async_expose_entity(hass, _ASSISTANT_ID, exposed, should_expose=True)
    return home


async def _owner(hass: HomeAssistant) -> ConfigEntry:
    """Return a config entry that owns the devices; it is ignored, so Home Assistant never sets it up."""
    entry = ConfigEntry(
        data={},
        discovery_keys={},  # type: ignore[arg-type]
        domain="homeassistant",
        minor_version=1,
        options={},
        source=SOURCE_IGNORE,
        subentries_data=None,
        title="Things",
        unique_id=None,
        version=1,
    )
    await hass.config_entries.async_add(entry)
    return entry


def _add_areas(hass: HomeAssistant, plan: HomePlan) -> dict[str, str]:
    """Add the areas, and return their registry ids by their ids in the plan."""
    floors = {name: fr.async_get(hass).async_create(name).floor_id for name in _floors(plan)}
    registry = ar.async_get(hass)
    return {
        key: registry.async_create(name, floor_id=floors.get(floor or "")).id
        for key, (name, floor) in plan.areas.items()
    }


def _floors(plan: HomePlan) -> list[str]:
    return list(dict.fromkeys(floor for _, floor in plan.areas.values() if floor))


def _add_device(hass: HomeAssistant, entry: ConfigEntry, name: str, area_id: str | None) -> str:
    registry = dr.async_get(hass)
    device = registry.async_get_or_create(config_entry_id=entry.entry_id, identifiers={("routing", name)}, name=name)
    registry.async_update_device(device.id, area_id=area_id)
    return device.id


async def _add_entities(
    hass: HomeAssistant, plan: HomePlan, areas: Mapping[str, str], devices: Mapping[str, str]
) -> dict[str, Fixture]:
    fixtures: dict[str, Fixture] = {}
    for domain, specs in groupby(sorted(plan.specs, key=lambda spec: spec.domain), lambda spec: spec.domain):
        assert await async_setup_component(hass, domain, {})
        added = [CLASSES[domain](spec) for spec in specs]
        await hass.data[domain].async_add_entities(added)
        fixtures |= {fixture.entity_id: fixture for fixture in added}
    registry = er.async_get(hass)
    for entity_id, fixture in fixtures.items():
        # An entity with a device is in the area of its device.
        if fixture.spec.device:
            registry.async_update_entity(entity_id, device_id=devices[fixture.spec.device])
        elif fixture.spec.area:
            registry.async_update_entity(entity_id, area_id=areas[fixture.spec.area])
    return fixtures
