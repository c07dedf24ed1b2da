"""Rules of hassfest on icons, texts, actions and the configuration of an integration, as schemas of what they allow."""

import ast
import re
from typing import Any

import probatio

SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*")


def _slug(value: Any) -> str:
    if not isinstance(value, str) or not SLUG.fullmatch(value):
        raise probatio.Invalid("is no key of a translation")
    return value


def _icon(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("mdi:"):
        raise probatio.Invalid("is no icon of Material Design Icons")
    return value


def _plain(value: Any) -> str:
    if not isinstance(value, str) or "{" in value:
        raise probatio.Invalid("is no text without placeholders")
    return value


def _config_schema(source: str) -> str:
    names = {name.id for name in ast.walk(ast.parse(source)) if isinstance(name, ast.Name)}
    if "def async_setup(" in source and "CONFIG_SCHEMA" not in names:
        raise probatio.Invalid("async_setup does not say that there is nothing to configure in YAML")
    return source


_NAMED = {probatio.Required("name"): str, probatio.Required("description"): str}
_STATES = {_slug: _plain}
_STATE_ICONS = {_slug: _icon}
_ENTITY = {
    probatio.Optional("name"): str,
    probatio.Optional("state"): _STATES,
    probatio.Optional("state_attributes"): {
        _slug: {probatio.Optional("name"): _plain, probatio.Optional("state"): _STATES}
    },
    probatio.Optional("unit_of_measurement"): _plain,
}
_FIELD = {
    probatio.Optional("example"): probatio.Any(str, int, list, dict),
    probatio.Optional("default"): probatio.Any(str, int, bool, list, dict),
    probatio.Optional("required"): bool,
    probatio.Optional("advanced"): bool,
    probatio.Optional("selector"): dict,
}

# By the part of the repository that each is on.
RULES = {
    "icons": probatio.Schema(
        {
            probatio.Optional("services"): {_slug: {probatio.Required("service"): _icon}},
            probatio.Required("entity"): {
                _slug: {_slug: {probatio.Optional("default"): _icon, probatio.Optional("state"): _STATE_ICONS}}
            },
        }
    ),
    "entity": probatio.Schema({_slug: {_slug: _ENTITY}}),
    "exceptions": probatio.Schema({_slug: {probatio.Required("message"): str}}),
    "services": probatio.Schema({_slug: {**_NAMED, probatio.Optional("fields"): {_slug: _NAMED}}}),
    "actions": probatio.Schema({_slug: {probatio.Optional("fields"): {_slug: _FIELD}}}),
    "source": probatio.Schema(_config_schema),
}
