"""The config flow that is started from configuration.yaml; the user has nothing to enter."""

from typing import Any

from homeassistant.config_entries import ConfigFlow, ConfigFlowResult

from . import DOMAIN


class ScriptedVoiceConfigFlow(ConfigFlow, domain=DOMAIN):
    """Adds the config entry."""

    async def async_step_import(self, _import_data: dict[str, Any]) -> ConfigFlowResult:
        """Add the config entry without further steps."""
        return self.async_create_entry(title="Scripted voice", data={})
