"""The entry that configuration.yaml asks for; there is nothing to enter."""

from typing import Any

from homeassistant.config_entries import ConfigFlow, ConfigFlowResult

from . import DOMAIN


class ScriptedVoiceConfigFlow(ConfigFlow, domain=DOMAIN):
    """Adds the entry."""

    async def async_step_import(self, _import_data: dict[str, Any]) -> ConfigFlowResult:
        """Add it at once."""
        return self.async_create_entry(title="Scripted voice", data={})
