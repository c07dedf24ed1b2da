"""A config flow that asks for the address of the server."""

from typing import Any

from homeassistant.config_entries import ConfigFlow, ConfigFlowResult
from homeassistant.const import CONF_URL
import probatio


class GitHubFlow(ConfigFlow, domain="github_on_loopback"):
    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Create the config entry with the entered address."""
        if user_input is None:
            return self.async_show_form(data_schema=probatio.Schema({probatio.Required(CONF_URL): str}))
        return self.async_create_entry(title="GitHub on loopback", data=user_input)
