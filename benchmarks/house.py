"""The home of `benchmarks.home_day` in a real Home Assistant: it executes commands and checks answers."""

import re
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import Event, EventStateChangedData, HomeAssistant, ServiceCall, State, callback
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er

from benchmarks.home_day import HomeEntity, Sentence, SimulatedDay
from custom_components.windowed_conversation.home.core.state_text import entity_kind, state_text
from demo.model_server import HomeHistory

_NUMBER_PATTERN = re.compile(r"-?\d+(?:\.\d+)?")
_ANSWER_PATTERN = re.compile(r"The .+? is (?P<state>.+?)\.?$")
# The right answer to a question about several entities if no entity matches.
_EMPTY_ANSWER_BY_KIND = {
    **dict.fromkeys(("lights", "lights in area"), "Nothing is on."),
    **dict.fromkeys(("doors", "windows"), "Nothing is open."),
    "unusual": "Everything is closed and off.",
}
# The maximum difference between a spoken number and the measured one, by unit.
_TOLERANCE_BY_UNIT = {"°C": 0.25, "%": 0.5, "W": 0.5}


class DayHouse:
    """The home of a day in Home Assistant; it executes commands and records the history of its states."""

    def __init__(self, hass: HomeAssistant, day: SimulatedDay) -> None:
        self._hass = hass
        self._entity_by_id = {thing.entity_id: thing for thing in day.entities}
        self._unusual_ids = day.choose_unusual_ids()
        self._blind_ids = day.find_blind_ids()
        self._device_id_by_area: dict[str, str] = {}
        self.history = HomeHistory()

    async def set_up(self, day: SimulatedDay, config_entry_id: str) -> None:
        """Create the areas, entities and satellites, and expose only these entities."""
        hass = self._hass
        for entity_id in hass.states.async_entity_ids():
            async_expose_entity(hass, "conversation", entity_id, should_expose=False)
        areas = {name: ar.async_get(hass).async_get_or_create(name).id for name in day.areas}
        for thing in day.entities:
            domain, _, object_id = thing.entity_id.partition(".")
            entry = er.async_get(hass).async_get_or_create(
                domain, "bench", object_id, suggested_object_id=object_id, original_name=thing.name
            )
            er.async_get(hass).async_update_entity(entry.entity_id, area_id=areas[thing.area])
            self.set_state(thing.entity_id, thing.initial_state)
            async_expose_entity(hass, "conversation", entry.entity_id, should_expose=True)
        for area in day.satellite_areas:
            devices = dr.async_get(hass)
            device = devices.async_get_or_create(config_entry_id=config_entry_id, identifiers={("bench", area)})
            devices.async_update_device(device.id, area_id=areas[area])
            self._device_id_by_area[area] = device.id
        for service, state in (("turn_on", "on"), ("turn_off", "off")):
            hass.services.async_register("light", service, self._make_switch_service(state))
        hass.bus.async_listen("state_changed", self._on_state)
        await hass.async_block_till_done()

    def start_day(self) -> None:
        """Reset every entity to its state at the beginning of the day."""
        for thing in self._entity_by_id.values():
            self.set_state(thing.entity_id, thing.initial_state)
        self.history = HomeHistory()
        for thing in self._entity_by_id.values():
            self._record_state(self.get_state(thing))

    def start_second_day(self, *, is_bright: bool = False) -> None:
        """Register all states again, with a few of them not as usual, and on a bright day all blinds open."""
        for entity_id in self._entity_by_id:
            self._hass.states.async_remove(entity_id)
        self.start_day()
        for entity_id in self._unusual_ids | (self._blind_ids if is_bright else set()):
            self.set_state(entity_id, self._entity_by_id[entity_id].kind.states[1])

    def set_state(self, entity_id: str, state: str) -> None:
        """Set the state of an entity."""
        thing = self._entity_by_id[entity_id]
        self._hass.states.async_set(entity_id, state, {"friendly_name": thing.name, **thing.kind.attributes})

    def get_state(self, thing: HomeEntity) -> State:
        """Return the current state of an entity."""
        state = self._hass.states.get(thing.entity_id)
        assert state is not None
        return state

    def get_satellite_id(self, area: str) -> str:
        """Return the device id of the satellite in an area."""
        return self._device_id_by_area[area]

    def is_right(self, sentence: Sentence, answer: str) -> bool:
        """Return whether the answer to a question matches the real states, or whether a command was executed."""
        states = {thing: self.get_state(thing).state for thing in sentence.subjects}
        if sentence.wanted_state:
            return set(states.values()) == {sentence.wanted_state}
        if sentence.kind in _EMPTY_ANSWER_BY_KIND:
            usual = {thing: thing.kind.states[:1] for thing in states if thing.kind.states}
            odd = {thing.name for thing in usual if states[thing] not in usual[thing]}
            named = {name.strip() for name in answer.partition(": ")[2].rstrip(".").split(",")}
            return named == odd if odd else answer == _EMPTY_ANSWER_BY_KIND[sentence.kind]
        said = _ANSWER_PATTERN.match(answer)
        return said is not None and any(_matches_state(said["state"], thing, state) for thing, state in states.items())

    def _make_switch_service(self, state: str) -> Any:
        @callback
        def switch(call: ServiceCall) -> None:
            for entity_id in call.data["entity_id"]:
                self.set_state(entity_id, state)

        return switch

    @callback
    def _on_state(self, event: Event[EventStateChangedData]) -> None:
        state = event.data["new_state"]
        if state is not None and state.entity_id in self._entity_by_id:
            self._record_state(state)

    def _record_state(self, state: State) -> None:
        text = state_text(state.domain, state.state, state.attributes, "°C")
        self.history.note(state.name, text, entity_kind(state.domain, state.attributes.get("device_class")))


def _matches_state(said: str, thing: HomeEntity, state: str) -> bool:
    """Return whether a spoken text means this state: by its name, that of its device class, or within rounding."""
    unit = thing.kind.attributes.get("unit_of_measurement")
    if unit:
        number = _NUMBER_PATTERN.match(said)
        return number is not None and abs(float(number[0]) - float(state)) <= _TOLERANCE_BY_UNIT[unit] + 1e-9
    words = {state, state_text(thing.kind.domain, state, thing.kind.attributes, "°C")}
    return said in words
