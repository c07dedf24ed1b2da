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
_COMPONENTS = Path(homeassistant.__file__).parent / "components"
_CORE_PAGES = "https://www.home-assistant.io/integrations"
_IOT_CLASSES = {"assumed_state", "calculated", "cloud_polling", "cloud_push", "local_polling", "local_push"}
_INTEGRATION_TYPES = {"device", "entity", "hardware", "helper", "hub", "service", "system"}
_QUALITY_SCALES = {"bronze", "silver", "gold", "platinum", "custom", "no_score", "internal", "legacy"}
# Integrations that may be imported without being in the manifest: the entries of hassfest's `ALLOWED_USED_COMPONENTS`
# that are needed here.
_FREE = {*Platform, "automation", "frontend", "homeassistant", "person", "script", "system_health", "zone"}
_DISCOVERIES = ("discovery", "bluetooth", "hassio", "homekit", "mqtt", "ssdp", "zeroconf", "dhcp", "usb")
_UNIQUE = ("async_set_unique_id", "_async_handle_discovery_without_unique_id", "register_discovery_flow")
_REGISTERS = re.compile(r"services\.(async_)?register\(|async_register_(entity|admin)_service\(")

_KEY = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")
_URL = re.compile(r"\w://|\bwww\.", re.IGNORECASE)
_QUOTED = re.compile(r"'{\w+}'")
_REQUIREMENT = re.compile(r"[-_,.\w\[\]]+((==|>=|<=|~=|!=|<|>)[^ ]+)?")


class Integration(NamedTuple):
    """The files of an integration: the parsed data files, and the source of each module by its relative path."""

    folder: str
    manifest: dict[str, Any]
    texts: dict[str, Any]
    icons: dict[str, Any]
    actions: dict[str, Any] | None
    modules: Mapping[str, str]


def read(folder: Path) -> Integration:
    """Return an integration's files. Raises a `ValueError` that names the file if it is not valid JSON."""
    parsed = {str(path.relative_to(folder)): _parsed(path) for path in sorted(folder.rglob("*.json"))}
    actions = folder / "services.yaml"
    return Integration(
        folder.name,
        parsed["manifest.json"],
        parsed["translations/en.json"],
        parsed.get("icons.json", {}),
        load_yaml_dict(str(actions)) if actions.is_file() else None,
        {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))},
    )


def findings(integration: Integration) -> list[str]:
    """Return one line for each rule that the integration breaks."""
    return [f"{rule.__name__.strip('_')}: {found}" for rule in RULES for found in rule(integration)]


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as err:
        raise ValueError(f"{path} is no JSON: {err}") from err


def _broken(schema: probatio.Schema, value: object) -> Iterator[str]:
    """Yield the path and message of each error that a schema finds in a value."""
    try:
        schema(value)
    except probatio.MultipleInvalid as err:
        yield from (f"{'.'.join(map(str, each.path))}: {each.msg}" for each in err.errors)
    except probatio.Invalid as err:
        yield f"{'.'.join(map(str, err.path))}: {err.msg}"


def _check(is_right: Callable[[Any], object], wanted: str) -> Callable[[Any], Any]:
    """Return a validator that accepts a value if `is_right` does, and otherwise raises an error naming the form."""

    def check(value: Any) -> Any:
        if not is_right(value):
            raise probatio.Invalid(wanted)
        return value

    return check


def _key(value: Any) -> str:
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise probatio.Invalid("is no key of a translation")
    return value


def _text(value: Any) -> str:
    text: str = cv.string_with_no_html(value)
    if not isinstance(value, str) or not text or text != text.strip():
        raise probatio.Invalid("is no text without spaces around it")
    if _URL.search(text):
        raise probatio.Invalid("has a URL, which belongs into a placeholder")
    if _QUOTED.search(text):
        raise probatio.Invalid("has a placeholder in single quotes")
    if "[%" in text or "%]" in text:
        raise probatio.Invalid("refers to another text, which only Home Assistant's own can")
    if any(name is not None and not name.isidentifier() for _, name, _, _ in string.Formatter().parse(text)):
        raise probatio.Invalid("has a placeholder that is no identifier")
    return text


def _plain(value: Any) -> str:
    text = _text(value)
    if "{" in text:
        raise probatio.Invalid("may not have placeholders")
    return text


def _icon(value: Any) -> str:
    icon: str = cv.string_with_no_html(value)
    if not icon.startswith("mdi:"):
        raise probatio.Invalid("is no icon of Material Design Icons")
    return icon


_optional, _required = probatio.Optional, probatio.Required
_url = probatio.Url()

_MANIFEST = probatio.Schema(
    {
        _required("domain"): str,
        _required("name"): str,
        _required("codeowners"): [_check(re.compile("@.+").fullmatch, "a codeowner begins with @")],
        _required("documentation"): probatio.All(
            _url,
            _check(lambda url: url.startswith("https://"), "has to be https"),
            _check(lambda url: not url.startswith(_CORE_PAGES), "is a page of Home Assistant's own"),
        ),
        _required("version"): _check(
            lambda text: isinstance(text, str) and AwesomeVersion(text).valid, "is no version"
        ),
        _required("integration_type"): probatio.In(_INTEGRATION_TYPES),
        _required("iot_class"): probatio.In(_IOT_CLASSES),
        _optional("issue_tracker"): _url,
        _optional("config_flow"): bool,
        _optional("single_config_entry"): bool,
        _optional("import_executor"): bool,
        _optional("requirements"): [_check(_REQUIREMENT.fullmatch, "is no requirement without spaces")],
        _optional("dependencies"): [str],
        _optional("after_dependencies"): [str],
        _optional("loggers"): [str],
        _optional("quality_scale"): probatio.In(_QUALITY_SCALES),
    }
)


def _manifest(integration: Integration) -> Iterator[str]:
    manifest = integration.manifest
    yield from _broken(_MANIFEST, manifest)
    if manifest.get("domain") != integration.folder:
        yield "the domain is not the name of the folder"
    if (_COMPONENTS / str(manifest.get("domain"))).exists():
        yield "the domain is one of Home Assistant's own integrations"
    if [*manifest] != ["domain", "name", *sorted(manifest.keys() - {"domain", "name"})]:
        yield "the keys are not in order: domain, name, then by the alphabet"


def _dependencies(integration: Integration) -> Iterator[str]:
    first, after = (set(integration.manifest.get(key, ())) for key in ("dependencies", "after_dependencies"))
    yield from (f"{each} is a dependency twice" for each in sorted(first & after))
    yield from (f"{each} does not exist" for each in sorted(first | after) if not (_COMPONENTS / each).is_dir())
    parts = {path.partition("/")[0].removesuffix(".py") for path in integration.modules}
    allowed = _FREE | first | after | parts
    for path, source in integration.modules.items():
        for used in sorted(_imported(source) - allowed):
            yield f"{path} imports {used}, which is neither in dependencies nor in after_dependencies"


@cache
def _imported(source: str) -> frozenset[str]:
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
    is_found = any(f"async_step_{each}" in (flow or "") for each in _DISCOVERIES)
    if is_found and not any(each in (flow or "") for each in _UNIQUE):
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


_TEXTS_BY_KEY: dict[Any, Any] = {str: _text}
_FIELD_TEXTS: dict[Any, Any] = {_required("name"): _text, _required("description"): _text}
_FORM = {
    _optional("description"): _text,
    _optional("data"): _TEXTS_BY_KEY,
    _optional("data_description"): _TEXTS_BY_KEY,
}


def _described(form: dict[str, Any]) -> dict[str, Any]:
    """Raise an error if a field description has no field in its form or section."""
    for each in sorted(form.get("data_description", {}).keys() - form.get("data", {}).keys()):
        raise probatio.Invalid(f"data_description {each} has no field")
    return form


_STEP = probatio.All(
    {
        **_FORM,
        _optional("title"): _text,
        _optional("menu_options"): _TEXTS_BY_KEY,
        _optional("menu_option_descriptions"): _TEXTS_BY_KEY,
        _optional("submit"): _text,
        _optional("sections"): {str: probatio.All({**_FORM, _optional("name"): _text}, _described)},
    },
    _described,
)
_FLOW: dict[Any, Any] = {
    _optional("flow_title"): _text,
    _required("step"): {str: _STEP},
    _optional("error"): _TEXTS_BY_KEY,
    _optional("abort"): _TEXTS_BY_KEY,
    _optional("progress"): _TEXTS_BY_KEY,
    _optional("create_entry"): _TEXTS_BY_KEY,
}
_ENTITY = {
    _optional("name"): _text,
    _optional("state"): {_key: _plain},
    _optional("state_attributes"): {_key: {_optional("name"): _plain, _optional("state"): {_key: _plain}}},
    _optional("unit_of_measurement"): _plain,
}
_ISSUE = probatio.All(
    {_required("title"): _text, _optional("description"): _text, _optional("fix_flow"): _FLOW},
    _check(lambda issue: ("description" in issue) != ("fix_flow" in issue), "has either a description or a fix_flow"),
)
_TEXTS = probatio.Schema(
    {
        _optional("title"): _text,
        _optional("common"): {cv.slug: _text},
        _optional("config"): _FLOW,
        _optional("config_subentries"): {
            cv.slug: {
                **_FLOW,
                _required("entry_type"): _text,
                _required("initiate_flow"): {_required("user"): _text, str: _text},
            }
        },
        _optional("options"): _FLOW,
        _optional("selector"): {
            cv.slug: {
                _optional("choices"): {_key: _text},
                _optional("options"): {_key: _text},
                _optional("unit_of_measurement"): {_key: _text},
                _optional("fields"): {_key: _FIELD_TEXTS},
            }
        },
        _optional("system_health"): {_optional("info"): {_key: _text}},
        _optional("issues"): {str: _ISSUE},
        _optional("device"): {_key: {_optional("name"): _text}},
        _optional("entity"): {cv.slug: {_key: _ENTITY}},
        _optional("exceptions"): {cv.slug: {_required("message"): _text}},
        _optional("services"): {
            _key: {
                **_FIELD_TEXTS,
                _optional("fields"): {_key: {**_FIELD_TEXTS, _optional("example"): _text}},
                _optional("sections"): {_key: {_required("name"): _text, _optional("description"): _text}},
            }
        },
    }
)


def _translations(integration: Integration) -> Iterator[str]:
    yield from _broken(_TEXTS, integration.texts)


def _unlike_default(entities: dict[str, Any]) -> dict[str, Any]:
    """Raise an error if a state has an icon that is the same as the default icon."""
    for name, each in entities.items():
        if each.get("default") in each.get("state", {}).values():
            raise probatio.Invalid(f"{name} has a state with the default icon")
    return entities


_ICONS_OF_STATES = {_optional("default"): _icon, _optional("state"): {_key: _icon}}
_ICONS_OF_ENTITIES = {
    _key: {
        **_ICONS_OF_STATES,
        _optional("state_attributes"): probatio.All({_key: _ICONS_OF_STATES}, _unlike_default),
    }
}
_ICONS_OF_STEPS = {"step": {str: {"section": {str: _icon}}}}
_ICONS = probatio.Schema(
    {
        _optional("config"): _ICONS_OF_STEPS,
        _optional("options"): _ICONS_OF_STEPS,
        _optional("issues"): {str: {"fix_flow": _ICONS_OF_STEPS}},
        _optional("services"): {
            _key: {_required("service"): _icon, _optional("sections"): {_key: _icon}},
        },
        _optional("entity"): {cv.slug: probatio.All(_ICONS_OF_ENTITIES, _unlike_default)},
    }
)


def _icons(integration: Integration) -> Iterator[str]:
    yield from _broken(_ICONS, integration.icons)


_NAMED = {_optional("name"): str, _optional("description"): str}
_FIELD = {
    **_NAMED,
    _optional("example"): _check(lambda value: value is not None, "is empty"),
    _optional("default"): _check(lambda value: value is not None, "is empty"),
    _optional("required"): bool,
    _optional("advanced"): bool,
    _optional("selector"): selector.validate_selector,
}
_FIELDS = {
    str: probatio.Any(
        _FIELD,
        {**_NAMED, _required("fields"): {str: _FIELD}, _optional("collapsed"): bool},
    )
}
_ACTIONS = probatio.Schema(
    {
        cv.slug: probatio.Any(
            None,
            {
                **_NAMED,
                _optional("target"): probatio.Any(None, selector.TargetSelector.CONFIG_SCHEMA),
                _optional("fields"): _FIELDS,
            },
        )
    }
)


def _services(integration: Integration) -> Iterator[str]:
    if integration.actions is None:
        if any(_REGISTERS.search(source) for source in integration.modules.values()):
            yield "actions are registered, and there is no services.yaml"
        return
    yield from _broken(_ACTIONS, integration.actions)
    for action, described in integration.actions.items():
        fields = list(_fields((described or {}).get("fields", {})))
        texts = integration.texts.get("services", {}).get(action, {}).get("fields", {})
        yield from (f"{action}: {found}" for found in _fields_broken(fields, texts, integration.texts["selector"]))


def _fields_broken(fields: list[tuple[str, Any]], texts: dict[str, Any], choices: dict[str, Any]) -> Iterator[str]:
    names = [name for name, _ in fields]
    yield from (f"the field {name} appears twice" for name in sorted(set(names)) if names.count(name) > 1)
    yield from (f"the field {name} has no texts, or texts have no field" for name in sorted(texts.keys() ^ set(names)))
    for name, field in fields:
        key = field.get("selector", {}).get("select", {}).get("translation_key")
        if key is not None and key not in choices:
            yield f"the field {name} has the translation key {key}, which is not in the texts"


def _fields(described: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an action, including those in its sections."""
    for name, field in described.items():
        yield from _fields(field["fields"]) if "fields" in (field or {}) else [(name, field or {})]


RULES = (_manifest, _dependencies, _config_flow, _config_schema, _translations, _icons, _services)


def main() -> int:
    """Print each broken rule, and return the exit status."""
    (folder,) = (path.parent for path in REPOSITORY.glob("custom_components/*/manifest.json"))
    found = findings(read(folder))
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
