"""The diagnostic sensors of the agents and of memory. They only show values; agents, windows and store count them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import islice
import logging
from operator import attrgetter
from typing import Any, override

from homeassistant.components.sensor import (
    DOMAIN as SENSOR_DOMAIN,
    SensorDeviceClass,
    SensorEntity,
    SensorEntityCapabilityAttribute,
    SensorEntityDescription,
    SensorStateClass,
)
from homeassistant.config_entries import ConfigSubentry
from homeassistant.const import PERCENTAGE, EntityCategory, UnitOfInformation, UnitOfTime
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.device_registry import DeviceEntryType, DeviceInfo
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.helpers.typing import StateType

from .agents.agent import AccountConfigEntry, Agent
from .agents.statistics import LAST_ROUTE_STATES
from .agents.store import AgentStore, async_get_store
from .bridge.errors import log_fault
from .const import CONF_PROVIDER, DOMAIN, PROVIDER_NONE
from .entity import AgentEntity, async_share_entities
from .turn.routing import WindowKey

_LOGGER = logging.getLogger(__name__)

PARALLEL_UPDATES = 0

_COST_UNIT = "USD"
# Only tokens have a unit. The names of all other counts say what is counted, and a unit has no singular form.
_UNIT_TOKENS = "tokens"

_MAX_SHOWN_CONVERSATIONS = 20

# A local turn takes only some milliseconds.
_DURATION: dict[str, Any] = {
    "native_unit_of_measurement": UnitOfTime.SECONDS,
    "device_class": SensorDeviceClass.DURATION,
    "suggested_display_precision": 3,
}

# The identifier and the translation key of the device of memory.
_MEMORY_DEVICE = "memory"


@dataclass(frozen=True, kw_only=True)
class _ValueSensorDescription[Source](SensorEntityDescription):
    """Description of a sensor for one value of a source."""

    value_fn: Callable[[Source], StateType | Decimal]
    attributes_fn: Callable[[Source], dict[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class AgentSensorDescription(_ValueSensorDescription[Agent]):
    """Description of a sensor for one value of an agent."""

    # Whether the value never changes in an account without a model.
    needs_model: bool = False
    # Whether AI tasks have this value, too.
    suits_tasks: bool = False


type MemorySensorDescription = _ValueSensorDescription[AgentStore]


def _build_window_sensor(name: str, key: str, unit: str | None = None, **more: Any) -> AgentSensorDescription:
    """Return the sensor of a `WindowStats` field of the most recent conversation. Its value is 0 if there is none."""

    def get_value(agent: Agent) -> StateType:
        newest = next(iter(agent.window_stats.values()), None)
        return round(getattr(newest, name), 1) if newest else 0

    return _build_gauge(key, get_value, native_unit_of_measurement=unit, **more)


def _usage_attrs(agent: Agent) -> dict[str, Any]:
    """Return the utilization sensor's attributes: statistics of the newest windows, and their issues, without text.

    `over_budget` explains a value of 100 %: the newest exchange alone exceeds the token budget.
    """
    newest = [*islice(agent.window_stats.items(), _MAX_SHOWN_CONVERSATIONS)]
    return {
        "over_budget": bool(newest) and newest[0][1].over_budget,
        "conversations": [
            {
                "conversation_id": WindowKey.parse(key).conversation,
                "messages": stats.message_count,
                "exchanges": stats.exchange_count,
                "tokens": stats.current_tokens,
                "utilization": round(stats.utilization, 1),
                "over_budget": stats.over_budget,
                "evicted_messages": stats.evicted_messages,
            }
            for key, stats in newest
        ],
        "issues": agent.state.notes_by_window.list_issues(),
    }


def _build_gauge(key: str, value: Callable[[Agent], StateType], **more: Any) -> AgentSensorDescription:
    return AgentSensorDescription(key=key, state_class=SensorStateClass.MEASUREMENT, value_fn=value, **more)


def _build_total_sensor(name: str, unit: str | None = None, **more: Any) -> AgentSensorDescription:
    """Return the sensor of a total. It shows the value on disk, so that it never decreases, even after a kill."""
    return AgentSensorDescription(
        key=name,
        native_unit_of_measurement=unit,
        state_class=SensorStateClass.TOTAL_INCREASING,
        value_fn=attrgetter(f"statistics.on_disk.totals.{name}"),
        **more,
    )


def _build_memory_sensor(name: str, **more: Any) -> MemorySensorDescription:
    """Return the sensor of a memory statistic: unknown while memory cannot be used, and 0 before the file exists."""

    def get_value(store: AgentStore) -> StateType:
        state = store.writer.state
        if state.reason is not None:
            return None
        return getattr(state.statistics, name) if state.statistics else 0

    return _ValueSensorDescription(
        key=f"memory_{name}", state_class=SensorStateClass.MEASUREMENT, value_fn=get_value, **more
    )


# An agent has at most twelve enabled entities. Sensors that few people need, or that follow from others, are disabled.
SENSORS = (
    _build_window_sensor("current_tokens", "window_tokens", _UNIT_TOKENS),
    _build_window_sensor(
        "utilization", "window_utilization", PERCENTAGE, suggested_display_precision=1, attributes_fn=_usage_attrs
    ),
    _build_gauge("active_conversations", lambda agent: len(agent.window_stats), entity_registry_enabled_default=False),
    AgentSensorDescription(
        key="last_route",
        device_class=SensorDeviceClass.ENUM,
        options=list(LAST_ROUTE_STATES),
        value_fn=attrgetter("statistics.last_route"),
        # the activity log leaves out sensors with a state class, even an empty one; its line for the turn has the route
        attributes_fn=lambda agent: {
            **agent.statistics.last_answer,
            "message": agent.statistics.last_error,
            SensorEntityCapabilityAttribute.STATE_CLASS: None,
        },
    ),
    _build_gauge(
        "time_to_first_token",
        attrgetter("statistics.time_to_first_token"),
        needs_model=True,
        entity_registry_enabled_default=False,
        **_DURATION,
    ),
    _build_gauge("turn_duration", attrgetter("statistics.turn_duration"), **_DURATION),
    _build_total_sensor("turns_local"),
    _build_total_sensor("turns_model", needs_model=True),
    _build_total_sensor("turns_fallback", needs_model=True, entity_registry_enabled_default=False),
    _build_total_sensor("turns_failed"),
    _build_total_sensor("requests", needs_model=True, suits_tasks=True, entity_registry_enabled_default=False),
    _build_total_sensor("tool_calls", needs_model=True, entity_registry_enabled_default=False),
    _build_total_sensor("failed_tool_calls", needs_model=True, entity_registry_enabled_default=False),
    _build_total_sensor("input_tokens", _UNIT_TOKENS, needs_model=True, suits_tasks=True),
    _build_total_sensor("cached_input_tokens", _UNIT_TOKENS, needs_model=True, entity_registry_enabled_default=False),
    _build_total_sensor("output_tokens", _UNIT_TOKENS, needs_model=True, suits_tasks=True),
)

# These sensors stand once for all agents, on their own device, because all agents share the store.
MEMORY_SENSORS: tuple[MemorySensorDescription, ...] = (
    _build_memory_sensor("facts"),
    _build_memory_sensor("turns"),
    _build_memory_sensor(
        "size",
        device_class=SensorDeviceClass.DATA_SIZE,
        native_unit_of_measurement=UnitOfInformation.BYTES,
        suggested_unit_of_measurement=UnitOfInformation.MEGABYTES,
        suggested_display_precision=1,
    ),
)

# These sensors are only for accounts whose models have known prices.
COST_SENSORS = (
    AgentSensorDescription(
        key="turn_cost",
        device_class=SensorDeviceClass.MONETARY,
        native_unit_of_measurement=_COST_UNIT,
        suggested_display_precision=5,
        value_fn=attrgetter("statistics.costs.last_turn"),
    ),
    AgentSensorDescription(
        key="total_cost",
        device_class=SensorDeviceClass.MONETARY,
        native_unit_of_measurement=_COST_UNIT,
        state_class=SensorStateClass.TOTAL,
        suggested_display_precision=4,
        suits_tasks=True,
        value_fn=attrgetter("statistics.on_disk.costs.total"),
        attributes_fn=lambda agent: {"without_price": agent.statistics.on_disk.costs.without_price},
    ),
)


async def async_setup_entry(
    hass: HomeAssistant, entry: AccountConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add the sensors of each agent and of memory, and remove existing ones whose values can no longer change."""
    has_model = entry.data[CONF_PROVIDER] != PROVIDER_NONE
    added = set[str]()
    agents, tasks = entry.runtime_data.agents, entry.runtime_data.tasks
    for subentry_id, agent in (agents | tasks).items():
        sensors = [
            AgentSensor(agent, entry.subentries[subentry_id], each)
            for each in (*SENSORS, *(COST_SENSORS if agent.vendor is not None else ()))
            if (each.suits_tasks or subentry_id in agents) and (has_model or not each.needs_model)
        ]
        update = partial(_update_sensors, sensors)
        entry.async_on_unload(agent.statistics.add_listener(update))
        entry.async_on_unload(agent.add_listener(update))
        async_add_entities(sensors, config_subentry_id=subentry_id)
        added |= {str(sensor.unique_id) for sensor in sensors}
    registry = er.async_get(hass)
    for entity in er.async_entries_for_config_entry(registry, entry.entry_id):
        if entity.domain == SENSOR_DOMAIN and entity.config_subentry_id is not None and entity.unique_id not in added:
            registry.async_remove(entity.entity_id)

    @callback
    def add_memory_sensors() -> None:
        if (store := async_get_store(hass)) is not None:
            async_add_entities([MemorySensor(store, description) for description in MEMORY_SENSORS])

    async_share_entities(hass, entry, SENSOR_DOMAIN, [each.key for each in MEMORY_SENSORS], add_memory_sensors)


def _update_sensors(sensors: Iterable[_ValueSensor[Any]]) -> None:
    """Update the sensors after a change. An error in one sensor is logged and does not stop the others."""
    for sensor in sensors:
        try:
            if sensor.is_added and sensor.refresh_value():
                sensor.async_write_ha_state()
        except Exception as err:  # noqa: BLE001 - it stops no other sensor
            log_fault(_LOGGER, "A sensor could not be updated", err)


class _ValueSensor[Source](SensorEntity):
    """A sensor for one value of a source. The state is written only after a change, and only while it is added."""

    entity_description: _ValueSensorDescription[Source]
    _attr_entity_category = EntityCategory.DIAGNOSTIC
    _attr_has_entity_name = True
    _attr_should_poll = False
    is_added = False

    def __init__(self, source: Source, description: _ValueSensorDescription[Source], unique_id: str) -> None:
        self._source = source
        self.entity_description = description
        self._attr_translation_key = description.key
        self._attr_unique_id = unique_id
        self._attr_extra_state_attributes = {}
        self.refresh_value()

    @override
    async def async_added_to_hass(self) -> None:
        await super().async_added_to_hass()
        # a turn may have ended since this entity was created
        self.refresh_value()
        self.is_added = True

    @override
    async def async_will_remove_from_hass(self) -> None:
        self.is_added = False

    def refresh_value(self) -> bool:
        """Read the value again. Return whether it has changed."""
        description = self.entity_description
        before = self._attr_native_value, self._attr_extra_state_attributes
        self._attr_native_value = description.value_fn(self._source)
        if description.attributes_fn:
            self._attr_extra_state_attributes = description.attributes_fn(self._source)
        return before != (self._attr_native_value, self._attr_extra_state_attributes)


class AgentSensor(AgentEntity, _ValueSensor[Agent]):
    """A sensor for one value of an agent."""

    _unrecorded_attributes = frozenset({"conversations"})

    entity_description: AgentSensorDescription

    def __init__(self, agent: Agent, subentry: ConfigSubentry, description: AgentSensorDescription) -> None:
        AgentEntity.__init__(self, agent, subentry)
        _ValueSensor.__init__(self, agent, description, f"{subentry.subentry_id}_{description.key}")


class MemorySensor(_ValueSensor[AgentStore]):
    """A sensor for one value of the store that all agents share."""

    def __init__(self, store: AgentStore, description: MemorySensorDescription) -> None:
        # the id is not derived from an account, because the sensor outlives its account
        super().__init__(store, description, unique_id=description.key)
        self._attr_device_info = DeviceInfo(
            identifiers={(DOMAIN, _MEMORY_DEVICE)},
            translation_key=_MEMORY_DEVICE,
            manufacturer="Windowed Conversation",
            entry_type=DeviceEntryType.SERVICE,
        )

    @override
    async def async_added_to_hass(self) -> None:
        await super().async_added_to_hass()
        self.async_on_remove(self._source.async_add_listener(partial(_update_sensors, (self,))))
