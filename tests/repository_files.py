"""The files of this repository that tests read."""

import ast
from collections.abc import Iterator
import json
from pathlib import Path
import re
from typing import Any

from homeassistant.util.yaml import load_yaml_dict

from custom_components.windowed_conversation.const import DOMAIN

REPOSITORY = Path(__file__).parent.parent
PACKAGE = REPOSITORY / "custom_components" / DOMAIN

MODULES = sorted(PACKAGE.rglob("*.py"))
MANIFEST = json.loads((PACKAGE / "manifest.json").read_text())
TEXTS = json.loads((PACKAGE / "translations" / "en.json").read_text())
ICONS = json.loads((PACKAGE / "icons.json").read_text())
ACTIONS = load_yaml_dict(str(PACKAGE / "services.yaml"))


def flat(texts: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each translation string."""
    for key, value in texts.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def placeholders(text: str) -> set[str]:
    """Return the names of the placeholders in a text, which are in braces."""
    return set(re.findall(r"{(.*?)}", text))


def syntax(*names: str) -> Iterator[ast.AST]:
    """Yield every syntax node of the named modules, or of all modules if no names are given."""
    for path in [PACKAGE / f"{name}.py" for name in names] or MODULES:
        yield from ast.walk(ast.parse(path.read_text()))


def calls(name: str) -> Iterator[ast.Call]:
    """Yield every call to the function or class with this name."""
    for node in syntax():
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
            yield node
