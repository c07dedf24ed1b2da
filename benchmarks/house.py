"""The home of `benchmarks.home_day` in a real Home Assistant: it executes commands and checks answers."""

import re
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import Event, EventStateChangedData, HomeAssistant, ServiceCall, State, callback
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er

from benchmarks.home_day import Day, Sentence, Thing
from custom_components.windowed_conversation.turn.state_text import state_text
from demo.model_server import HomeHistory

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SAYS = re.compile(r"The .+? is (?P<state>.+?)\.?$")
# The right answer to a question about several entities if no entity matches.
_NONE = {
    **dict.fromkeys(("lights", "lights in area"), "Nothing is on."),
    "windows": "Nothing is open.",
    "unusual": "Everything is closed and off.",
}
# The maximum difference between a spoken number and the measured one, by unit.
_ROUNDING = {"°C": 0.25, "%": 0.5, "W": 0.5}


class House:
    """The home of a day in Home Assistant; it executes commands and records the history of its states."""

    def __init__(self, hass: HomeAssistant, day: Day) -> None:
        self._hass = hass
        self._things = {thing.entity_id: thing for thing in day.things}
        self._odd = day.odd()
        self._devices: dict[str, str] = {}
        self.history = HomeHistory()

    async def furnish(self, day: Day, config_entry_id: str) -> None:
        """Create the areas, entities and satellites, and expose only these entities."""
        hass = self._hass
        for entity_id in hass.states.async_entity_ids():
            async_expose_entity(hass, "conversation", entity_id, should_expose=False)
        areas = {name: ar.async_get(hass).async_get_or_create(name).id for name in day.areas}
        for thing in day.things:
            domain, _, object_id = thing.entity_id.partition(".")
            entry = er.async_get(hass).async_get_or_create(
                domain, "bench", object_id, suggested_object_id=object_id, original_name=thing.name
            )
            er.async_get(hass).async_update_entity(entry.entity_id, area_id=areas[thing.area])
            self.put(thing.entity_id, thing.initial)
            async_expose_entity(hass, "conversation", entry.entity_id, should_expose=True)
        for area in day.satellites:
            devices = dr.async_get(hass)
            device = devices.async_get_or_create(config_entry_id=config_entry_id, identifiers={("bench", area)})
            devices.async_update_device(device.id, area_id=areas[area])
            self._devices[area] = device.id
        for service, state in (("turn_on", "on"), ("turn_off", "off")):
            hass.services.async_register("light", service, self._switches(state))
        hass.bus.async_listen("state_changed", self._on_state)
        await hass.async_block_till_done()

    def begin(self) -> None:
        """Reset every entity to its state at the beginning of the day."""
        for thing in self._things.values():
            self.put(thing.entity_id, thing.initial)
        self.history = HomeHistory()
        for thing in self._things.values():
            self._note(self.state(thing))

    def begin_second(self) -> None:
        """Register all states again, with a few of them not as usual."""
        for entity_id in self._things:
            self._hass.states.async_remove(entity_id)
        self.begin()
        for entity_id in self._odd:
            self.put(entity_id, self._things[entity_id].kind.states[1])

    def put(self, entity_id: str, state: str) -> None:
        """Set the state of an entity."""
        thing = self._things[entity_id]
        self._hass.states.async_set(entity_id, state, {"friendly_name": thing.name, **thing.kind.attributes})

    def state(self, thing: Thing) -> State:
        """Return the current state of an entity."""
        state = self._hass.states.get(thing.entity_id)
        assert state is not None
        return state

    def satellite(self, area: str) -> str:
        """Return the device id of the satellite in an area."""
        return self._devices[area]

    def is_right(self, sentence: Sentence, answer: str) -> bool:
        """Return whether the answer to a question matches the real states, or whether a command was executed."""
        states = {thing: self.state(thing).state for thing in sentence.about}
        if sentence.wanted:
            return set(states.values()) == {sentence.wanted}
        if sentence.kind in _NONE:
            usual = {thing: thing.kind.states[:1] for thing in states if thing.kind.states}
            odd = {thing.name for thing in usual if states[thing] not in usual[thing]}
            named = {name.strip() for name in answer.partition(": ")[2].rstrip(".").split(",")}
            return named == odd if odd else answer == _NONE[sentence.kind]
        said = _SAYS.match(answer)
        return said is not None and any(_is(said["state"], thing, state) for thing, state in states.items())

    def _switches(self, state: str) -> Any:
        @callback
        def switch(call: ServiceCall) -> None:
            for entity_id in call.data["entity_id"]:
                self.put(entity_id, state)

        return switch

    @callback
    def _on_state(self, event: Event[EventStateChangedData]) -> None:
        state = event.data["new_state"]
        if state is not None and state.entity_id in self._things:
            self._note(state)

    def _note(self, state: State) -> None:
        self.history.note(state.name, state_text(state.domain, state.state, state.attributes, "°C"))


def _is(said: str, thing: Thing, state: str) -> bool:
    """Return whether a spoken text means this state: by its name, that of its device class, or within rounding."""
    unit = thing.kind.attributes.get("unit_of_measurement")
    if unit:
        number = _NUMBER.match(said)
        return number is not None and abs(float(number[0]) - float(state)) <= _ROUNDING[unit] + 1e-9
    words = {state, state_text(thing.kind.domain, state, thing.kind.attributes, "°C")}
    return said in words
