"""Options flow of an account: the window's settings for all of its agents, applied to open conversations at once."""

from collections.abc import Mapping
from typing import Any, get_args

from homeassistant.config_entries import ConfigFlowResult, OptionsFlow
from homeassistant.const import PERCENTAGE, Platform, UnitOfTime
from homeassistant.core import HomeAssistant
from homeassistant.helpers.selector import (
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
    TextSelector,
)
import probatio

from .. import const
from ..agents.config import (
    DEFAULT_EXPIRY_HOURS,
    DEFAULT_FILLER,
    DEFAULT_MEMORY_DAYS,
    DEFAULT_PERSISTENCE,
    DEFAULT_POLICY,
)
from ..bridge.fillers import FillerMode
from ..bridge.persons import async_get_device_owners, replace_device_owners
from ..window import ToolResultMode
from .fields import (
    FormFields,
    FormSection,
    async_set_limit_errors,
    build_choice,
    flatten_sections,
    nest_in_sections,
    number_field,
    switch_field,
    token_field,
)

# The section with the table of satellites and people, which all accounts share.
_MEMORY_SECTION = "memory"


def build_option_sections(people: Mapping[str, str]) -> dict[str, FormFields]:
    """Return the fields of the form by section. `people` are the names of users by user id."""
    policy = DEFAULT_POLICY
    return {
        "window": {
            **token_field(const.CONF_HISTORY_TOKENS, policy.history_tokens),
            **number_field(const.CONF_TRIM_SHARE, 0, 90, PERCENTAGE),
            **switch_field(const.CONF_SUMMARIZE, default=policy.summarize),
        },
        "tool_results": {
            **build_choice(const.CONF_TOOL_RESULTS, get_args(ToolResultMode.__value__), policy.tool_results),
            **number_field(const.CONF_MAX_TOOL_TURNS, 1, 100),
        },
        "conversations": {
            **number_field(const.CONF_EXPIRY_HOURS, 1, 8760, UnitOfTime.HOURS, default=DEFAULT_EXPIRY_HOURS),
            **build_choice(const.CONF_PERSISTENCE, const.Persistence, DEFAULT_PERSISTENCE),
            **build_choice(const.CONF_FILLER, FillerMode, DEFAULT_FILLER),
            probatio.Optional(const.CONF_FILLER_SENTENCE): TextSelector(),
        },
        _MEMORY_SECTION: {
            **number_field(const.CONF_MEMORY_DAYS, 1, 3650, UnitOfTime.DAYS, default=DEFAULT_MEMORY_DAYS),
            probatio.Optional(const.CONF_DEVICE_OWNERS): _build_owners_selector(people),
        },
    }


async def _async_list_user_names(hass: HomeAssistant) -> dict[str, str]:
    """Return the names of users who are people, by user id."""
    users = await hass.auth.async_get_users()
    return {user.id: user.name or user.id for user in users if not user.system_generated}


def _build_owners_selector(names: Mapping[str, str]) -> ObjectSelector:
    people = SelectSelectorConfig(
        options=[SelectOptionDict(value=person, label=name) for person, name in names.items()],
        mode=SelectSelectorMode.DROPDOWN,
    )
    satellites = DeviceSelectorConfig(entity=[EntityFilterSelectorConfig(domain=Platform.ASSIST_SATELLITE)])
    fields = {
        const.ATTR_DEVICE: ObjectSelectorField(selector=DeviceSelector(satellites), required=True),
        # a required field would preselect the first person
        const.ATTR_PERSON: ObjectSelectorField(selector=SelectSelector(people), required=False),
    }
    return ObjectSelector(
        ObjectSelectorConfig(
            fields=fields,
            multiple=True,
            label_field=const.ATTR_DEVICE,
            description_field=const.ATTR_PERSON,
            translation_key=const.CONF_DEVICE_OWNERS,
        )
    )


def _find_owners_error(devices: list[dict[str, str]]) -> str | None:
    if not all(device.get(const.ATTR_PERSON) for device in devices):
        return "device_without_person"
    return "device_owned_twice" if len({device[const.ATTR_DEVICE] for device in devices}) < len(devices) else None


class WindowOptionsFlow(OptionsFlow):
    """The options flow of an account: the window's settings."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the settings. The account's update listener applies them."""
        people = await _async_list_user_names(self.hass)
        sections = build_option_sections(people)
        errors: dict[str, str] = {}
        if user_input is not None:
            options = flatten_sections(user_input, sections)
            error = _find_owners_error(options.get(const.CONF_DEVICE_OWNERS, []))
            if error is None:
                return self._save_options(options)
            errors = {_MEMORY_SECTION: error}
        # the field would refuse an owner who no longer exists
        owners = {device: person for device, person in async_get_device_owners(self.hass).items() if person in people}
        fields = {field: selector for section in sections.values() for field, selector in section.items()}
        defaults = {str(marker): marker.default() for marker in fields if marker.default is not probatio.UNDEFINED}
        suggested = {**defaults, **replace_device_owners(self.config_entry.options, owners)}
        schema = probatio.Schema(
            {probatio.Required(name): FormSection(fields, collapsed=False) for name, fields in sections.items()}
        )
        await async_set_limit_errors(self.hass, schema, "options")
        return self.async_show_form(
            step_id="init",
            data_schema=self.add_suggested_values_to_schema(
                schema, user_input or nest_in_sections(suggested, sections)
            ),
            errors=errors,
        )

    def _save_options(self, options: dict[str, Any]) -> ConfigFlowResult:
        """Store the settings in this account, and the device owners in all accounts."""
        devices = options.pop(const.CONF_DEVICE_OWNERS, [])
        owners = {device[const.ATTR_DEVICE]: device[const.ATTR_PERSON] for device in devices}
        for entry in self.hass.config_entries.async_entries(const.DOMAIN):
            if entry is not self.config_entry:
                self.hass.config_entries.async_update_entry(entry, options=replace_device_owners(entry.options, owners))
        # the form submits integers as floats
        data = {key: int(value) if isinstance(value, float) else value for key, value in options.items()}
        return self.async_create_entry(data=replace_device_owners(data, owners))
