"""The form of the window's settings: defaults for all agents of an account, applied to open conversations at once."""

from typing import Any, get_args

from homeassistant.config_entries import ConfigFlowResult, OptionsFlow
from homeassistant.const import PERCENTAGE, UnitOfTime
from homeassistant.helpers.selector import (
    NumberSelector,
    NumberSelectorConfig,
    NumberSelectorMode,
    SelectSelector,
    SelectSelectorConfig,
)
import probatio

from .const import (
    CONF_EXPIRY_HOURS,
    CONF_HISTORY_TOKENS,
    CONF_PERSISTENCE,
    CONF_TOOL_RESULTS,
    CONF_TRIM_SHARE,
    DEFAULT_EXPIRY_HOURS,
    DEFAULT_PERSISTENCE,
    DEFAULT_POLICY,
    Persistence,
)
from .window.policy import ToolResults

_DEFAULTS = {
    CONF_HISTORY_TOKENS: DEFAULT_POLICY.history_tokens,
    CONF_TOOL_RESULTS: DEFAULT_POLICY.tool_results,
    CONF_EXPIRY_HOURS: DEFAULT_EXPIRY_HOURS,
    CONF_PERSISTENCE: DEFAULT_PERSISTENCE,
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
    results = SelectSelectorConfig(options=list(get_args(ToolResults.__value__)), translation_key=CONF_TOOL_RESULTS)
    persistence = SelectSelectorConfig(options=list(Persistence), translation_key=CONF_PERSISTENCE)
    return probatio.Schema(
        {
            probatio.Required(CONF_HISTORY_TOKENS): window_size_selector(),
            probatio.Optional(CONF_TRIM_SHARE): NumberSelector(share),
            probatio.Required(CONF_TOOL_RESULTS, default=DEFAULT_POLICY.tool_results): SelectSelector(results),
            probatio.Required(CONF_EXPIRY_HOURS): NumberSelector(expiry),
            probatio.Required(CONF_PERSISTENCE): SelectSelector(persistence),
        }
    )


class WindowOptionsFlow(OptionsFlow):
    """The window's settings."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the settings; the account's listener applies them."""
        if user_input is not None:
            # whole numbers come as floats
            data = {key: int(value) if isinstance(value, float) else value for key, value in user_input.items()}
            return self.async_create_entry(data=data)
        known = _DEFAULTS | dict(self.config_entry.options)
        return self.async_show_form(step_id="init", data_schema=self.add_suggested_values_to_schema(_schema(), known))
