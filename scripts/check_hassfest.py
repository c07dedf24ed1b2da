"""Check the integration by the rules of hassfest that apply to a custom integration.

    .venv/test/bin/python scripts/check_hassfest.py      ends with 1 if a rule is broken

hassfest (`script/hassfest` in home-assistant/core) is not published as a package; CI runs it from its container. This
script contains its rules, one function for each plugin, except plugins that only generate files of Home Assistant. Like
hassfest, it uses the installed Home Assistant, for example for the schemas of selectors.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import cache
import json
from pathlib import Path
import re
import string
import sys
from typing import Any, NamedTuple

from awesomeversion import AwesomeVersion
import homeassistant
from homeassistant.const import Platform
from homeassistant.helpers import config_validation as cv, selector
from homeassistant.util.yaml import load_yaml_dict
import probatio

REPOSITORY = Path(__file__).resolve().parents[1]
_COMPONENTS_FOLDER = Path(homeassistant.__file__).parent / "components"
_CORE_PAGES_URL = "https://www.home-assistant.io/integrations"
_IOT_CLASSES = {"assumed_state", "calculated", "cloud_polling", "cloud_push", "local_polling", "local_push"}
_INTEGRATION_TYPES = {"device", "entity", "hardware", "helper", "hub", "service", "system"}
_QUALITY_SCALES = {"bronze", "silver", "gold", "platinum", "custom", "no_score", "internal", "legacy"}
# Integrations that may be imported without being in the manifest: the entries of hassfest's ALLOWED_USED_COMPONENTS
# that are needed here.
_UNDECLARED_COMPONENTS = {
    *Platform,
    "automation",
    "frontend",
    "homeassistant",
    "persistent_notification",
    "person",
    "script",
    "system_health",
    "zone",
}
_DISCOVERY_STEPS = ("discovery", "bluetooth", "hassio", "homekit", "mqtt", "ssdp", "zeroconf", "dhcp", "usb")
_UNIQUE_ID_FUNCTIONS = ("async_set_unique_id", "_async_handle_discovery_without_unique_id", "register_discovery_flow")
_REGISTRATION_PATTERN = re.compile(r"services\.(async_)?register\(|async_register_(entity|admin)_service\(")

_KEY_PATTERN = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")
_URL_PATTERN = re.compile(r"\w://|\bwww\.", re.IGNORECASE)
_QUOTED_PLACEHOLDER_PATTERN = re.compile(r"'{\w+}'")
_REQUIREMENT_PATTERN = re.compile(r"[-_,.\w\[\]]+((==|>=|<=|~=|!=|<|>)[^ ]+)?")


class Integration(NamedTuple):
    """The files of an integration: the parsed data files, and the source of each module by its relative path."""

    folder: str
    manifest: dict[str, Any]
    texts: dict[str, Any]
    icons: dict[str, Any]
    actions: dict[str, Any] | None
    modules: Mapping[str, str]


def read_integration(folder: Path) -> Integration:
    """Return an integration's files. Raises a `ValueError` that names the file if it is not valid JSON."""
    parsed = {str(path.relative_to(folder)): _parse_json(path) for path in sorted(folder.rglob("*.json"))}
    actions = folder / "services.yaml"
    return Integration(
        folder.name,
        parsed["manifest.json"],
        parsed["translations/en.json"],
        parsed.get("icons.json", {}),
        load_yaml_dict(str(actions)) if actions.is_file() else None,
        {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))},
    )


def find_violations(integration: Integration) -> list[str]:
    """Return one line for each rule that the integration breaks."""
    return [f"{rule.__name__.strip('_')}: {found}" for rule in RULES for found in rule(integration)]


def _parse_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as err:
        raise ValueError(f"{path} is no JSON: {err}") from err


def _iter_schema_errors(schema: probatio.Schema, value: object) -> Iterator[str]:
    """Yield the path and message of each error that a schema finds in a value."""
    try:
        schema(value)
    except probatio.MultipleInvalid as err:
        yield from (f"{'.'.join(map(str, each.path))}: {each.msg}" for each in err.errors)
    except probatio.Invalid as err:
        yield f"{'.'.join(map(str, err.path))}: {err.msg}"


def _build_validator(is_valid: Callable[[Any], object], wanted: str) -> Callable[[Any], Any]:
    """Return a validator that accepts a value if `is_valid` does, and otherwise raises an error naming the form."""

    def validate(value: Any) -> Any:
        if not is_valid(value):
            raise probatio.Invalid(wanted)
        return value

    return validate


def _validate_key(value: Any) -> str:
    if not isinstance(value, str) or not _KEY_PATTERN.fullmatch(value):
        raise probatio.Invalid("is no key of a translation")
    return value


def _validate_text(value: Any) -> str:
    text: str = cv.string_with_no_html(value)
    if not isinstance(value, str) or not text or text != text.strip():
        raise probatio.Invalid("is no text without spaces around it")
    if _URL_PATTERN.search(text):
        raise probatio.Invalid("has a URL, which belongs into a placeholder")
    if _QUOTED_PLACEHOLDER_PATTERN.search(text):
        raise probatio.Invalid("has a placeholder in single quotes")
    if "[%" in text or "%]" in text:
        raise probatio.Invalid("refers to another text, which only Home Assistant's own can")
    if any(name is not None and not name.isidentifier() for _, name, _, _ in string.Formatter().parse(text)):
        raise probatio.Invalid("has a placeholder that is no identifier")
    return text


def _validate_plain_text(value: Any) -> str:
    text = _validate_text(value)
    if "{" in text:
        raise probatio.Invalid("may not have placeholders")
    return text


def _validate_icon(value: Any) -> str:
    icon: str = cv.string_with_no_html(value)
    if not icon.startswith("mdi:"):
        raise probatio.Invalid("is no icon of Material Design Icons")
    return icon


_OPTIONAL, _REQUIRED = probatio.Optional, probatio.Required
_validate_url = probatio.Url()

_MANIFEST_SCHEMA = probatio.Schema(
    {
        _REQUIRED("domain"): str,
        _REQUIRED("name"): str,
        _REQUIRED("codeowners"): [_build_validator(re.compile("@.+").fullmatch, "a codeowner begins with @")],
        _REQUIRED("documentation"): probatio.All(
            _validate_url,
            _build_validator(lambda url: url.startswith("https://"), "has to be https"),
            _build_validator(lambda url: not url.startswith(_CORE_PAGES_URL), "is a page of Home Assistant's own"),
        ),
        _REQUIRED("version"): _build_validator(
            lambda text: isinstance(text, str) and AwesomeVersion(text).valid, "is no version"
        ),
        _REQUIRED("integration_type"): probatio.In(_INTEGRATION_TYPES),
        _REQUIRED("iot_class"): probatio.In(_IOT_CLASSES),
        _OPTIONAL("issue_tracker"): _validate_url,
        _OPTIONAL("config_flow"): bool,
        _OPTIONAL("single_config_entry"): bool,
        _OPTIONAL("import_executor"): bool,
        _OPTIONAL("requirements"): [
            _build_validator(_REQUIREMENT_PATTERN.fullmatch, "is no requirement without spaces")
        ],
        _OPTIONAL("dependencies"): [str],
        _OPTIONAL("after_dependencies"): [str],
        _OPTIONAL("loggers"): [str],
        _OPTIONAL("quality_scale"): probatio.In(_QUALITY_SCALES),
    }
)


def _manifest(integration: Integration) -> Iterator[str]:
    manifest = integration.manifest
    yield from _iter_schema_errors(_MANIFEST_SCHEMA, manifest)
    if manifest.get("domain") != integration.folder:
        yield "the domain is not the name of the folder"
    if (_COMPONENTS_FOLDER / str(manifest.get("domain"))).exists():
        yield "the domain is one of Home Assistant's own integrations"
    if [*manifest] != ["domain", "name", *sorted(manifest.keys() - {"domain", "name"})]:
        yield "the keys are not in order: domain, name, then by the alphabet"


def _dependencies(integration: Integration) -> Iterator[str]:
    first, after = (set(integration.manifest.get(key, ())) for key in ("dependencies", "after_dependencies"))
    yield from (f"{each} is a dependency twice" for each in sorted(first & after))
    yield from (f"{each} does not exist" for each in sorted(first | after) if not (_COMPONENTS_FOLDER / each).is_dir())
    parts = {path.partition("/")[0].removesuffix(".py") for path in integration.modules}
    allowed = _UNDECLARED_COMPONENTS | first | after | parts
    for path, source in integration.modules.items():
        for used in sorted(_find_imported_integrations(source) - allowed):
            yield f"{path} imports {used}, which is neither in dependencies nor in after_dependencies"


@cache
def _find_imported_integrations(source: str) -> frozenset[str]:
    """Return the Home Assistant integrations that a module imports."""
    found = set[str]()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{each.name}" for each in node.names]
        found |= {name.split(".")[2] for name in names if name.startswith("homeassistant.components.")}
    return frozenset(found)


def _config_flow(integration: Integration) -> Iterator[str]:
    flow = integration.modules.get("config_flow.py")
    if bool(integration.manifest.get("config_flow")) != (flow is not None):
        yield "config_flow in the manifest and config_flow.py do not go together"
    is_found = any(f"async_step_{each}" in (flow or "") for each in _DISCOVERY_STEPS)
    if is_found and not any(each in (flow or "") for each in _UNIQUE_ID_FUNCTIONS):
        yield "what is discovered has no unique ID"


def _config_schema(integration: Integration) -> Iterator[str]:
    module = ast.parse(integration.modules["__init__.py"])
    defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    names = {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {
        each.asname or each.name for node in module.body if isinstance(node, ast.ImportFrom) for each in node.names
    }
    if defined & {"async_setup", "setup"} and not names & {"CONFIG_SCHEMA", "PLATFORM_SCHEMA"}:
        yield "async_setup without CONFIG_SCHEMA does not say that there is nothing to configure in YAML"


_TEXT_MAPPING_SCHEMA: dict[Any, Any] = {str: _validate_text}
_FIELD_TEXTS_SCHEMA: dict[Any, Any] = {_REQUIRED("name"): _validate_text, _REQUIRED("description"): _validate_text}
_FORM_SCHEMA = {
    _OPTIONAL("description"): _validate_text,
    _OPTIONAL("data"): _TEXT_MAPPING_SCHEMA,
    _OPTIONAL("data_description"): _TEXT_MAPPING_SCHEMA,
}


def _validate_descriptions(form: dict[str, Any]) -> dict[str, Any]:
    """Raise an error if a field description has no field in its form or section."""
    for each in sorted(form.get("data_description", {}).keys() - form.get("data", {}).keys()):
        raise probatio.Invalid(f"data_description {each} has no field")
    return form


_STEP_SCHEMA = probatio.All(
    {
        **_FORM_SCHEMA,
        _OPTIONAL("title"): _validate_text,
        _OPTIONAL("menu_options"): _TEXT_MAPPING_SCHEMA,
        _OPTIONAL("menu_option_descriptions"): _TEXT_MAPPING_SCHEMA,
        _OPTIONAL("submit"): _validate_text,
        _OPTIONAL("sections"): {
            str: probatio.All({**_FORM_SCHEMA, _OPTIONAL("name"): _validate_text}, _validate_descriptions)
        },
    },
    _validate_descriptions,
)
_FLOW_SCHEMA: dict[Any, Any] = {
    _OPTIONAL("flow_title"): _validate_text,
    _REQUIRED("step"): {str: _STEP_SCHEMA},
    _OPTIONAL("error"): _TEXT_MAPPING_SCHEMA,
    _OPTIONAL("abort"): _TEXT_MAPPING_SCHEMA,
    _OPTIONAL("progress"): _TEXT_MAPPING_SCHEMA,
    _OPTIONAL("create_entry"): _TEXT_MAPPING_SCHEMA,
}
_ENTITY_SCHEMA = {
    _OPTIONAL("name"): _validate_text,
    _OPTIONAL("state"): {_validate_key: _validate_plain_text},
    _OPTIONAL("state_attributes"): {
        _validate_key: {
            _OPTIONAL("name"): _validate_plain_text,
            _OPTIONAL("state"): {_validate_key: _validate_plain_text},
        }
    },
    _OPTIONAL("unit_of_measurement"): _validate_plain_text,
}
_ISSUE_SCHEMA = probatio.All(
    {_REQUIRED("title"): _validate_text, _OPTIONAL("description"): _validate_text, _OPTIONAL("fix_flow"): _FLOW_SCHEMA},
    _build_validator(
        lambda issue: ("description" in issue) != ("fix_flow" in issue), "has either a description or a fix_flow"
    ),
)
_TRANSLATIONS_SCHEMA = probatio.Schema(
    {
        _OPTIONAL("title"): _validate_text,
        _OPTIONAL("common"): {cv.slug: _validate_text},
        _OPTIONAL("config"): _FLOW_SCHEMA,
        _OPTIONAL("config_panel"): {cv.slug: {_validate_key: _validate_text}},
        _OPTIONAL("config_subentries"): {
            cv.slug: {
                **_FLOW_SCHEMA,
                _REQUIRED("entry_type"): _validate_text,
                _REQUIRED("initiate_flow"): {_REQUIRED("user"): _validate_text, str: _validate_text},
            }
        },
        _OPTIONAL("options"): _FLOW_SCHEMA,
        _OPTIONAL("selector"): {
            cv.slug: {
                _OPTIONAL("choices"): {_validate_key: _validate_text},
                _OPTIONAL("options"): {_validate_key: _validate_text},
                _OPTIONAL("unit_of_measurement"): {_validate_key: _validate_text},
                _OPTIONAL("fields"): {_validate_key: _FIELD_TEXTS_SCHEMA},
            }
        },
        _OPTIONAL("system_health"): {_OPTIONAL("info"): {_validate_key: _validate_text}},
        _OPTIONAL("issues"): {str: _ISSUE_SCHEMA},
        _OPTIONAL("device"): {_validate_key: {_OPTIONAL("name"): _validate_text}},
        _OPTIONAL("entity"): {cv.slug: {_validate_key: _ENTITY_SCHEMA}},
        _OPTIONAL("exceptions"): {cv.slug: {_REQUIRED("message"): _validate_text}},
        _OPTIONAL("services"): {
            _validate_key: {
                **_FIELD_TEXTS_SCHEMA,
                _OPTIONAL("fields"): {_validate_key: {**_FIELD_TEXTS_SCHEMA, _OPTIONAL("example"): _validate_text}},
                _OPTIONAL("sections"): {
                    _validate_key: {_REQUIRED("name"): _validate_text, _OPTIONAL("description"): _validate_text}
                },
            }
        },
    }
)


def _translations(integration: Integration) -> Iterator[str]:
    yield from _iter_schema_errors(_TRANSLATIONS_SCHEMA, integration.texts)


def _validate_state_icons(entities: dict[str, Any]) -> dict[str, Any]:
    """Raise an error if a state has an icon that is the same as the default icon."""
    for name, each in entities.items():
        if each.get("default") in each.get("state", {}).values():
            raise probatio.Invalid(f"{name} has a state with the default icon")
    return entities


_STATE_ICONS_SCHEMA = {_OPTIONAL("default"): _validate_icon, _OPTIONAL("state"): {_validate_key: _validate_icon}}
_ENTITY_ICONS_SCHEMA = {
    _validate_key: {
        **_STATE_ICONS_SCHEMA,
        _OPTIONAL("state_attributes"): probatio.All({_validate_key: _STATE_ICONS_SCHEMA}, _validate_state_icons),
    }
}
_STEP_ICONS_SCHEMA = {"step": {str: {"section": {str: _validate_icon}}}}
_ICONS_SCHEMA = probatio.Schema(
    {
        _OPTIONAL("config"): _STEP_ICONS_SCHEMA,
        _OPTIONAL("options"): _STEP_ICONS_SCHEMA,
        _OPTIONAL("issues"): {str: {"fix_flow": _STEP_ICONS_SCHEMA}},
        _OPTIONAL("services"): {
            _validate_key: {
                _REQUIRED("service"): _validate_icon,
                _OPTIONAL("sections"): {_validate_key: _validate_icon},
            },
        },
        _OPTIONAL("entity"): {cv.slug: probatio.All(_ENTITY_ICONS_SCHEMA, _validate_state_icons)},
    }
)


def _icons(integration: Integration) -> Iterator[str]:
    yield from _iter_schema_errors(_ICONS_SCHEMA, integration.icons)


_NAME_SCHEMA = {_OPTIONAL("name"): str, _OPTIONAL("description"): str}
_FIELD_SCHEMA = {
    **_NAME_SCHEMA,
    _OPTIONAL("example"): _build_validator(lambda value: value is not None, "is empty"),
    _OPTIONAL("default"): _build_validator(lambda value: value is not None, "is empty"),
    _OPTIONAL("required"): bool,
    _OPTIONAL("advanced"): bool,
    _OPTIONAL("selector"): selector.validate_selector,
}
_FIELDS_SCHEMA = {
    str: probatio.Any(
        _FIELD_SCHEMA,
        {**_NAME_SCHEMA, _REQUIRED("fields"): {str: _FIELD_SCHEMA}, _OPTIONAL("collapsed"): bool},
    )
}
_ACTIONS_SCHEMA = probatio.Schema(
    {
        cv.slug: probatio.Any(
            None,
            {
                **_NAME_SCHEMA,
                _OPTIONAL("target"): probatio.Any(None, selector.TargetSelector.CONFIG_SCHEMA),
                _OPTIONAL("fields"): _FIELDS_SCHEMA,
            },
        )
    }
)


def _services(integration: Integration) -> Iterator[str]:
    if integration.actions is None:
        if any(_REGISTRATION_PATTERN.search(source) for source in integration.modules.values()):
            yield "actions are registered, and there is no services.yaml"
        return
    yield from _iter_schema_errors(_ACTIONS_SCHEMA, integration.actions)
    for action, described in integration.actions.items():
        fields = list(_iter_fields((described or {}).get("fields", {})))
        texts = integration.texts.get("services", {}).get(action, {}).get("fields", {})
        yield from (
            f"{action}: {found}" for found in _find_field_violations(fields, texts, integration.texts["selector"])
        )


def _find_field_violations(
    fields: list[tuple[str, Any]], texts: dict[str, Any], choices: dict[str, Any]
) -> Iterator[str]:
    names = [name for name, _ in fields]
    yield from (f"the field {name} appears twice" for name in sorted(set(names)) if names.count(name) > 1)
    yield from (f"the field {name} has no texts, or texts have no field" for name in sorted(texts.keys() ^ set(names)))
    for name, field in fields:
        key = field.get("selector", {}).get("select", {}).get("translation_key")
        if key is not None and key not in choices:
            yield f"the field {name} has the translation key {key}, which is not in the texts"


def _iter_fields(described: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an action, including those in its sections."""
    for name, field in described.items():
        yield from _iter_fields(field["fields"]) if "fields" in (field or {}) else [(name, field or {})]


RULES = (_manifest, _dependencies, _config_flow, _config_schema, _translations, _icons, _services)


def main() -> int:
    """Print each broken rule, and return the exit status."""
    (folder,) = (path.parent for path in REPOSITORY.glob("custom_components/*/manifest.json"))
    found = find_violations(read_integration(folder))
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
