"""A config flow without questions that adds the probe."""

from typing import Any

from homeassistant.config_entries import ConfigFlow, ConfigFlowResult


class ProbeFlow(ConfigFlow, domain="event_loop_probe"):
    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Create the config entry."""
        return self.async_create_entry(title="Event loop probe", data={})
