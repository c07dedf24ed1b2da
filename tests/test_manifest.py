"""Tests for the manifests and the icon: HACS's requirements, as far as they can be checked offline, and our own."""

import ast
from collections.abc import Iterator
import json
import re
import struct
import sys
import tomllib

from awesomeversion import AwesomeVersion
import pytest

from custom_components.windowed_conversation.const import DOMAIN

from .repository_files import MANIFEST, PACKAGE, REPOSITORY, syntax

HACS = json.loads((REPOSITORY / "hacs.json").read_text())
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
PINS = dict(re.findall(r"^([\w-]+)==(\S+)$", (REPOSITORY / "requirements" / "test.txt").read_text(), re.MULTILINE))

# The keys that HACS accepts (hacs/validate/hacsjson.py).
HACS_KEYS = {"name", "country", "hide_default_branch", "homeassistant", "persistent_directory", "render_readme"}
# Import names of requirements that are not imported by their own name.
IMPORTED_AS = {"google-genai": "google"}
# Packages that are installed with Home Assistant, its conversation integration, or an SDK.
OF_OTHERS = {"PIL", "aiohttp", "hassil", "home_assistant_intents", "homeassistant", "httpx2", "probatio", "yarl"}


def module_of(requirement: str) -> str:
    """Return the import name of a requirement."""
    name = requirement.partition(">=")[0]
    return IMPORTED_AS.get(name, name.replace("-", "_"))


def imported() -> Iterator[str]:
    """Yield the names of the top-level packages that the integration imports."""
    for node in syntax():
        match node:
            case ast.Import(names=modules):
                yield from (module.name.partition(".")[0] for module in modules)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]


def test_manifest_says_what_home_assistant_and_hacs_show() -> None:
    assert MANIFEST["domain"] == DOMAIN
    assert MANIFEST["integration_type"] == "service"
    assert MANIFEST["issue_tracker"].startswith("https://")
    assert MANIFEST["codeowners"]


def test_home_assistant_does_not_say_that_the_internet_is_required() -> None:
    # the frontend shows this for cloud classes, but a local model server needs no internet
    assert not MANIFEST["iot_class"].startswith("cloud_")


def test_version_is_the_same_everywhere() -> None:
    assert MANIFEST["version"] == PROJECT["version"]


@pytest.mark.parametrize("requirement", MANIFEST["requirements"])
def test_requirement_is_a_floor_and_the_floor_is_tested(requirement: str) -> None:
    name, _, floor = requirement.partition(">=")

    assert re.fullmatch(r"\d+(\.\d+)+", floor)
    assert PINS[name] == floor


def test_requirements_are_the_packages_that_are_imported() -> None:
    foreign = set(imported()) - sys.stdlib_module_names - OF_OTHERS
    by_name = {node.value for node in syntax("memory/words") if isinstance(node, ast.Constant)}

    assert foreign | ({"snowballstemmer"} & by_name) == set(map(module_of, MANIFEST["requirements"]))


def test_hacs_knows_the_oldest_home_assistant() -> None:
    assert {"name", "homeassistant"} <= HACS.keys() <= HACS_KEYS
    assert HACS["name"] == MANIFEST["name"]
    assert HACS["homeassistant"].split(".")[:2] == PINS["homeassistant"].split(".")[:2]
    assert AwesomeVersion(HACS["homeassistant"]) <= AwesomeVersion(PINS["homeassistant"])


def test_there_is_one_integration_and_all_of_it_is_inside() -> None:
    assert [path.name for path in PACKAGE.parent.iterdir() if path.name != "__pycache__"] == [DOMAIN]
    assert (PACKAGE / "py.typed").is_file()
    assert not (PACKAGE / "strings.json").exists()


@pytest.mark.rule("brands")
@pytest.mark.parametrize(("name", "size"), [("icon.png", 256), ("icon@2x.png", 512)])
def test_icon_is_a_square_with_transparency(name: str, size: int) -> None:
    head = (PACKAGE / "brand" / name).read_bytes()[:26]

    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">IIBB", head[16:26]) == (size, size, 8, 6)


def test_readme_installs_the_repository_of_the_manifest() -> None:
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    *_, owner, name = MANIFEST["documentation"].split("/")

    assert f"hacs_repository/?owner={owner}&repository={name}&category=integration" in readme
    assert f"`{MANIFEST['documentation']}`" in readme
