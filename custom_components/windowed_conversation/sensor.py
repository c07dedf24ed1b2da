"""The diagnostic sensors of an agent. The agent and its windows count; the sensors show the values."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, override

from homeassistant.components.sensor import (
    DOMAIN as SENSOR_DOMAIN,
    SensorDeviceClass,
    SensorEntity,
    SensorEntityDescription,
    SensorStateClass,
)
from homeassistant.config_entries import ConfigSubentry
from homeassistant.const import PERCENTAGE, EntityCategory, UnitOfInformation, UnitOfTime
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.helpers.typing import StateType

from .agents.agent import AccountConfigEntry, Agent
from .agents.statistics import LAST_ROUTES
from .agents.store import async_store
from .const import CONF_PROVIDER, PROVIDER_NONE, SUBENTRY_CONVERSATION, RecordLevel
from .entity import AgentEntity
from .turn.routing import WindowKey
from .window import WindowStats

PARALLEL_UPDATES = 0

_US_DOLLARS = "USD"
# All other counts have no unit: the name says it, and a unit has no singular.
_TOKENS = "tokens"

_MOST_CONVERSATIONS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class AgentSensorDescription(SensorEntityDescription):
    """A value of an agent.

    `is_memory`: a value of the file that all agents share, shown by agents that use it. `is_sum`: a cost, or a total
    that survives restarts. A total shows the value on disk, so that it never falls, even if Home Assistant is killed.
    `needs_model`: a value that never changes in an account without a model.
    """

    value: Callable[[Agent], StateType | Decimal]
    attributes: Callable[[Agent], dict[str, Any]] | None = None
    is_memory: bool = False
    is_sum: bool = False
    needs_model: bool = False


def _window(read: Callable[[WindowStats], StateType]) -> Callable[[Agent], StateType]:
    """Return the function that reads a figure of the most recent conversation, or 0 if there is none."""

    def value(agent: Agent) -> StateType:
        newest = next(iter(agent.windows.stats().values()), None)
        return read(newest) if newest else 0

    return value


def _conversations(agent: Agent) -> dict[str, Any]:
    """Return the figures of the newest conversations: ids and numbers, no text."""
    newest = islice(agent.windows.stats().items(), _MOST_CONVERSATIONS_SHOWN)
    return {
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
        ]
    }


def _utilization(agent: Agent) -> dict[str, Any]:
    """Return the attributes of the utilization: the figures of the newest windows, and their issues.

    `over_budget` explains the sensor's value: the newest exchange alone is larger than the window.
    """
    over_budget = _window(lambda stats: stats.over_budget)(agent)
    return {"over_budget": bool(over_budget), **_conversations(agent), "issues": agent.health().issues()}


def _measured(key: str, unit: str | None, value: Callable[[Agent], StateType], **more: Any) -> AgentSensorDescription:
    return AgentSensorDescription(
        key=key,
        native_unit_of_measurement=unit,
        state_class=SensorStateClass.MEASUREMENT,
        value=value,
        **more,
    )


def _seconds(key: str, value: Callable[[Agent], StateType], **more: Any) -> AgentSensorDescription:
    return _measured(
        key,
        UnitOfTime.SECONDS,
        value,
        device_class=SensorDeviceClass.DURATION,
        # a local turn takes some milliseconds
        suggested_display_precision=3,
        **more,
    )


def _total(name: str, unit: str | None = None, **more: Any) -> AgentSensorDescription:
    """Return the sum in a field of `Totals`."""
    return AgentSensorDescription(
        key=name,
        native_unit_of_measurement=unit,
        state_class=SensorStateClass.TOTAL_INCREASING,
        is_sum=True,
        value=lambda agent: int(getattr(agent.statistics.on_disk.totals, name)),
        **more,
    )


def _memory_value(name: str, **more: Any) -> AgentSensorDescription:
    """Return a figure of `MemoryFigures`: unknown while memory is off, 0 before there is any."""

    def value(agent: Agent) -> StateType:
        store = async_store(agent.hass)
        if store is None or store.writer.state.reason is not None:
            return None
        figures = store.writer.state.statistics
        return getattr(figures, name) if figures else 0

    return AgentSensorDescription(
        key=f"memory_{name}", state_class=SensorStateClass.MEASUREMENT, value=value, is_memory=True, **more
    )


# Few people put those on a dashboard that are disabled: they follow from the others, or change with every turn.
SENSORS = (
    _measured(
        "window_messages", None, _window(lambda stats: stats.message_count), entity_registry_enabled_default=False
    ),
    _measured(
        "window_exchanges", None, _window(lambda stats: stats.exchange_count), entity_registry_enabled_default=False
    ),
    _measured("window_tokens", _TOKENS, _window(lambda stats: stats.current_tokens)),
    _measured(
        "window_size",
        _TOKENS,
        lambda agent: agent.config.policy.history_tokens,
        entity_registry_enabled_default=False,
    ),
    _measured(
        "window_utilization",
        PERCENTAGE,
        _window(lambda stats: round(stats.utilization, 1)),
        suggested_display_precision=1,
        attributes=_utilization,
    ),
    _measured("active_conversations", None, lambda agent: len(agent.windows)),
    AgentSensorDescription(
        key="last_route",
        device_class=SensorDeviceClass.ENUM,
        options=list(LAST_ROUTES),
        value=lambda agent: agent.statistics.last_route,
        attributes=lambda agent: {**agent.statistics.last_answer, "message": agent.statistics.last_message},
    ),
    _seconds("time_to_first_token", lambda agent: agent.statistics.time_to_first_token, needs_model=True),
    _seconds("turn_duration", lambda agent: agent.statistics.turn_duration),
    _total("evicted_messages", entity_registry_enabled_default=False),
    _total("turns_local"),
    _total("turns_model", needs_model=True),
    _total("turns_fallback", needs_model=True),
    _total("turns_failed"),
    _total("requests", needs_model=True),
    _total("tool_calls", needs_model=True, entity_registry_enabled_default=False),
    _total("failed_tool_calls", needs_model=True, entity_registry_enabled_default=False),
    _total("input_tokens", _TOKENS, needs_model=True),
    _total("cached_input_tokens", _TOKENS, needs_model=True),
    _total("output_tokens", _TOKENS, needs_model=True),
)

MEMORY = (
    _memory_value("facts"),
    _memory_value("turns", entity_registry_enabled_default=False),
    _memory_value(
        "size",
        device_class=SensorDeviceClass.DATA_SIZE,
        native_unit_of_measurement=UnitOfInformation.BYTES,
        suggested_unit_of_measurement=UnitOfInformation.MEGABYTES,
        suggested_display_precision=1,
        entity_registry_enabled_default=False,
    ),
)

# Of the records that all agents give to the thread that writes.
RECORDS = (
    AgentSensorDescription(
        key="records_dropped",
        state_class=SensorStateClass.TOTAL_INCREASING,
        is_memory=True,
        entity_registry_enabled_default=False,
        value=lambda agent: store.writer.counts.lost if (store := async_store(agent.hass)) else 0,
    ),
)

_WITHOUT_PRICE = "without_price"

# For accounts whose models have known prices.
COSTS = (
    AgentSensorDescription(
        key="turn_cost",
        device_class=SensorDeviceClass.MONETARY,
        native_unit_of_measurement=_US_DOLLARS,
        suggested_display_precision=5,
        is_sum=True,
        value=lambda agent: agent.statistics.costs.turn,
    ),
    AgentSensorDescription(
        key="total_cost",
        device_class=SensorDeviceClass.MONETARY,
        native_unit_of_measurement=_US_DOLLARS,
        state_class=SensorStateClass.TOTAL,
        suggested_display_precision=4,
        is_sum=True,
        value=lambda agent: agent.statistics.on_disk.costs.total,
        attributes=lambda agent: {_WITHOUT_PRICE: agent.statistics.on_disk.costs.without_price},
    ),
)


async def async_setup_entry(
    hass: HomeAssistant, entry: AccountConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add the sensors of each agent, and remove those that an agent had and that can no longer move."""
    has_model = entry.data[CONF_PROVIDER] != PROVIDER_NONE
    added = set[str]()
    for subentry in entry.get_subentries_of_type(SUBENTRY_CONVERSATION):
        agent = entry.runtime_data.agents[subentry.subentry_id]
        costs, memory = COSTS if agent.vendor is not None else (), MEMORY if agent.config.memory else ()
        records = RECORDS if agent.config.memory or agent.config.record is not RecordLevel.OFF else ()
        moving = (each for each in (*SENSORS, *costs, *memory, *records) if has_model or not each.needs_model)
        sensors = [AgentSensor(agent, subentry, description) for description in moving]
        async_add_entities(sensors, config_subentry_id=subentry.subentry_id)
        added |= {str(sensor.unique_id) for sensor in sensors}
    registry = er.async_get(hass)
    for entity in er.async_entries_for_config_entry(registry, entry.entry_id):
        if entity.domain == SENSOR_DOMAIN and entity.unique_id not in added:
            registry.async_remove(entity.entity_id)


class AgentSensor(AgentEntity, SensorEntity):
    """A figure of the agent. Its state is written only when it has changed."""

    _attr_entity_category = EntityCategory.DIAGNOSTIC
    _unrecorded_attributes = frozenset({"conversations"})

    entity_description: AgentSensorDescription

    def __init__(self, agent: Agent, subentry: ConfigSubentry, description: AgentSensorDescription) -> None:
        super().__init__(agent, subentry)
        self.entity_description = description
        self._attr_translation_key = description.key
        self._attr_unique_id = f"{subentry.subentry_id}_{description.key}"
        self._update()

    @override
    async def async_added_to_hass(self) -> None:
        await super().async_added_to_hass()
        # a turn may have ended since this entity was created
        self._update()
        if self.entity_description.is_sum:
            self.async_on_remove(self.agent.statistics.listen(self._on_change))
        elif self.entity_description.is_memory and (store := async_store(self.hass)) is not None:
            self.async_on_remove(store.async_listen(self._on_change))
            self.async_on_remove(self.agent.listen(self._on_change))
        else:
            self.async_on_remove(self.agent.listen(self._on_change))

    @callback
    def _on_change(self) -> None:
        if self._update():
            self.async_write_ha_state()

    def _update(self) -> bool:
        """Read the figure. Return whether it has changed."""
        description = self.entity_description
        before = self._attr_native_value, getattr(self, "_attr_extra_state_attributes", None)
        self._attr_native_value = description.value(self.agent)
        if description.attributes:
            self._attr_extra_state_attributes = description.attributes(self.agent)
        return before != (self._attr_native_value, getattr(self, "_attr_extra_state_attributes", None))
