"""Helpers for entity states and for devices."""

from homeassistant.core import HomeAssistant, State
from homeassistant.helpers import device_registry as dr
from pytest_homeassistant_custom_component.common import MockConfigEntry


def get_state(home: HomeAssistant, entity_id: str) -> State:
    """Return the state of an entity. Fails if it has none."""
    state = home.states.get(entity_id)
    assert state is not None
    return state


def add_satellite(home: HomeAssistant, name: str) -> str:
    """Create a satellite device and return its id."""
    source = MockConfigEntry(domain="wyoming")
    source.add_to_hass(home)
    identifiers = {("wyoming", name.casefold())}
    devices = dr.async_get(home)
    return devices.async_get_or_create(config_entry_id=source.entry_id, identifiers=identifiers, name=name).id
