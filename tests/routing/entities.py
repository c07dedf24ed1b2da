"""Entities of a simulated home: real entities of their domains, whose services change their state."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, override

from homeassistant.components.cover import CoverDeviceClass, CoverEntity, CoverEntityFeature
from homeassistant.components.fan import FanEntity
from homeassistant.components.fan.const import FanEntityFeature
from homeassistant.components.light import LightEntity
from homeassistant.components.light.const import ColorMode
from homeassistant.components.lock import LockEntity
from homeassistant.components.switch import SwitchEntity
from homeassistant.components.vacuum import StateVacuumEntity
from homeassistant.components.vacuum.const import VacuumActivity, VacuumEntityFeature
from homeassistant.components.valve.const import ValveEntityFeature
from homeassistant.components.valve.entity import ValveEntity
from homeassistant.helpers.entity import Entity

type Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spec:
    """The description of an entity in a set of sentences; without a state it has the usual state of its domain."""

    entity_id: str
    name: str
    area: str | None
    device: str | None
    state: str | None
    attributes: Mapping[str, Any]

    @property
    def domain(self) -> str:
        """The domain of the entity."""
        return self.entity_id.partition(".")[0]


class Fixture(Entity):
    """The base class of the entities; it can restore the state from the set of sentences, or a variation of it."""

    _attr_should_poll = False

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.entity_id = spec.entity_id
        self._attr_unique_id = spec.entity_id
        self._attr_name = spec.name
        self._put(spec.state, dict(spec.attributes))

    def restore(self, state: str | None = None, attributes: Mapping[str, Any] | None = None) -> None:
        """Restore the entity, except for the given state and attributes."""
        self._put(state or self.spec.state, {**self.spec.attributes, **(attributes or {})})
        self.write_state()

    def write_state(self) -> None:
        """Write the current state to Home Assistant."""
        if self.hass:
            self.async_write_ha_state()

    @abstractmethod
    def _put(self, state: str | None, attributes: Json) -> None:
        """Set the state and the attributes."""


def word(value: object) -> str:
    """Return the last part of a text, such as an enum member's name: "cover.CoverDeviceClass.BLIND" becomes "BLIND"."""
    return str(value).rpartition(".")[2]


def device_class[T: StrEnum](kinds: type[T], attributes: Json) -> T | None:
    """Return the device class among the attributes, or None if the domain does not have it."""
    name = word(attributes.get("device_class", "")).lower()
    return kinds(name) if name in list(kinds) else None


class Light(Fixture, LightEntity):
    """A light, with brightness and colour if it supports them."""

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        modes = {ColorMode(mode) for mode in attributes.get("supported_color_modes", ("onoff",))}
        self._attr_supported_color_modes = modes
        self._attr_color_mode = next(iter(modes))
        self._attr_is_on = state != "off"
        self._attr_brightness = attributes.get("brightness")
        self._attr_rgb_color = tuple(attributes.get("rgb_color", (255, 255, 255)))

    async def async_turn_on(self, **what: Any) -> None:
        """See `LightEntity`."""
        self._attr_is_on = True
        self._attr_brightness = what.get("brightness", self._attr_brightness)
        self._attr_rgb_color = what.get("rgb_color", self._attr_rgb_color)
        self.write_state()

    async def async_turn_off(self, **_: Any) -> None:
        """See `LightEntity`."""
        self._attr_is_on = False
        self.write_state()


class Switch(Fixture, SwitchEntity):
    """A switch."""

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_is_on = state == "on"

    @override
    async def async_turn_on(self, **_: Any) -> None:
        self._attr_is_on = True
        self.write_state()

    @override
    async def async_turn_off(self, **_: Any) -> None:
        self._attr_is_on = False
        self.write_state()


class Cover(Fixture, CoverEntity):
    """A cover that moves at once."""

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_device_class = device_class(CoverDeviceClass, attributes)
        self._attr_supported_features = CoverEntityFeature(0)
        for feature in attributes.get("supported_features", ("OPEN", "CLOSE")):
            self._attr_supported_features |= CoverEntityFeature[word(feature)]
        self._attr_is_closed = state != "open"
        self._attr_current_cover_position = None
        if self._attr_supported_features & CoverEntityFeature.SET_POSITION:
            self._attr_current_cover_position = 0 if self._attr_is_closed else 100

    @override
    async def async_open_cover(self, **_: Any) -> None:
        self._move_to(100)

    @override
    async def async_close_cover(self, **_: Any) -> None:
        self._move_to(0)

    @override
    async def async_set_cover_position(self, **what: Any) -> None:
        self._move_to(what["position"])

    def _move_to(self, position: int) -> None:
        self._attr_is_closed = position == 0
        if self._attr_current_cover_position is not None:
            self._attr_current_cover_position = position
        self.write_state()


class Lock(Fixture, LockEntity):
    """A lock."""

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_is_locked = state != "unlocked"

    @override
    async def async_lock(self, **_: Any) -> None:
        self._attr_is_locked = True
        self.write_state()

    @override
    async def async_unlock(self, **_: Any) -> None:
        self._attr_is_locked = False
        self.write_state()


class Fan(Fixture, FanEntity):
    """A fan with a speed."""

    _attr_supported_features = FanEntityFeature.TURN_ON | FanEntityFeature.TURN_OFF | FanEntityFeature.SET_SPEED

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_percentage = attributes.get("percentage", 100 if state == "on" else 0)

    @override
    async def async_turn_on(self, percentage: int | None = None, preset_mode: str | None = None, **_: Any) -> None:
        await self.async_set_percentage(percentage or 100)

    @override
    async def async_turn_off(self, **_: Any) -> None:
        await self.async_set_percentage(0)

    @override
    async def async_set_percentage(self, percentage: int) -> None:
        self._attr_percentage = percentage
        self.write_state()


class Vacuum(Fixture, StateVacuumEntity):
    """A vacuum cleaner."""

    _attr_supported_features = (
        VacuumEntityFeature.START
        | VacuumEntityFeature.STOP
        | VacuumEntityFeature.STATE
        | VacuumEntityFeature.PAUSE
        | VacuumEntityFeature.RETURN_HOME
    )

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._go(VacuumActivity(state) if state in list(VacuumActivity) else VacuumActivity.IDLE)

    @override
    async def async_start(self) -> None:
        self._go(VacuumActivity.CLEANING)

    @override
    async def async_pause(self) -> None:
        self._go(VacuumActivity.PAUSED)

    @override
    async def async_stop(self, **_: Any) -> None:
        self._go(VacuumActivity.IDLE)

    @override
    async def async_return_to_base(self, **_: Any) -> None:
        self._go(VacuumActivity.RETURNING)

    def _go(self, activity: VacuumActivity) -> None:
        self._attr_activity = activity
        self.write_state()


class Valve(Fixture, ValveEntity):
    """A valve that knows its position."""

    _attr_reports_position = True
    _attr_supported_features = ValveEntityFeature.OPEN | ValveEntityFeature.CLOSE | ValveEntityFeature.SET_POSITION

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_current_valve_position = 100 if state == "open" else 0

    @override
    async def async_open_valve(self) -> None:
        await self.async_set_valve_position(100)

    @override
    async def async_close_valve(self) -> None:
        await self.async_set_valve_position(0)

    @override
    async def async_set_valve_position(self, position: int) -> None:
        self._attr_current_valve_position = position
        self.write_state()
