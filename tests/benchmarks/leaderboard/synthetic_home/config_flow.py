"""The config flow that Home Assistant expects; the project adds the entry itself."""

from homeassistant.config_entries import ConfigFlow


class SyntheticHomeFlow(ConfigFlow, domain="synthetic_home"):
    """A flow without steps."""
