"""The sections of an agent's form: settings that few people change, closed unless there is something to see."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, override

from homeassistant.const import UnitOfTime
from homeassistant.data_entry_flow import section
from homeassistant.helpers.selector import BooleanSelector, SelectSelector, SelectSelectorConfig, SelectSelectorMode
import probatio

from ..agents.config import (
    DEFAULT_COMPACTION,
    DEFAULT_CONTEXT_PLACEMENT,
    DEFAULT_COUNTING,
    DEFAULT_FALLBACK_TIMEOUT,
    DEFAULT_HEAD_START,
    DEFAULT_LIMITS,
    DEFAULT_MEMORY,
    DEFAULT_RECORD,
    DEFAULT_SCOPE,
    DEFAULT_STATES,
    default_temperature,
)
from ..bridge.account import can_shorten
from ..const import (
    CONF_COMPACTION,
    CONF_CONTEXT_PLACEMENT,
    CONF_CONTEXT_TOKENS,
    CONF_COUNTING,
    CONF_EFFORT,
    CONF_EXCLUDED_TAGS,
    CONF_FALLBACK_TIMEOUT,
    CONF_HEAD_START,
    CONF_HISTORY_TOKENS,
    CONF_IDLE_TIMEOUT,
    CONF_LIMITS,
    CONF_MAX_ANSWER_TOKENS,
    CONF_MEMORY,
    CONF_PROVIDER,
    CONF_RECORD,
    CONF_SCOPE,
    CONF_STATES,
    CONF_STATES_DOMAINS,
    CONF_TEMPERATURE,
    CONF_TOOL_ITERATIONS,
    CONF_TOP_P,
    CONF_TURN_TIMEOUT,
    PROVIDER_NONE,
    Compaction,
    Counting,
    RecordLevel,
)
from ..providers import DEFAULT_SETTINGS, EFFORTS
from ..turn.context import ContextPlacement
from ..turn.scope import Scope
from .numbers import OutOfRangeError, number_field, tokens_field

# Tags that people may want to exclude; any other can be typed.
_OFTEN_EXCLUDED = ["route:local", "tool_call"]
# Domains that some people ask about; any other can be typed.
_OFTEN_ADDED = ["automation", "number", "select", "sun", "timer", "update"]
_DROPDOWN = SelectSelectorMode.DROPDOWN

_MODEL_SETTINGS = "model_settings"
_CONVERSATIONS = "conversations"
_HOME = "home"
# The sections of the form; an agent's data is flat.
_UNKNOWN_TO_DATA = (_MODEL_SETTINGS, _CONVERSATIONS, _HOME)


class _Section(section):
    """A section that shows its own errors: Home Assistant would show them at the top of the form, out of sight."""

    def __init__(self, fields: dict[Any, Any], *, collapsed: bool) -> None:
        super().__init__(probatio.Schema(fields), {"collapsed": collapsed})

    @override
    def __call__(self, value: Any) -> Any:
        try:
            return super().__call__(value)
        except probatio.MultipleInvalid as err:
            first = err.errors[0]
            # the key of a translation as it is, what Home Assistant says with the name of the field
            told = first.error_message if isinstance(first, OutOfRangeError) else str(first)
            raise probatio.Invalid(told) from err


def agent_sections(account: Mapping[str, Any], opened: Collection[str] = ()) -> dict[Any, Any]:
    """Return the sections of an agent's form, closed except for `opened`."""
    return {
        probatio.Required(name): _Section(fields, collapsed=name not in opened)
        for name, fields in _fields_of_sections(account).items()
    }


def sections_in_use(
    account: Mapping[str, Any], before: Mapping[str, Any], entered: Mapping[str, Any] | None
) -> set[str]:
    """Return the sections to show open: those with changes, or the only one of an account without a model."""
    if account[CONF_PROVIDER] == PROVIDER_NONE:
        return {_CONVERSATIONS}
    if entered is None:
        return set()
    sections = _fields_of_sections(account)
    return {
        name
        for name, fields in sections.items()
        if any(entered[name].get(str(field)) != _before(field, before.get(name, {})) for field in fields)
    }


def in_sections(data: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's data in the shape of the form."""
    sections = _fields_of_sections(account)
    inside = {
        name: {str(field): data[field] for field in sections[name] if field in data}
        for name in _UNKNOWN_TO_DATA
        if name in sections
    }
    return {**data, **inside}


def out_of_sections(entered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form's input in the shape of an agent's data."""
    outside = {name: value for name, value in entered.items() if name not in _UNKNOWN_TO_DATA}
    return outside | {field: value for name in _UNKNOWN_TO_DATA for field, value in entered.get(name, {}).items()}


def choice(name: str, options: Iterable[str]) -> SelectSelector:
    """Return a field with a few choices, labelled by the selector of this name."""
    return SelectSelector(SelectSelectorConfig(options=list(options), translation_key=name))


def _fields_of_sections(account: Mapping[str, Any]) -> dict[str, dict[Any, Any]]:
    if account[CONF_PROVIDER] == PROVIDER_NONE:
        return {_CONVERSATIONS: _conversations_fields() | _memory_fields()}
    return {
        _MODEL_SETTINGS: _model_fields(account),
        _CONVERSATIONS: _conversations_fields() | _history_fields() | _memory_fields(),
        _HOME: _home_fields(),
        CONF_LIMITS: _limits_fields(),
    }


def _conversations_fields() -> dict[Any, Any]:
    return {
        probatio.Required(CONF_SCOPE, default=DEFAULT_SCOPE): choice(CONF_SCOPE, Scope),
        probatio.Optional(CONF_HISTORY_TOKENS): tokens_field(CONF_HISTORY_TOKENS),
    }


def _history_fields() -> dict[Any, Any]:
    excluded_tags = SelectSelectorConfig(
        options=_OFTEN_EXCLUDED, multiple=True, custom_value=True, mode=SelectSelectorMode.DROPDOWN
    )
    placement = probatio.Required(CONF_CONTEXT_PLACEMENT, default=DEFAULT_CONTEXT_PLACEMENT)
    return {
        probatio.Optional(CONF_EXCLUDED_TAGS, default=list): SelectSelector(excluded_tags),
        placement: choice(CONF_CONTEXT_PLACEMENT, ContextPlacement),
    }


def _memory_fields() -> dict[Any, Any]:
    return {
        probatio.Required(CONF_MEMORY, default=DEFAULT_MEMORY): BooleanSelector(),
        probatio.Required(CONF_RECORD, default=DEFAULT_RECORD): choice(CONF_RECORD, RecordLevel),
    }


def _home_fields() -> dict[Any, Any]:
    domains = SelectSelectorConfig(options=_OFTEN_ADDED, multiple=True, custom_value=True, mode=_DROPDOWN)
    return {
        probatio.Required(CONF_STATES, default=DEFAULT_STATES): BooleanSelector(),
        probatio.Optional(CONF_STATES_DOMAINS, default=list): SelectSelector(domains),
    }


def _model_fields(account: Mapping[str, Any]) -> dict[Any, Any]:
    # buttons could not be left empty again
    efforts = SelectSelectorConfig(options=list(EFFORTS), translation_key=CONF_EFFORT, mode=_DROPDOWN)
    temperature, most = default_temperature(account), DEFAULT_SETTINGS.max_answer_tokens
    suggested = probatio.UNDEFINED if temperature is None else temperature
    fields: dict[Any, Any] = {
        probatio.Optional(CONF_EFFORT): SelectSelector(efforts),
        probatio.Optional(CONF_TEMPERATURE, default=suggested): number_field(CONF_TEMPERATURE, 0, 2, step=0.1),
        probatio.Optional(CONF_TOP_P): number_field(CONF_TOP_P, 0, 1, step=0.05),
        probatio.Optional(CONF_CONTEXT_TOKENS): tokens_field(CONF_CONTEXT_TOKENS),
        probatio.Required(CONF_MAX_ANSWER_TOKENS, default=most): tokens_field(CONF_MAX_ANSWER_TOKENS),
        probatio.Required(CONF_COUNTING, default=DEFAULT_COUNTING): choice(CONF_COUNTING, Counting),
    }
    if can_shorten(account):
        compaction = probatio.Required(CONF_COMPACTION, default=DEFAULT_COMPACTION)
        fields[compaction] = choice(CONF_COMPACTION, Compaction)
    return fields | {probatio.Required(CONF_HEAD_START, default=DEFAULT_HEAD_START): BooleanSelector()}


def _limits_fields() -> dict[Any, Any]:
    seconds = UnitOfTime.SECONDS
    return {
        probatio.Required(CONF_FALLBACK_TIMEOUT, default=DEFAULT_FALLBACK_TIMEOUT): number_field(
            CONF_FALLBACK_TIMEOUT, 1, 300, seconds
        ),
        probatio.Optional(CONF_IDLE_TIMEOUT): number_field(CONF_IDLE_TIMEOUT, 1, 300, seconds),
        probatio.Required(CONF_TURN_TIMEOUT, default=DEFAULT_LIMITS.turn): number_field(
            CONF_TURN_TIMEOUT, 1, 600, seconds
        ),
        probatio.Required(CONF_TOOL_ITERATIONS, default=DEFAULT_LIMITS.tool_iterations): number_field(
            CONF_TOOL_ITERATIONS, 1, 50
        ),
    }


def _before(field: Any, known: Mapping[str, Any]) -> Any:
    default = None if field.default is probatio.UNDEFINED else field.default()
    return known.get(str(field), default)
