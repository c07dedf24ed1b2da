"""More entities of a simulated home: media players, thermostats, sensors and lists; and the class for each domain."""

from typing import Any, override

from homeassistant.components.binary_sensor import BinarySensorEntity
from homeassistant.components.binary_sensor.const import BinarySensorDeviceClass
from homeassistant.components.climate import ClimateEntity
from homeassistant.components.climate.const import ClimateEntityFeature, HVACMode
from homeassistant.components.media_player import MediaPlayerEntity
from homeassistant.components.media_player.const import MediaPlayerEntityFeature, MediaPlayerState
from homeassistant.components.sensor import SensorDeviceClass, SensorEntity
from homeassistant.components.todo.const import TodoItemStatus, TodoListEntityFeature
from homeassistant.components.todo.entity import TodoItem, TodoListEntity
from homeassistant.components.weather import WeatherEntity
from homeassistant.const import UnitOfTemperature

from .entities import Cover, Fan, Fixture, Json, Light, Lock, Switch, Vacuum, Valve, device_class

# The values of these device classes are neither numbers nor texts.
_DATES = (SensorDeviceClass.DATE, SensorDeviceClass.TIMESTAMP)

# Newer versions of Home Assistant warn about the old name of this attribute.
_CLIMATE_UNIT = (
    "_attr_native_temperature_unit" if hasattr(ClimateEntity, "native_temperature_unit") else "_attr_temperature_unit"
)


class MediaPlayer(Fixture, MediaPlayerEntity):
    """A media player."""

    _attr_supported_features = (
        MediaPlayerEntityFeature.PLAY
        | MediaPlayerEntityFeature.PAUSE
        | MediaPlayerEntityFeature.STOP
        | MediaPlayerEntityFeature.VOLUME_STEP
        | MediaPlayerEntityFeature.VOLUME_MUTE
        | MediaPlayerEntityFeature.VOLUME_SET
        | MediaPlayerEntityFeature.TURN_ON
        | MediaPlayerEntityFeature.TURN_OFF
        | MediaPlayerEntityFeature.NEXT_TRACK
        | MediaPlayerEntityFeature.PREVIOUS_TRACK
        | MediaPlayerEntityFeature.PLAY_MEDIA
    )

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_state = MediaPlayerState(state or "playing")
        self._attr_media_track = attributes.get("media_track", 1)
        self._attr_volume_level = float(attributes.get("volume_level", 0.5))

    def _go(self, state: MediaPlayerState) -> None:
        self._attr_state = state
        self.write_state()

    @override
    async def async_turn_on(self) -> None:
        self._go(MediaPlayerState.PLAYING)

    @override
    async def async_turn_off(self) -> None:
        self._go(MediaPlayerState.OFF)

    @override
    async def async_media_play(self) -> None:
        self._go(MediaPlayerState.PLAYING)

    @override
    async def async_media_pause(self) -> None:
        self._go(MediaPlayerState.PAUSED)

    @override
    async def async_media_stop(self) -> None:
        self._go(MediaPlayerState.IDLE)

    @override
    async def async_media_next_track(self) -> None:
        self._skip(1)

    @override
    async def async_media_previous_track(self) -> None:
        self._skip(-1)

    def _skip(self, tracks: int) -> None:
        self._attr_media_track = (self._attr_media_track or 0) + tracks
        self.write_state()

    @override
    async def async_set_volume_level(self, volume: float) -> None:
        self._attr_volume_level = volume
        self.write_state()

    @override
    async def async_mute_volume(self, mute: bool) -> None:
        self._attr_is_volume_muted = mute
        await self.async_set_volume_level(0.0 if mute else 0.5)

    @override
    async def async_play_media(self, media_type: str, media_id: str, **_: Any) -> None:
        self._attr_media_content_id = media_id
        self._go(MediaPlayerState.PLAYING)


class Climate(Fixture, ClimateEntity):
    """A thermostat."""

    _attr_supported_features = (
        ClimateEntityFeature.TARGET_TEMPERATURE | ClimateEntityFeature.TURN_ON | ClimateEntityFeature.TURN_OFF
    )
    _attr_hvac_modes = [HVACMode.HEAT, HVACMode.OFF]  # noqa: RUF012 - declared so by Home Assistant

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        setattr(self, _CLIMATE_UNIT, UnitOfTemperature.CELSIUS)
        self._attr_hvac_mode = HVACMode(state or "heat")
        self._attr_current_temperature = attributes.get("current_temperature")
        self._attr_target_temperature = attributes.get("temperature", 20)

    @override
    async def async_set_temperature(self, **what: Any) -> None:
        self._attr_target_temperature = what["temperature"]
        self.write_state()

    @override
    async def async_set_hvac_mode(self, hvac_mode: HVACMode) -> None:
        self._attr_hvac_mode = hvac_mode
        self.write_state()


class Sensor(Fixture, SensorEntity):
    """A sensor whose value is given as text."""

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        kind = device_class(SensorDeviceClass, attributes)
        self._attr_device_class = None if kind in _DATES else kind
        self._attr_native_unit_of_measurement = attributes.get(
            "native_unit_of_measurement", attributes.get("unit_of_measurement")
        )
        self._attr_native_value = state


class BinarySensor(Fixture, BinarySensorEntity):
    """A binary sensor."""

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_device_class = device_class(BinarySensorDeviceClass, attributes)
        self._attr_is_on = state == "on"


class Weather(Fixture, WeatherEntity):
    """The weather at a place."""

    _attr_native_temperature_unit = UnitOfTemperature.CELSIUS

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_condition = attributes.get("condition", state)
        self._attr_native_temperature = attributes.get("native_temperature", 8)


class TodoList(Fixture, TodoListEntity):
    """A to-do list."""

    _attr_supported_features = (
        TodoListEntityFeature.CREATE_TODO_ITEM
        | TodoListEntityFeature.DELETE_TODO_ITEM
        | TodoListEntityFeature.UPDATE_TODO_ITEM
    )

    @override
    def _put(self, state: str | None, attributes: Json) -> None:
        self._attr_todo_items = [
            TodoItem(summary=text, uid=text, status=TodoItemStatus.NEEDS_ACTION)
            for text in attributes.get("todo_items", ())
        ]

    @property
    def open_items(self) -> list[str]:
        """The items that are not yet completed."""
        items = self._attr_todo_items or ()
        return [item.summary or "" for item in items if item.status is TodoItemStatus.NEEDS_ACTION]

    @override
    async def async_create_todo_item(self, item: TodoItem) -> None:
        item.uid = item.summary
        self._attr_todo_items = [*(self._attr_todo_items or ()), item]
        self.write_state()

    @override
    async def async_update_todo_item(self, item: TodoItem) -> None:
        self._attr_todo_items = [item if each.uid == item.uid else each for each in self._attr_todo_items or ()]
        self.write_state()

    @override
    async def async_delete_todo_items(self, uids: list[str]) -> None:
        self._attr_todo_items = [item for item in self._attr_todo_items or () if item.uid not in uids]
        self.write_state()


CLASSES: dict[str, type[Fixture]] = {
    "binary_sensor": BinarySensor,
    "climate": Climate,
    "cover": Cover,
    "fan": Fan,
    "light": Light,
    "lock": Lock,
    "media_player": MediaPlayer,
    "sensor": Sensor,
    "switch": Switch,
    "todo": TodoList,
    "vacuum": Vacuum,
    "valve": Valve,
    "weather": Weather,
}
