"""Tests for quality_scale.yaml and for the rules of the scale that are about files of this repository.

A rule that is `done` has a test that fails without what the rule asks for. Tests of other files are marked as well.
"""

import ast
from collections.abc import Iterator
from importlib import import_module, metadata
from itertools import chain, takewhile
from pathlib import Path
import re
import tomllib

from homeassistant.components.sensor import SensorDeviceClass, SensorEntityDescription
from homeassistant.const import PERCENTAGE, Platform, UnitOfInformation, UnitOfTime
from homeassistant.util.yaml import load_yaml_dict
import pytest

from custom_components.windowed_conversation import PLATFORMS
from custom_components.windowed_conversation.ai_task import WindowedTaskEntity
from custom_components.windowed_conversation.conversation import WindowedConversationEntity
from custom_components.windowed_conversation.entity import AgentEntity
from custom_components.windowed_conversation.sensor import COST_SENSORS, MEMORY_SENSORS, SENSORS, AgentSensor

from .documents import DOCS, links, section, table
from .repository_files import MANIFEST, PACKAGE, REPOSITORY, TEXTS, calls, syntax

# The rules by tier, from hassfest's ALL_RULES (script/hassfest/quality_scale.py).
_RULE_NAMES_BY_TIER = {
    "bronze": """
        action-setup appropriate-polling brands common-modules config-flow config-flow-test-coverage
        dependency-transparency docs-actions docs-conditions docs-high-level-description docs-installation-instructions
        docs-removal-instructions docs-triggers entity-event-setup entity-unique-id has-entity-name runtime-data
        test-before-configure test-before-setup unique-config-entry
    """,
    "silver": """
        action-exceptions config-entry-unloading docs-configuration-parameters docs-installation-parameters
        entity-unavailable integration-owner log-when-unavailable parallel-updates reauthentication-flow test-coverage
    """,
    "gold": """
        devices diagnostics discovery discovery-update-info docs-data-update docs-examples docs-known-limitations
        docs-supported-devices docs-supported-functions docs-troubleshooting docs-use-cases dynamic-devices
        entity-category entity-device-class entity-disabled-by-default entity-translations exception-translations
        icon-translations reconfiguration-flow repair-issues stale-devices
    """,
    "platinum": "async-dependency inject-websession strict-typing",
}
RULES_BY_TIER = {tier: names.split() for tier, names in _RULE_NAMES_BY_TIER.items()}
RULES = load_yaml_dict(str(PACKAGE / "quality_scale.yaml"))["rules"]
STATUS_BY_RULE = {name: rule["status"] if isinstance(rule, dict) else rule for name, rule in RULES.items()}
COMMENT_BY_RULE = {name: rule["comment"].strip() for name, rule in RULES.items() if isinstance(rule, dict)}

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
TEST_SCRIPT = (REPOSITORY / "scripts" / "test").read_text()
README = REPOSITORY / "README.md"
CONTENTS = DOCS / "README.md"
# The rules of the documentation, each with a page, a heading, and how many different matches of a pattern are below it.
DESCRIBED = [
    ("docs-installation-instructions", "installation", "Installation", "requires Home Assistant 2026.10 or newer", 1),
    ("docs-installation-instructions", "installation", "Install from the Marketplace", r"^\d\. ", 2),
    ("docs-installation-instructions", "installation", "Install from HACS", r"^\d\. ", 2),
    ("docs-installation-instructions", "installation", "Set up an account", r"^\d\. ", 2),
    ("docs-removal-instructions", "installation", "Remove it", r"^\d\. ", 3),
    ("docs-removal-instructions", "installation", "Remove it", r"\*\*(?:Marketplace|HACS|Manually)\*\*", 3),
    ("docs-data-update", "sensors", "When they update", "after each turn", 1),
    ("docs-known-limitations", "limits", "Not included", "image generation", 1),
    ("docs-troubleshooting", "troubleshooting", "Symptoms", r"^\| \w.* \| \w.* \|$", 11),
    ("docs-use-cases", "README", "What you can use it for", r"^- \*\*.*", 3),
]

DESCRIPTIONS: tuple[SensorEntityDescription, ...] = (*SENSORS, *COST_SENSORS, *MEMORY_SENSORS)
DEVICE_CLASS_BY_UNIT: dict[str | None, SensorDeviceClass | None] = {
    UnitOfTime.SECONDS: SensorDeviceClass.DURATION,
    UnitOfInformation.BYTES: SensorDeviceClass.DATA_SIZE,
    "USD": SensorDeviceClass.MONETARY,
}
# Home Assistant has no device class for these units.
UNITS_WITHOUT_CLASS = {None, "tokens", PERCENTAGE}

FLOWS = (TEXTS["config"], TEXTS["options"], *TEXTS["config_subentries"].values())
# The errors and the reasons of aborts. The text for a number out of range has no key in a form.
REASONS = {name for flow in FLOWS for part in ("error", "abort") for name in flow.get(part, ())} - {"out_of_range"}
FLOW_TEST_LITERALS = {
    str(node.value)
    for path in (REPOSITORY / "tests" / "integration").glob("test_*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Constant)
}
CALLED = {ast.unparse(node.func).rpartition(".")[2] for node in syntax() if isinstance(node, ast.Call)}
# Home Assistant's errors that are shown to users.
ERRORS = {"HomeAssistantError", "ServiceValidationError", "ConfigEntryError", "ConfigEntryNotReady"}
DISCOVERIES = {"bluetooth", "dhcp", "homekit", "mqtt", "ssdp", "usb", "zeroconf"}
# The second argument of these functions is the account's config entry, and the first of `async_get_options_flow`.
ENTRY_FUNCTIONS = {
    "async_setup_entry",
    "async_unload_entry",
    "async_remove_entry",
    "async_get_config_entry_diagnostics",
    "async_get_options_flow",
}


def rules_with_a_test() -> set[str]:
    """Return the rules that have a test or a row of `DESCRIBED`."""
    texts = (path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    marks = re.compile(r'^@pytest\.mark\.rule\("(\S+)"\)$', re.MULTILINE)
    return {rule for rule, *_ in DESCRIBED}.union(*map(marks.findall, texts))


def listed_pages() -> set[Path]:
    """Return the pages that the table of contents of the documentation lists, and that table if README links to it."""
    listed = {(DOCS / link).resolve() for link in links(CONTENTS)}
    return listed | ({(REPOSITORY / link).resolve() for link in links(README)} & {CONTENTS})


def distributions() -> dict[str, metadata.Distribution]:
    """Return the installed distribution of each requirement by its name."""
    names = [requirement.partition(">=")[0] for requirement in MANIFEST["requirements"]]
    return {name: metadata.distribution(name) for name in names}


def licence(distribution: metadata.Distribution) -> str:
    """Return the first word of a distribution's licence."""
    about = distribution.metadata
    return re.split(r"[\s-]", about.get("License-Expression") or about.get("License") or "none")[0]


def source_addresses(distribution: metadata.Distribution) -> list[str]:
    """Return the addresses on GitHub that a distribution names."""
    about = distribution.metadata
    named = [*(about.get_all("Project-URL") or ()), about.get("Home-page") or ""]
    return re.findall(r"https://github\.com/\S+", " ".join(named))


def entry_annotations() -> Iterator[tuple[str, str]]:
    """Yield the functions that get the config entry, each with the annotation of that argument."""
    functions = (node for path in PACKAGE.glob("*.py") for node in ast.walk(ast.parse(path.read_text())))
    for node in functions:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in ENTRY_FUNCTIONS:
            (argument,) = [each for each in node.args.args if each.arg in {"entry", "config_entry"}]
            yield node.name, ast.unparse(argument.annotation) if argument.annotation else ""


def test_every_rule_of_the_scale_has_its_status() -> None:
    assert RULES.keys() == {*chain.from_iterable(RULES_BY_TIER.values())}
    assert {*STATUS_BY_RULE.values()} <= {"done", "exempt", "todo"}


def test_every_rule_that_is_done_has_its_test() -> None:
    done = {name for name, status in STATUS_BY_RULE.items() if status == "done"}

    assert done - rules_with_a_test() == set()


def test_every_test_of_a_rule_names_one_that_there_is() -> None:
    assert rules_with_a_test() - RULES.keys() == set()


def test_every_rule_that_is_not_done_says_why() -> None:
    unmet = {name for name, status in STATUS_BY_RULE.items() if status != "done"}

    assert {name for name in unmet if len(COMMENT_BY_RULE.get(name, "")) > 20} == unmet


def test_manifest_claims_no_tier_with_an_open_rule() -> None:
    met = {name for name, status in STATUS_BY_RULE.items() if status != "todo"}
    reached = takewhile(lambda tier: met.issuperset(RULES_BY_TIER[tier]), RULES_BY_TIER)

    # Home Assistant shows every custom integration as "custom"
    assert MANIFEST.get("quality_scale", "custom") in {"custom", *reached}


@pytest.mark.rule("common-modules")
def test_entities_of_an_agent_have_their_base_class_in_the_common_module() -> None:
    entities = (WindowedConversationEntity, WindowedTaskEntity, AgentSensor)

    assert [entity for entity in entities if AgentEntity not in entity.__mro__] == []
    assert AgentEntity.__module__.rpartition(".")[2] == "entity"


@pytest.mark.rule("common-modules")
def test_there_is_no_coordinator_outside_the_common_module() -> None:
    bases = {ast.unparse(base) for node in syntax() if isinstance(node, ast.ClassDef) for base in node.bases}

    assert [base for base in bases if "Coordinator" in base] == []


@pytest.mark.rule("config-flow-test-coverage")
def test_error_and_abort_of_the_forms_occurs_in_a_test(subtests: pytest.Subtests) -> None:
    for name in sorted(REASONS):
        with subtests.test(name=name):
            # the beginning is enough, because a test may put a name together
            assert [text for text in FLOW_TEST_LITERALS if len(text) > 6 and name.startswith(text)] != []


@pytest.mark.rule("config-flow-test-coverage")
def test_unit_stage_demands_every_line_of_the_forms() -> None:
    (included, least) = re.findall(r"coverage report --include='(\S+)' --fail-under=(\d+)", TEST_SCRIPT)[0]

    assert included.split(",") == ["*/config_flow.py", "*/flows/*"]
    assert least == "100"


@pytest.mark.rule("dependency-transparency")
@pytest.mark.parametrize(("name", "distribution"), distributions().items(), ids=distributions())
def test_requirement_is_open_source(name: str, distribution: metadata.Distribution) -> None:
    assert licence(distribution) in {"Apache", "BSD", "MIT"}
    assert source_addresses(distribution) != []


@pytest.mark.rule("docs-high-level-description")
def test_readme_begins_with_what_the_integration_is() -> None:
    opening = section(README, "Windowed Conversation").lower()

    assert [word for word in ("assist", "home assistant", "ai model", "history") if word not in opening] == []


def test_page_describes_what_its_rule_asks_for(subtests: pytest.Subtests) -> None:
    for rule, name, heading, pattern, count in DESCRIBED:
        with subtests.test(rule=rule, heading=heading):
            page = DOCS / f"{name}.md"

            assert page in listed_pages()
            assert len({*re.findall(pattern, section(page, heading), re.MULTILINE)}) >= count


@pytest.mark.rule("docs-supported-devices")
def test_page_of_the_servers_has_every_kind_of_account() -> None:
    page, menu = DOCS / "servers.md", TEXTS["config"]["step"]["user"]["menu_options"]

    assert page in listed_pages()
    assert {row[1] for row in table(page, "What to enter")} == {*menu.values()} - {menu["local"]}


@pytest.mark.rule("docs-conditions")
def test_there_are_no_conditions_to_describe() -> None:
    assert [path for path in PACKAGE.rglob("*condition*") if path.suffix in {".py", ".yaml"}] == []


@pytest.mark.rule("docs-triggers")
def test_there_are_no_triggers_to_describe() -> None:
    assert [path for path in PACKAGE.rglob("*trigger*") if path.suffix in {".py", ".yaml"}] == []


@pytest.mark.rule("parallel-updates")
@pytest.mark.parametrize("platform", PLATFORMS)
def test_platform_says_how_many_of_its_entities_update_at_once(platform: Platform) -> None:
    module = import_module(f"custom_components.windowed_conversation.{platform}")

    assert vars(module)["PARALLEL_UPDATES"] == 0


@pytest.mark.rule("test-coverage")
def test_unit_stage_demands_coverage_of_the_whole_integration() -> None:
    coverage = PROJECT["tool"]["coverage"]

    assert coverage["report"]["fail_under"] > 95
    assert (coverage["run"]["branch"], coverage["run"]["source"]) == (True, ["custom_components"])
    assert "omit" not in coverage["run"]
    # the tests of all folders run in three parts, whose coverage is added up
    assert TEST_SCRIPT.count("--cov --cov-report= ") == 3
    parts = ".coverage.pure .coverage.integration .coverage.others"
    assert f".venv/test/bin/coverage combine --quiet {parts}\n" in TEST_SCRIPT
    assert ".venv/test/bin/coverage report\n" in TEST_SCRIPT


@pytest.mark.rule("discovery")
@pytest.mark.rule("discovery-update-info")
def test_nothing_is_discovered() -> None:
    assert DISCOVERIES & MANIFEST.keys() == set()


@pytest.mark.rule("entity-device-class")
def test_sensor_has_the_device_class_of_its_unit(subtests: pytest.Subtests) -> None:
    for description in DESCRIPTIONS:
        with subtests.test(key=description.key):
            unit = description.native_unit_of_measurement
            by_options = SensorDeviceClass.ENUM if description.options else None

            assert unit in DEVICE_CLASS_BY_UNIT.keys() | UNITS_WITHOUT_CLASS
            assert description.device_class == DEVICE_CLASS_BY_UNIT.get(unit, by_options)


@pytest.mark.rule("entity-translations")
def test_names_of_the_sensors_are_translations() -> None:
    names = TEXTS["entity"]["sensor"]
    assigned = [node for node in syntax() if isinstance(node, ast.Assign)]
    literal = [node for node in assigned if ast.unparse(node.targets[0]).endswith("_attr_name")]

    assert {each.key for each in DESCRIPTIONS if names.get(each.key, {}).get("name")} == {e.key for e in DESCRIPTIONS}
    assert {ast.unparse(node.value) for node in literal} == {"None"}
    assert [node for node in calls("AgentSensorDescription") if "name" in {each.arg for each in node.keywords}] == []


def test_no_entity_has_its_icon_in_code() -> None:
    assigned = {ast.unparse(node.targets[0]) for node in syntax() if isinstance(node, ast.Assign)}

    assert [name for name in assigned if name.endswith("_attr_icon")] == []


@pytest.mark.rule("exception-translations")
def test_errors_are_only_created_with_a_translation() -> None:
    created = [call for name in ("build_translated_error", "build_refusal") for call in calls(name)]
    keys = {call.args[0].value for call in created if isinstance(call.args[0], ast.Constant)}

    assert [name for name in ERRORS if name in CALLED] == []
    assert keys - TEXTS["exceptions"].keys() == set()
    assert {"impossible_configuration", "unknown_conversation"} <= keys


@pytest.mark.rule("async-dependency")
def test_clients_of_the_sdks_are_asynchronous() -> None:
    assert {"AsyncOpenAI", "AsyncAnthropic", "AsyncClient"} <= CALLED
    assert CALLED & {"OpenAI", "AzureOpenAI", "Anthropic", "urlopen"} == set()


@pytest.mark.rule("async-dependency")
def test_no_blocking_http_package_is_imported() -> None:
    imported = {each.name for node in syntax() if isinstance(node, ast.Import) for each in node.names}
    imported |= {str(node.module) for node in syntax() if isinstance(node, ast.ImportFrom) and not node.level}

    assert imported & {"requests", "urllib.request", "urllib3", "http.client"} == set()


@pytest.mark.rule("strict-typing")
def test_types_are_checked_strictly() -> None:
    mypy = PROJECT["tool"]["mypy"]
    loosened = [each["module"] for each in mypy["overrides"] if "custom_components" in str(each["module"])]

    assert (mypy["strict"], "custom_components" in mypy["files"], loosened) == (True, True, [])
    assert re.search(r"^\"\$bin/mypy\"$", (REPOSITORY / "scripts" / "lint").read_text(), re.MULTILINE)
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.rule("strict-typing")
@pytest.mark.rule("runtime-data")
def test_config_entry_is_annotated_with_the_type_of_its_data() -> None:
    annotations = set(entry_annotations())

    assert {name for name, _ in annotations} == ENTRY_FUNCTIONS
    assert {annotation for _, annotation in annotations} == {"AccountConfigEntry"}


@pytest.mark.rule("strict-typing")
def test_only_the_requirements_of_the_exemption_are_untyped() -> None:
    untyped = [
        name
        for name, distribution in distributions().items()
        if not [file for file in distribution.files or () if file.name == "py.typed"]
    ]

    assert untyped == ["regex", "snowballstemmer"]
    assert [name for name in untyped if name not in COMMENT_BY_RULE["strict-typing"]] == []
