"""The form of the window's settings: defaults for all agents of an account, applied to open conversations at once."""

from typing import Any

from homeassistant.config_entries import ConfigFlowResult, OptionsFlow
from homeassistant.const import PERCENTAGE, UnitOfTime
from homeassistant.helpers.selector import (
    NumberSelector,
    NumberSelectorConfig,
    NumberSelectorMode,
)
import probatio

from .const import (
    CONF_EXPIRY_HOURS,
    CONF_HISTORY_TOKENS,
    CONF_TRIM_SHARE,
    DEFAULT_EXPIRY_HOURS,
    DEFAULT_POLICY,
)

_DEFAULTS = {
    CONF_HISTORY_TOKENS: DEFAULT_POLICY.history_tokens,
    CONF_TRIM_SHARE: round(DEFAULT_POLICY.share * 100),
    CONF_EXPIRY_HOURS: DEFAULT_EXPIRY_HOURS,
}

_SMALLEST_WINDOW = 100
_LARGEST_WINDOW = 2_000_000
_LARGEST_SHARE = 90
_LONGEST_EXPIRY = 8760


def window_size_selector() -> NumberSelector:
    """Return the field for a window's size in tokens."""
    return NumberSelector(
        NumberSelectorConfig(
            min=_SMALLEST_WINDOW,
            max=_LARGEST_WINDOW,
            step=1,
            mode=NumberSelectorMode.BOX,
            unit_of_measurement="tokens",
        )
    )


def _schema() -> probatio.Schema:
    share = NumberSelectorConfig(min=0, max=_LARGEST_SHARE, step=1, unit_of_measurement=PERCENTAGE)
    expiry = NumberSelectorConfig(
        min=1,
        max=_LONGEST_EXPIRY,
        step=1,
        mode=NumberSelectorMode.BOX,
        unit_of_measurement=UnitOfTime.HOURS,
    )
    return probatio.Schema(
        {
            probatio.Required(CONF_HISTORY_TOKENS): window_size_selector(),
            probatio.Required(CONF_TRIM_SHARE): NumberSelector(share),
            probatio.Required(CONF_EXPIRY_HOURS): NumberSelector(expiry),
        }
    )


class WindowOptionsFlow(OptionsFlow):
    """The window's settings."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the settings; the account's listener applies them."""
        if user_input is not None:
            return self.async_create_entry(data={key: int(value) for key, value in user_input.items()})
        known = _DEFAULTS | dict(self.config_entry.options)
        return self.async_show_form(step_id="init", data_schema=self.add_suggested_values_to_schema(_schema(), known))
