"""The probe is added with a click."""

from typing import Any

from homeassistant.config_entries import ConfigFlow, ConfigFlowResult


class ProbeFlow(ConfigFlow, domain="event_loop_probe"):
    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask nothing."""
        return self.async_create_entry(title="Event loop probe", data={})
