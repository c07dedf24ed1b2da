"""Totals that an agent's sensors have restored: earlier versions kept them there instead of in the agent's file."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from homeassistant.components.sensor import DOMAIN as SENSOR_DOMAIN, SensorExtraStoredData
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import entity_registry as er, restore_state
from homeassistant.helpers.restore_state import StoredState

from ..const import DOMAIN

_TOTALS = ("evicted_messages", "turns_local", "turns_model", "input_tokens", "cached_input_tokens", "output_tokens")
_COST_SENSOR = "total_cost"
_COST = "cost"
_WITHOUT_PRICE = "without_price"


@callback
def async_restored_totals(hass: HomeAssistant, agent_id: str) -> dict[str, Any] | None:
    """Return an agent's totals in the form of its file, or None if its sensors have none."""
    totals: dict[str, Any] = {}
    for name in _TOTALS:
        if (stored := _stored(hass, agent_id, name)) and isinstance(value := _value(stored), int):
            totals[name] = value
    if stored := _stored(hass, agent_id, _COST_SENSOR):
        if isinstance(cost := _value(stored), Decimal):
            totals[_COST] = str(cost)
        totals[_WITHOUT_PRICE] = stored.state.attributes.get(_WITHOUT_PRICE, 0)
    return totals or None


def _stored(hass: HomeAssistant, agent_id: str, key: str) -> StoredState | None:
    entity_id = er.async_get(hass).async_get_entity_id(SENSOR_DOMAIN, DOMAIN, f"{agent_id}_{key}")
    kept: Any = restore_state.async_get(hass)
    # Home Assistant keeps states by the ids of the entity registry since 2026.11.
    find: Callable[[str], StoredState | None] = getattr(kept, "async_get_stored_state", None) or kept.last_states.get
    return find(entity_id or "")


def _value(stored: StoredState) -> object:
    """Return the value of a sensor, or None if it had none."""
    kept = SensorExtraStoredData.from_dict(stored.extra_data.as_dict()) if stored.extra_data else None
    return kept and kept.native_value
