"""The form of the window's settings: defaults for all agents of an account, applied to open conversations at once."""

from typing import Any, get_args

from homeassistant.config_entries import ConfigFlowResult, OptionsFlow
from homeassistant.const import PERCENTAGE, Platform, UnitOfTime
from homeassistant.core import HomeAssistant
from homeassistant.helpers.selector import (
    BooleanSelector,
    DeviceSelector,
    DeviceSelectorConfig,
    EntityFilterSelectorConfig,
    ObjectSelector,
    ObjectSelectorConfig,
    ObjectSelectorField,
    SelectOptionDict,
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
)
import probatio

from ..agents.config import (
    DEFAULT_EXPIRY_HOURS,
    DEFAULT_MAX_WINDOWS,
    DEFAULT_MEMORY_DAYS,
    DEFAULT_PERSISTENCE,
    DEFAULT_POLICY,
)
from ..const import (
    ATTR_DEVICE,
    ATTR_PERSON,
    CONF_DEVICE_OWNERS,
    CONF_EXPIRY_HOURS,
    CONF_HISTORY_TOKENS,
    CONF_MAX_TOOL_TURNS,
    CONF_MAX_WINDOWS,
    CONF_MEMORY_DAYS,
    CONF_PERSISTENCE,
    CONF_RESULT_CAP,
    CONF_SUMMARIZE,
    CONF_TOOL_RESULTS,
    CONF_TRIM_SHARE,
    Persistence,
)
from ..window import ToolResults
from .numbers import limits_of, number_field, tokens_field

_DEFAULTS = {
    CONF_HISTORY_TOKENS: DEFAULT_POLICY.history_tokens,
    CONF_TOOL_RESULTS: DEFAULT_POLICY.tool_results,
    CONF_RESULT_CAP: DEFAULT_POLICY.result_cap_tokens,
    CONF_MAX_WINDOWS: DEFAULT_MAX_WINDOWS,
    CONF_EXPIRY_HOURS: DEFAULT_EXPIRY_HOURS,
    CONF_PERSISTENCE: DEFAULT_PERSISTENCE,
    CONF_MEMORY_DAYS: DEFAULT_MEMORY_DAYS,
    CONF_SUMMARIZE: DEFAULT_POLICY.summarize,
}

_LARGEST_SHARE = 90
_LONGEST_EXPIRY = 8760
_MOST_DAYS = 3650
_MOST_TOOL_TURNS = 100
_MOST_WINDOWS = 10_000


def _schema() -> probatio.Schema:
    results = SelectSelectorConfig(options=list(get_args(ToolResults.__value__)), translation_key=CONF_TOOL_RESULTS)
    persistence = SelectSelectorConfig(options=list(Persistence), translation_key=CONF_PERSISTENCE)
    windows = number_field(CONF_MAX_WINDOWS, 1, _MOST_WINDOWS)
    days = number_field(CONF_MEMORY_DAYS, 1, _MOST_DAYS, UnitOfTime.DAYS)
    return probatio.Schema(
        {
            probatio.Required(CONF_HISTORY_TOKENS): tokens_field(CONF_HISTORY_TOKENS),
            probatio.Optional(CONF_TRIM_SHARE): number_field(CONF_TRIM_SHARE, 0, _LARGEST_SHARE, PERCENTAGE),
            probatio.Required(CONF_TOOL_RESULTS, default=DEFAULT_POLICY.tool_results): SelectSelector(results),
            probatio.Optional(CONF_MAX_TOOL_TURNS): number_field(CONF_MAX_TOOL_TURNS, 1, _MOST_TOOL_TURNS),
            probatio.Required(CONF_RESULT_CAP, default=DEFAULT_POLICY.result_cap_tokens): tokens_field(CONF_RESULT_CAP),
            probatio.Required(CONF_MAX_WINDOWS, default=DEFAULT_MAX_WINDOWS): windows,
            probatio.Required(CONF_EXPIRY_HOURS): number_field(CONF_EXPIRY_HOURS, 1, _LONGEST_EXPIRY, UnitOfTime.HOURS),
            probatio.Required(CONF_PERSISTENCE): SelectSelector(persistence),
            probatio.Required(CONF_MEMORY_DAYS, default=DEFAULT_MEMORY_DAYS): days,
            probatio.Required(CONF_SUMMARIZE, default=DEFAULT_POLICY.summarize): BooleanSelector(),
        }
    )


async def _async_owners_field(hass: HomeAssistant) -> ObjectSelector:
    """Return the field for which satellite is whose."""
    users = [user for user in await hass.auth.async_get_users() if not user.system_generated]
    people = SelectSelectorConfig(
        options=[SelectOptionDict(value=user.id, label=user.name or user.id) for user in users],
        mode=SelectSelectorMode.DROPDOWN,
    )
    satellites = DeviceSelectorConfig(entity=[EntityFilterSelectorConfig(domain=Platform.ASSIST_SATELLITE)])
    fields = {
        ATTR_DEVICE: ObjectSelectorField(selector=DeviceSelector(satellites), required=True),
        ATTR_PERSON: ObjectSelectorField(selector=SelectSelector(people), required=True),
    }
    return ObjectSelector(
        ObjectSelectorConfig(fields=fields, multiple=True, label_field=ATTR_DEVICE, translation_key=CONF_DEVICE_OWNERS)
    )


class WindowOptionsFlow(OptionsFlow):
    """The options flow of an account: the window's settings."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the settings. The account's listener applies them."""
        errors: dict[str, str] = {}
        if user_input is not None:
            # the form submits integers as floats
            data = {key: int(value) if isinstance(value, float) else value for key, value in user_input.items()}
            devices = [owned[ATTR_DEVICE] for owned in user_input.get(CONF_DEVICE_OWNERS, ())]
            if len(devices) == len(set(devices)):
                return self.async_create_entry(data=data)
            errors = {CONF_DEVICE_OWNERS: "device_owned_twice"}
        known = _DEFAULTS | (dict(self.config_entry.options) if user_input is None else user_input)
        schema = _schema().extend({probatio.Optional(CONF_DEVICE_OWNERS): await _async_owners_field(self.hass)})
        return self.async_show_form(
            step_id="init",
            data_schema=self.add_suggested_values_to_schema(schema, known),
            errors=errors,
            description_placeholders=limits_of(schema),
        )
