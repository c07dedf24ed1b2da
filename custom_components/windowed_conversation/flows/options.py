"""Options flow of an account: the window's settings for all of its agents, applied to open conversations at once."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from homeassistant.config_entries import ConfigFlowResult, OptionsFlow
from homeassistant.const import PERCENTAGE, Platform, UnitOfTime
from homeassistant.helpers.selector import (
    BooleanSelector,
    DeviceSelector,
    DeviceSelectorConfig,
    EntityFilterSelectorConfig,
    EntitySelector,
    EntitySelectorConfig,
    NumberSelector,
    NumberSelectorConfig,
    NumberSelectorMode,
    ObjectSelector,
    ObjectSelectorConfig,
    ObjectSelectorField,
    SelectOptionDict,
    Selector,
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
from ..bridge.persons import SpeakerRow, async_get_speaker_rows, replace_speaker_rows
from ..memory.turn.speaker import Permission
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
            probatio.Optional(const.CONF_DEVICE_OWNERS): _build_rows_selector(people),
        },
    }


def _build_rows_selector(names: Mapping[str, str]) -> ObjectSelector:
    """Return the table of satellites and people. No field is required, because a form would preselect a value."""
    people = [SelectOptionDict(value=person, label=name) for person, name in names.items()]
    satellites = DeviceSelectorConfig(entity=[EntityFilterSelectorConfig(domain=Platform.ASSIST_SATELLITE)])
    seconds = NumberSelectorConfig(min=1, max=300, unit_of_measurement="s", mode=NumberSelectorMode.BOX)
    selectors: dict[str, Selector[Any]] = {
        const.ATTR_DEVICE: DeviceSelector(satellites),
        const.ATTR_PERSON: SelectSelector(SelectSelectorConfig(options=people, mode=SelectSelectorMode.DROPDOWN)),
        const.ATTR_ENTITY: EntitySelector(),
        const.ATTR_SECONDS: NumberSelector(seconds),
        const.ATTR_ENGINE: EntitySelector(EntitySelectorConfig(domain=Platform.STT)),
        const.ATTR_TRUSTED: BooleanSelector(),
        const.ATTR_PERMISSION: SelectSelector(
            SelectSelectorConfig(options=[*Permission], translation_key=const.ATTR_PERMISSION)
        ),
    }
    return ObjectSelector(
        ObjectSelectorConfig(
            fields={
                name: ObjectSelectorField(selector=selector, required=False) for name, selector in selectors.items()
            },
            multiple=True,
            label_field=const.ATTR_DEVICE,
            description_field=const.ATTR_PERSON,
            translation_key=const.CONF_DEVICE_OWNERS,
        )
    )


def _is_complete(row: SpeakerRow) -> bool:
    """Return whether a row names a speaker or a permission for a satellite, or a permission for a person."""
    known_by = (const.ATTR_PERSON, const.ATTR_ENTITY, const.ATTR_ENGINE)
    if row.get(const.ATTR_DEVICE):
        return any(row.get(name) for name in (*known_by, const.ATTR_PERMISSION))
    return bool(row.get(const.ATTR_PERSON) and row.get(const.ATTR_PERMISSION))


def _find_rows_error(rows: Sequence[SpeakerRow]) -> str | None:
    if not all(map(_is_complete, rows)):
        return "row_incomplete"
    subjects = [row.get(const.ATTR_DEVICE) or row[const.ATTR_PERSON] for row in rows]
    # an entity that named the speaker at two satellites would lie at one of them
    entities = [row[const.ATTR_ENTITY] for row in rows if row.get(const.ATTR_ENTITY)]
    return "row_repeated" if any(len({*each}) < len(each) for each in (subjects, entities)) else None


class WindowOptionsFlow(OptionsFlow):
    """The options flow of an account: the window's settings."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the settings. The account's update listener applies them."""
        users = await self.hass.auth.async_get_users()
        people = {user.id: user.name or user.id for user in users if not user.system_generated}
        sections = build_option_sections(people)
        errors: dict[str, str] = {}
        if user_input is not None:
            options = flatten_sections(user_input, sections)
            error = _find_rows_error(options.get(const.CONF_DEVICE_OWNERS, []))
            if error is None:
                return self._save_options(options)
            errors = {_MEMORY_SECTION: error}
        # the field would refuse a person who no longer exists
        stored = [
            {name: value for name, value in row.items() if name != const.ATTR_PERSON or value in people}
            for row in async_get_speaker_rows(self.hass)
        ]
        rows = [row for row in stored if _is_complete(row)]
        fields = {field: selector for section in sections.values() for field, selector in section.items()}
        defaults = {str(marker): marker.default() for marker in fields if marker.default is not probatio.UNDEFINED}
        suggested = {**defaults, **replace_speaker_rows(self.config_entry.options, rows)}
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
        """Store the settings in this account, and the table of satellites and people in all accounts."""
        rows = options.pop(const.CONF_DEVICE_OWNERS, [])
        for entry in self.hass.config_entries.async_entries(const.DOMAIN):
            if entry is not self.config_entry:
                self.hass.config_entries.async_update_entry(entry, options=replace_speaker_rows(entry.options, rows))
        # the form submits integers as floats
        data = {key: int(value) if isinstance(value, float) else value for key, value in options.items()}
        return self.async_create_entry(data=replace_speaker_rows(data, rows))
