"""Registration of the integration's actions."""

from homeassistant.core import HomeAssistant, callback

from .agents.actions import conversations, memory, turns
from .const import DOMAIN


@callback
def async_setup_services(hass: HomeAssistant) -> None:
    """Register the integration's actions."""
    for name, action, schema, response in (*conversations.ACTIONS, *memory.ACTIONS, *turns.ACTIONS):
        hass.services.async_register(DOMAIN, name, action, schema, response)
