"""Tests that our files follow hassfest's rules, and that violations of each kind are found."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from scripts.check_hassfest import Integration, find_violations, read_integration

from .repository_files import PACKAGE

OURS = read_integration(PACKAGE)
FLOW, SENSOR = ["config", "step", "server"], ["entity", "sensor", "last_route"]
AGENT, OWNERS = ["config_subentries", "conversation"], ["selector", "device_owners", "fields", "person"]
FORGET = ["services", "forget"]
REMOVED = object()

# The part of the integration, the path inside it, the new value there, and a part of the expected finding.
FAULTS: dict[str, tuple[str, list[str], object, str]] = {
    "unknown key of the manifest": ("manifest", ["requires"], [], "requires"),
    "manifest without an owner": ("manifest", ["codeowners"], REMOVED, "codeowners"),
    "owner without an @": ("manifest", ["codeowners"], ["grace"], "@"),
    "manifest without a version": ("manifest", ["version"], REMOVED, "version"),
    "version that is none": ("manifest", ["version"], "one", "version"),
    "other domain": ("manifest", ["domain"], "other", "folder"),
    "domain of Home Assistant's own": ("manifest", ["domain"], "openai_conversation", "own integrations"),
    "unknown type of integration": ("manifest", ["integration_type"], "agent", "integration_type"),
    "manifest without a type of integration": ("manifest", ["integration_type"], REMOVED, "integration_type"),
    "unknown class": ("manifest", ["iot_class"], "cloud", "iot_class"),
    "manifest without a class": ("manifest", ["iot_class"], REMOVED, "iot_class"),
    "unknown quality": ("manifest", ["quality_scale"], "best", "quality_scale"),
    "documentation without https": ("manifest", ["documentation"], "http://example.com", "https"),
    "documentation of Home Assistant's own": (
        "manifest",
        ["documentation"],
        "https://www.home-assistant.io/integrations/openai",
        "own",
    ),
    "issue tracker that is no address": ("manifest", ["issue_tracker"], "here", "issue_tracker"),
    "requirement with a space": ("manifest", ["requirements"], ["openai >= 3"], "requirement"),
    "dependency that does not exist": ("manifest", ["dependencies"], ["conversations"], "does not exist"),
    "dependency that is there twice": ("manifest", ["dependencies"], ["recorder"], "twice"),
    "import without a dependency": ("manifest", ["after_dependencies"], ["intent"], "imports recorder"),
    "flow that the manifest does not name": ("manifest", ["config_flow"], False, "config_flow"),
    "unknown part of the texts": ("texts", ["configs"], {}, "configs"),
    "text of a page that is in no group": ("texts", ["config_panel", "title"], "Title", "title"),
    "text with a space at its end": ("texts", [*FLOW, "title"], "Server ", "spaces"),
    "text that is empty": ("texts", [*FLOW, "title"], "", "spaces"),
    "text that is a number": ("texts", [*FLOW, "title"], 1, "spaces"),
    "text with HTML": ("texts", [*FLOW, "title"], "a <b>server</b>", "HTML"),
    "text with an address": ("texts", [*FLOW, "title"], "see https://example.com", "URL"),
    "placeholder in quotes": ("texts", [*FLOW, "title"], "the '{server}'", "quotes"),
    "placeholder that is no identifier": ("texts", [*FLOW, "title"], "the {model name}", "identifier"),
    "text that refers to another": ("texts", [*FLOW, "title"], "[%key:common::server%]", "refers"),
    "unknown part of a step": ("texts", [*FLOW, "label"], "Server", "label"),
    "description without a field": ("texts", [*FLOW, "data_description", "gone"], "A field.", "gone"),
    "description without a field of a section": (
        "texts",
        [*AGENT, "step", "agent", "sections", "advanced", "data_description", "gone"],
        "A field.",
        "gone",
    ),
    "subentry without a type": ("texts", [*AGENT, "entry_type"], REMOVED, "entry_type"),
    "subentry that cannot be added": ("texts", [*AGENT, "initiate_flow", "user"], REMOVED, "user"),
    "key with a capital": ("texts", ["selector", "scope", "options", "Agent"], "Agent", "key"),
    "key that ends in a line": ("texts", ["selector", "scope", "options", "agent_"], "Agent", "key"),
    "field of a selector without a description": ("texts", [*OWNERS, "description"], REMOVED, "description"),
    "field of a selector that is a text": ("texts", OWNERS, "Person", "person"),
    "issue without a title": ("texts", ["issues", "memory_full", "title"], REMOVED, "title"),
    "issue without a description": ("texts", ["issues", "memory_full", "description"], REMOVED, "fix_flow"),
    "placeholder in a state": ("texts", [*SENSOR, "state", "error"], "Error {number}", "placeholders"),
    "placeholder in the name of an attribute": (
        "texts",
        [*SENSOR, "state_attributes", "reason", "name"],
        "Reason {number}",
        "placeholders",
    ),
    "exception that is a text": ("texts", ["exceptions", "unavailable"], "The server is away.", "unavailable"),
    "action without a description": ("texts", [*FORGET, "description"], REMOVED, "description"),
    "action without a name": ("texts", [*FORGET, "name"], REMOVED, "name"),
    "field without a description": ("texts", [*FORGET, "fields", "query", "description"], REMOVED, "description"),
    "field without texts": ("texts", [*FORGET, "fields", "query"], REMOVED, "query"),
    "texts without a field": (
        "texts",
        [*FORGET, "fields", "gone"],
        {"name": "Gone", "description": "A field."},
        "gone",
    ),
    "choices without texts": ("texts", ["selector", "memory_kinds"], REMOVED, "memory_kinds"),
    "text of system health in a wrong place": ("texts", ["system_health", "memory"], "Memory", "memory"),
    "icon of another kind": ("icons", [*FORGET, "service"], "hass:forum", "Material"),
    "unknown part of the icons": ("icons", ["entities"], {}, "entities"),
    "state with the default icon": (
        "icons",
        SENSOR,
        {"default": "mdi:call-split", "state": {"error": "mdi:call-split"}},
        "default icon",
    ),
    "misspelt key of a field": ("actions", ["forget", "fields", "query", "requird"], True, "requird"),
    "unknown selector": ("actions", ["forget", "fields", "query", "selector"], {"words": {}}, "words"),
    "empty example": ("actions", ["forget", "fields", "query", "example"], None, "empty"),
    "field that is there twice": (
        "actions",
        ["forget", "fields", "more"],
        {"fields": {"query": {"selector": {"text": {}}}}},
        "twice",
    ),
    "module without a schema": ("modules", ["__init__.py"], "async def async_setup(): ...", "CONFIG_SCHEMA"),
    "discovery without a unique ID": ("modules", ["config_flow.py"], "async def async_step_dhcp(): ...", "unique"),
    "import of a whole integration": ("modules", ["entity.py"], "from homeassistant.components import zha", "zha"),
}


def inject_fault(part: str, path: list[str], value: object) -> Integration:
    """Return our integration with the value at the end of the path replaced, or removed if it is `REMOVED`."""
    faulty = found = deepcopy(getattr(OURS, part))
    for key in path[:-1]:
        found = found[key]
    found.pop(path[-1], None)
    if value is not REMOVED:
        found[path[-1]] = value
    changed: dict[str, Any] = {part: faulty}
    return OURS._replace(**changed)


def test_our_files_keep_the_rules() -> None:
    assert find_violations(OURS) == []


def test_fault_is_found(subtests: pytest.Subtests) -> None:
    for fault, (part, path, value, words) in FAULTS.items():
        with subtests.test(fault=fault):
            found = find_violations(inject_fault(part, path, value))

            assert any(words in each for each in found), found


def test_keys_of_a_manifest_that_are_not_in_order_are_found() -> None:
    assert "order" in "".join(find_violations(OURS._replace(manifest=dict(reversed(OURS.manifest.items())))))


def test_actions_without_their_file_are_found() -> None:
    assert "no services.yaml" in "".join(find_violations(OURS._replace(actions=None)))


def test_file_that_is_no_json_is_found(tmp_path: Path) -> None:
    (tmp_path / "icons.json").write_text("{")

    with pytest.raises(ValueError, match=r"icons\.json is no JSON"):
        read_integration(tmp_path)
