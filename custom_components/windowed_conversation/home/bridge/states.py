"""The current states of the exposed entities, updated with every change so that a turn only has to read them."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
import logging
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.homeassistant.exposed_entities import async_listen_entity_updates, async_should_expose
from homeassistant.const import EVENT_CORE_CONFIG_UPDATE, EVENT_STATE_CHANGED
from homeassistant.core import CALLBACK_TYPE, Event, EventStateChangedData, HomeAssistant, State, callback
from homeassistant.helpers import (
    area_registry as ar,
    device_registry as dr,
    entity_registry as er,
    floor_registry as fr,
)
from homeassistant.helpers.event import async_call_later
from homeassistant.helpers.translation import async_get_translations
from homeassistant.util.hass_dict import HassKey

from ...bridge.errors import find_nearest_language
from ...const import DOMAIN
from ...turn.names import area_name, format_name
from ..core.home import Home, KindNames
from ..core.state_text import EntityState, classify_state, entity_kind, state_text
from .overview import HomeOverview

_LOGGER = logging.getLogger(__name__)

_DEFAULT_DOMAINS = frozenset((
    "alarm_control_panel", "climate", "cover", "fan", "humidifier", "input_boolean", "input_number", "input_select",
    "lawn_mower", "light", "lock", "media_player", "person", "siren", "switch", "todo", "vacuum", "valve",
    "water_heater", "weather",
))  # fmt: skip
# None stands for a sensor without a device class. It is included because people who expose one ask about it.
_DEFAULT_DEVICE_CLASSES: Mapping[str, frozenset[str | None]] = {
    "binary_sensor": frozenset((
        None, "battery", "carbon_monoxide", "connectivity", "door", "garage_door", "gas", "lock", "moisture", "motion",
        "occupancy", "opening", "plug", "presence", "problem", "safety", "smoke", "window",
    )),
    "sensor": frozenset((
        None, "aqi", "battery", "carbon_dioxide", "carbon_monoxide", "energy", "enum", "gas", "humidity", "illuminance",
        "moisture", "pm10", "pm25", "power", "precipitation", "temperature", "volatile_organic_compounds", "water",
        "wind_speed",
    )),
}  # fmt: skip
# The integrations whose translated names of entity kinds ("light", "humidity") people use in sentences.
_KIND_NAME_INTEGRATIONS = (
    "alarm_control_panel", "binary_sensor", "climate", "cover", "fan", "humidifier", "lawn_mower", "light", "lock",
    "media_player", "sensor", "siren", "switch", "vacuum", "valve", "water_heater",
)  # fmt: skip
# The most languages in which the names of entity kinds are loaded: the home's language and those of its speakers.
_MAX_NAME_LANGUAGES = 6
# The delay in seconds after which changes of the registries are applied, even if no turn has needed them before.
_MAX_REFRESH_DELAY_SECONDS = 1.0

_OUTDATING_EVENTS = (
    ar.EVENT_AREA_REGISTRY_UPDATED,
    dr.EVENT_DEVICE_REGISTRY_UPDATED,
    er.EVENT_ENTITY_REGISTRY_UPDATED,
    fr.EVENT_FLOOR_REGISTRY_UPDATED,
    EVENT_CORE_CONFIG_UPDATE,
)

_format_name_cached = lru_cache(maxsize=4096)(format_name)

_HOME_STATES_KEY: HassKey[HomeStates] = HassKey(f"{DOMAIN}_home")


class HomeStates:
    """The exposed entities in the form that requests list them, with the names that a sentence may use for them."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass
        self.overview = HomeOverview(hass)
        self._home = Home()
        # The names and the area of each exposed entity, by entity id. The model sees the first name.
        self._exposed_names_and_areas: dict[str, tuple[tuple[str, ...], str]] = {}
        self._is_outdated = True
        self._cancel_timer: CALLBACK_TYPE | None = None
        self._unsubscribe_callbacks: tuple[CALLBACK_TYPE, ...] = ()
        # Entities whose state could not be read. Each is logged only once.
        self._unreadable_entity_ids: set[str] = set()
        # The languages in which the names of entity kinds are loaded or are being loaded.
        self._languages: dict[str, None] = {}
        self.user_count = 0

    @callback
    def async_start(self) -> None:
        """Start to listen for changes of states, registries and exposed entities."""
        listen = self._hass.bus.async_listen
        self._unsubscribe_callbacks = (
            listen(EVENT_STATE_CHANGED, self._on_state_changed),
            *[listen(event, self._mark_all_outdated) for event in _OUTDATING_EVENTS],
            async_listen_entity_updates(self._hass, conversation.DOMAIN, self._mark_all_outdated),
        )
        self._mark_all_outdated()
        self._schedule_name_loading("en")

    @callback
    def async_stop(self) -> None:
        """Stop listening."""
        for unsubscribe in (*self._unsubscribe_callbacks, *filter(None, [self._cancel_timer])):
            unsubscribe()
        self._unsubscribe_callbacks, self._cancel_timer = (), None

    @callback
    def get_home(self, language: str = "") -> Home:
        """Return the live state of the home for a sentence in this language. The caller must read it at once."""
        self._schedule_name_loading(language)
        if self._is_outdated:
            self._refresh_entities()
        return self._home

    def _schedule_name_loading(self, *languages: str) -> None:
        """Schedule loading the names of entity kinds in these languages and the home's, for later sentences."""
        before = len(self._languages)
        for each in (*languages, self._hass.config.language):
            if len(self._languages) < _MAX_NAME_LANGUAGES:
                self._languages[find_nearest_language(each, self._hass.config.country)] = None
        if len(self._languages) > before:
            self._hass.async_create_background_task(self.async_load_kind_names(), "names of kinds of entities")

    async def async_load_kind_names(self) -> None:
        """Load Home Assistant's names of entity kinds in the languages that are spoken in this home."""
        languages = tuple(self._languages)
        names: dict[tuple[str, str], None] = {}
        for language in languages:
            found = await async_get_translations(self._hass, language, "entity_component", _KIND_NAME_INTEGRATIONS)
            for key, name in found.items():
                _, domain, _, device_class, field, *more = (*key.split("."), "", "")
                if field == "name" and not any(more):
                    names[entity_kind(domain, device_class.strip("_")), name] = None
        kinds = await self._hass.async_add_executor_job(KindNames, languages, tuple(names))
        if languages == tuple(self._languages):
            self._home.kind_names = kinds

    @callback
    def _on_state_changed(self, event: Event[EventStateChangedData]) -> None:
        entity_id, state = event.data["entity_id"], event.data["new_state"]
        if state is None:
            self._remove_entity(entity_id)
        elif event.data["old_state"] is None:
            self._add_or_remove_entity(state)
        elif entity_id in self._exposed_names_and_areas:
            self._update_entity(state)

    @callback
    def _mark_all_outdated(self, _event: Event[Any] | None = None) -> None:
        """Mark all entities as outdated. They are read again once, by the next turn or a little later by a timer."""
        self._is_outdated = self.overview.is_outdated = True
        if self._cancel_timer is None:
            self._cancel_timer = async_call_later(self._hass, _MAX_REFRESH_DELAY_SECONDS, self._refresh_entities)

    @callback
    def _refresh_entities(self, now: datetime | None = None) -> None:
        """Read all entities again if they are outdated. `now` is set only by the timer."""
        if now is not None:
            self._cancel_timer = None
        if not self._is_outdated or not self._unsubscribe_callbacks:
            return
        self._is_outdated = False
        areas = ar.async_get(self._hass).async_list_areas()
        self._home.names_by_area = {area_name(each.name): (each.name, *each.aliases) for each in areas}
        for state in self._hass.states.async_all():
            self._add_or_remove_entity(state)

    def _add_or_remove_entity(self, state: State) -> None:
        entity_id = state.entity_id
        if async_should_expose(self._hass, conversation.DOMAIN, entity_id):
            self._exposed_names_and_areas[entity_id] = self._get_names_and_area(state)
            self._update_entity(state)
        else:
            self._remove_entity(entity_id)

    def _get_names_and_area(self, state: State) -> tuple[tuple[str, ...], str]:
        """Return the names by which Home Assistant matches an entity, and the name of its area."""
        hass = self._hass
        entry = er.async_get(hass).async_get(state.entity_id)
        if entry is None:
            return (state.name,), ""
        area_id = er.async_get_effective_area_id(hass, entry)
        area = ar.async_get(hass).async_get_area(area_id) if area_id else None
        names = er.async_get_entity_aliases(hass, entry, allow_empty=False)
        return tuple(filter(None, names)) or (state.name,), area_name(area.name) if area else ""

    def _update_entity(self, state: State) -> None:
        """Update the state of an exposed entity. A state that cannot be read does not affect other entities."""
        try:
            self._home.entities[state.entity_id] = self._build_entity(state)
        except (ArithmeticError, LookupError, TypeError, ValueError) as err:
            self._home.entities.pop(state.entity_id, None)
            if state.entity_id not in self._unreadable_entity_ids:
                self._unreadable_entity_ids.add(state.entity_id)
                _LOGGER.warning("The state of %s cannot be read: %s", state.entity_id, type(err).__name__)

    def _build_entity(self, state: State) -> EntityState:
        domain, attributes = state.domain, state.attributes
        device_class = attributes.get("device_class")
        text = state_text(domain, state.state, attributes, self._hass.config.units.temperature_unit)
        names, area = self._exposed_names_and_areas[state.entity_id]
        # A change that disappears in rounding does not count as a change.
        before = self._home.entities.get(state.entity_id)
        is_same = before is not None and before.state == text
        classes = _DEFAULT_DEVICE_CLASSES.get(domain)
        is_common = domain in _DEFAULT_DOMAINS or (classes is not None and device_class in classes)
        return EntityState(
            area,
            _format_name_cached(names[0]),
            text,
            entity_kind(domain, device_class),
            classify_state(domain, device_class, state.state, text),
            before.changed_at if before is not None and is_same else state.last_updated_timestamp,
            domain,
            not is_common,
            names,
        )

    def _remove_entity(self, entity_id: str) -> None:
        self._exposed_names_and_areas.pop(entity_id, None)
        self._home.entities.pop(entity_id, None)


@callback
def async_get_home_states(hass: HomeAssistant) -> HomeStates | None:
    """Return the shared `HomeStates`, or None if nothing uses it."""
    return hass.data.get(_HOME_STATES_KEY)


@callback
def async_acquire_home_states(hass: HomeAssistant) -> CALLBACK_TYPE:
    """Start the shared `HomeStates`, or use it if it is running. Return a function that releases it."""
    states = hass.data.get(_HOME_STATES_KEY)
    if states is None:
        states = hass.data[_HOME_STATES_KEY] = HomeStates(hass)
        states.async_start()
    states.user_count += 1

    @callback
    def release() -> None:
        states.user_count -= 1
        if not states.user_count:
            states.async_stop()
            hass.data.pop(_HOME_STATES_KEY, None)

    return release
