"""The states that Home Assistant shows."""

from homeassistant.core import HomeAssistant, State


def state_of(home: HomeAssistant, entity_id: str) -> State:
    """Return the state of an entity, which must have one."""
    state = home.states.get(entity_id)
    assert state is not None
    return state
