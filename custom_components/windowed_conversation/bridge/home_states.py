"""The states of the exposed entities, followed by what changes: a turn only reads them."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.homeassistant.exposed_entities import async_listen_entity_updates, async_should_expose
from homeassistant.const import EVENT_CORE_CONFIG_UPDATE, EVENT_STATE_CHANGED
from homeassistant.core import CALLBACK_TYPE, Event, EventStateChangedData, HomeAssistant, State, callback
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN
from ..turn.asked import NameIndex
from ..turn.home import EntityState, Home
from ..turn.state_text import area_name, one_name, state_text

_USUAL_DOMAINS = frozenset(
    {
        "alarm_control_panel",
        "climate",
        "cover",
        "fan",
        "humidifier",
        "input_boolean",
        "input_number",
        "input_select",
        "lawn_mower",
        "light",
        "lock",
        "media_player",
        "person",
        "siren",
        "switch",
        "todo",
        "vacuum",
        "valve",
        "water_heater",
        "weather",
    }
)
# A sensor without a device class: people who expose it ask about it.
_USUAL_CLASSES: Mapping[str, frozenset[str | None]] = {
    "binary_sensor": frozenset(
        {
            None,
            "battery",
            "carbon_monoxide",
            "connectivity",
            "door",
            "garage_door",
            "gas",
            "lock",
            "moisture",
            "motion",
            "occupancy",
            "opening",
            "plug",
            "presence",
            "problem",
            "safety",
            "smoke",
            "window",
        }
    ),
    "sensor": frozenset(
        {
            None,
            "aqi",
            "battery",
            "carbon_dioxide",
            "carbon_monoxide",
            "energy",
            "enum",
            "gas",
            "humidity",
            "illuminance",
            "moisture",
            "pm10",
            "pm25",
            "power",
            "precipitation",
            "temperature",
            "volatile_organic_compounds",
            "water",
            "wind_speed",
        }
    ),
}
_NAMES_IN_USE = 4096

_one_name = lru_cache(maxsize=_NAMES_IN_USE)(one_name)


class HomeStates:
    """The exposed entities as they may be told: of the domains that people ask about, and of all others apart."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass
        self._usual: dict[str, EntityState] = {}
        self._others: dict[str, EntityState] = {}
        # The area of each entity that is exposed.
        self._areas: dict[str, str] = {}
        self._names = NameIndex()
        self._is_behind = True
        self._unsubscribe: tuple[CALLBACK_TYPE, ...] = ()
        self.users = 0

    @callback
    def async_start(self) -> None:
        """Begin to follow what changes."""
        bus, hass = self._hass.bus, self._hass
        self._unsubscribe = (
            bus.async_listen(EVENT_STATE_CHANGED, self._on_state),
            bus.async_listen(er.EVENT_ENTITY_REGISTRY_UPDATED, self._on_entity),
            bus.async_listen(dr.EVENT_DEVICE_REGISTRY_UPDATED, self._on_device),
            bus.async_listen(ar.EVENT_AREA_REGISTRY_UPDATED, self._on_change),
            bus.async_listen(EVENT_CORE_CONFIG_UPDATE, self._on_change),
            async_listen_entity_updates(hass, conversation.DOMAIN, self._fall_behind),
        )
        self._fall_behind()

    @callback
    def async_stop(self) -> None:
        """Follow nothing any more."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe = ()

    @callback
    def home(self, domains: tuple[str, ...] = (), also: Iterable[str] = ()) -> Home:
        """Return the home of this moment, to be read at once, with these domains and entities besides the usual."""
        self._catch_up()
        more = {key: each for key, each in self._others.items() if key.partition(".")[0] in domains} if domains else {}
        more |= {key: self._others[key] for key in also if key in self._others}
        return Home({**self._usual, **more} if more else self._usual, self._exists, self._names.asked)

    @callback
    def exposed(self) -> Mapping[str, EntityState]:
        """Return all exposed entities of this moment, of any domain, to be read at once."""
        self._catch_up()
        return {**self._usual, **self._others}

    def _exists(self, entity_id: str) -> bool:
        """Return whether an entity that is not told exists. A hidden one does, even without a state."""
        if self._hass.states.get(entity_id) is not None:
            return True
        entry = er.async_get(self._hass).async_get(entity_id)
        options = entry.options.get(conversation.DOMAIN) if entry is not None else None
        return options is not None and not options.get("should_expose", True)

    @callback
    def _on_state(self, event: Event[EventStateChangedData]) -> None:
        entity_id, state = event.data["entity_id"], event.data["new_state"]
        if state is None:
            self._drop(entity_id)
        elif event.data["old_state"] is None:
            self._consider(state)
        elif entity_id in self._areas:
            self._put(state)

    @callback
    def _on_entity(self, event: Event[er.EventEntityRegistryUpdatedData]) -> None:
        state = self._hass.states.get(event.data["entity_id"])
        if state is not None:
            self._consider(state)

    @callback
    def _on_device(self, event: Event[dr.EventDeviceRegistryUpdatedData]) -> None:
        if event.data["action"] == "update" and "area_id" in event.data["changes"]:
            self._fall_behind()

    @callback
    def _on_change(self, _event: Event[Any]) -> None:
        self._fall_behind()

    @callback
    def _fall_behind(self) -> None:
        """Have everything looked at again, once for all changes of this moment, and at the latest by a turn."""
        self._is_behind = True
        self._hass.loop.call_soon(self._catch_up)

    @callback
    def _catch_up(self) -> None:
        if not self._is_behind or not self._unsubscribe:
            return
        self._is_behind = False
        for state in self._hass.states.async_all():
            self._consider(state)

    @callback
    def _consider(self, state: State) -> None:
        """Take in an entity if it is exposed, wherever it is now."""
        entity_id = state.entity_id
        if async_should_expose(self._hass, conversation.DOMAIN, entity_id):
            self._areas[entity_id] = self._area(entity_id)
            self._put(state)
        else:
            self._drop(entity_id)

    def _area(self, entity_id: str) -> str:
        hass = self._hass
        entry = er.async_get(hass).async_get(entity_id)
        if entry is None:
            return ""
        area_id = entry.area_id
        if area_id is None and entry.device_id is not None:
            device = dr.async_get(hass).async_get(entry.device_id)
            area_id = dr.async_get_effective_area_id(hass, device) if device else None
        area = ar.async_get(hass).async_get_area(area_id) if area_id else None
        return area_name(area.name) if area else ""

    def _put(self, state: State) -> None:
        domain, attributes, entity_id = state.domain, state.attributes, state.entity_id
        text = state_text(domain, state.state, attributes, self._hass.config.units.temperature_unit)
        # what changes within rounding has not changed
        entity = EntityState(self._areas[entity_id], _one_name(state.name), text, state.last_updated_timestamp)
        before = self._usual.get(entity_id) or self._others.get(entity_id)
        if before is not None and before.told == entity.told:
            entity = before
        classes = _USUAL_CLASSES.get(domain)
        is_usual = domain in _USUAL_DOMAINS or (classes is not None and attributes.get("device_class") in classes)
        there, elsewhere = (self._usual, self._others) if is_usual else (self._others, self._usual)
        there[entity_id] = entity
        elsewhere.pop(entity_id, None)
        self._names.put(entity_id, entity.name, entity.area)

    def _drop(self, entity_id: str) -> None:
        for kept in (self._areas, self._usual, self._others):
            kept.pop(entity_id, None)
        self._names.drop(entity_id)


_HOME: HassKey[HomeStates] = HassKey(f"{DOMAIN}_home")


@callback
def async_home_states(hass: HomeAssistant) -> HomeStates | None:
    """Return the states of the home, or None if nobody follows them."""
    return hass.data.get(_HOME)


@callback
def async_follow_home(hass: HomeAssistant) -> CALLBACK_TYPE:
    """Follow the states of the home, once for all who want them; returns what ends that."""
    states = hass.data.get(_HOME)
    if states is None:
        states = hass.data[_HOME] = HomeStates(hass)
        states.async_start()
    states.users += 1

    @callback
    def leave() -> None:
        states.users -= 1
        if not states.users:
            states.async_stop()
            hass.data.pop(_HOME, None)

    return leave
