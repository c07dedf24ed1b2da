"""The form of the window's settings: defaults for all agents of an account, applied to open conversations at once."""

from math import isnan
from typing import Any, get_args, override

from homeassistant.config_entries import ConfigFlowResult, OptionsFlow
from homeassistant.const import PERCENTAGE, UnitOfTime
from homeassistant.helpers.selector import (
    BooleanSelector,
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
    CONF_MAX_TOOL_TURNS,
    CONF_MAX_WINDOWS,
    CONF_PERSISTENCE,
    CONF_RESULT_CAP,
    CONF_SUMMARIZE,
    CONF_TOOL_RESULTS,
    CONF_TRIM_SHARE,
    DEFAULT_EXPIRY_HOURS,
    DEFAULT_MAX_WINDOWS,
    DEFAULT_PERSISTENCE,
    DEFAULT_POLICY,
    Persistence,
)
from .window.policy import ToolResults

_DEFAULTS = {
    CONF_HISTORY_TOKENS: DEFAULT_POLICY.history_tokens,
    CONF_TOOL_RESULTS: DEFAULT_POLICY.tool_results,
    CONF_RESULT_CAP: DEFAULT_POLICY.result_cap_tokens,
    CONF_MAX_WINDOWS: DEFAULT_MAX_WINDOWS,
    CONF_EXPIRY_HOURS: DEFAULT_EXPIRY_HOURS,
    CONF_PERSISTENCE: DEFAULT_PERSISTENCE,
    CONF_SUMMARIZE: DEFAULT_POLICY.summarize,
}

_SMALLEST_WINDOW = 100
_LARGEST_WINDOW = 2_000_000
_LARGEST_SHARE = 90
_LONGEST_EXPIRY = 8760
_SMALLEST_RESULT = 100
_MOST_TOOL_TURNS = 100
_MOST_WINDOWS = 10_000


class _NumberSelector(NumberSelector):
    """A field for numbers, which NaN is not: it is neither too small nor too large."""

    @override
    def __call__(self, data: Any) -> float:
        value = super().__call__(data)
        if isnan(value):
            raise probatio.Invalid("not a number")
        return value


def number_selector(least: int, most: int, unit: str | None = None) -> NumberSelector:
    """Return a field for a whole number that is typed in."""
    config = NumberSelectorConfig(min=least, max=most, step=1, mode=NumberSelectorMode.BOX)
    if unit:
        config["unit_of_measurement"] = unit
    return _NumberSelector(config)


def window_size_selector() -> NumberSelector:
    """Return the field for a window's size in tokens."""
    return number_selector(_SMALLEST_WINDOW, _LARGEST_WINDOW, "tokens")


def _schema() -> probatio.Schema:
    share = NumberSelectorConfig(min=0, max=_LARGEST_SHARE, step=1, unit_of_measurement=PERCENTAGE)
    results = SelectSelectorConfig(options=list(get_args(ToolResults.__value__)), translation_key=CONF_TOOL_RESULTS)
    persistence = SelectSelectorConfig(options=list(Persistence), translation_key=CONF_PERSISTENCE)
    result_cap = number_selector(_SMALLEST_RESULT, _LARGEST_WINDOW, "tokens")
    return probatio.Schema(
        {
            probatio.Required(CONF_HISTORY_TOKENS): window_size_selector(),
            probatio.Optional(CONF_TRIM_SHARE): _NumberSelector(share),
            probatio.Required(CONF_TOOL_RESULTS, default=DEFAULT_POLICY.tool_results): SelectSelector(results),
            probatio.Optional(CONF_MAX_TOOL_TURNS): number_selector(1, _MOST_TOOL_TURNS),
            probatio.Required(CONF_RESULT_CAP, default=DEFAULT_POLICY.result_cap_tokens): result_cap,
            probatio.Required(CONF_MAX_WINDOWS, default=DEFAULT_MAX_WINDOWS): number_selector(1, _MOST_WINDOWS),
            probatio.Required(CONF_EXPIRY_HOURS): number_selector(1, _LONGEST_EXPIRY, UnitOfTime.HOURS),
            probatio.Required(CONF_PERSISTENCE): SelectSelector(persistence),
            probatio.Required(CONF_SUMMARIZE, default=DEFAULT_POLICY.summarize): BooleanSelector(),
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
