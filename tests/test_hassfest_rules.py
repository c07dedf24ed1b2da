"""That our files keep hassfest's rules, and that a fault of each kind is found."""

from copy import deepcopy
from typing import Any

import probatio
import pytest

from .hassfest_rules import RULES
from .repository_files import ACTIONS, ICONS, PACKAGE, TEXTS

OURS: dict[str, Any] = {
    "icons": ICONS,
    "entity": TEXTS["entity"],
    "exceptions": TEXTS["exceptions"],
    "services": TEXTS["services"],
    "actions": ACTIONS,
    "source": (PACKAGE / "__init__.py").read_text(),
}
GONE = object()

# What is put instead of what is at the end of a path.
FAULTS: dict[str, tuple[str, list[str], object]] = {
    "placeholder in a state": ("entity", ["sensor", "last_route", "state", "error"], "Error {number}"),
    "exception that is a text": ("exceptions", ["unavailable"], "The server is away."),
    "action without a description": ("services", ["get_window", "description"], GONE),
    "field without a description": ("services", ["get_window", "fields", "tags", "description"], GONE),
    "icon of another kind": ("icons", ["services", "get_window", "service"], "hass:forum"),
    "unknown part of the icons": ("icons", ["entities"], {}),
    "misspelt key of a field": ("actions", ["get_window", "fields", "entity_id", "requird"], True),
}


def injected(part: Any, path: list[str], value: object) -> Any:
    """Return a copy with the value at the end of the path, or nothing there for `GONE`."""
    copy = found = deepcopy(part)
    for key in path[:-1]:
        found = found[key]
    found.pop(path[-1], None)
    if value is not GONE:
        found[path[-1]] = value
    return copy


@pytest.mark.parametrize("part", RULES)
def test_our_files_keep_the_rules(part: str) -> None:
    RULES[part](OURS[part])


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(fault: str) -> None:
    part, path, value = FAULTS[fault]

    with pytest.raises(probatio.Invalid):
        RULES[part](injected(OURS[part], path, value))


def test_integration_that_does_not_refuse_yaml_is_found() -> None:
    with pytest.raises(probatio.Invalid):
        RULES["source"](OURS["source"].replace("CONFIG_SCHEMA", "SCHEMA"))
