"""Tests for the manifests, the icon, and the texts and modules of the integration, as far as files show it."""

import ast
from collections.abc import Iterable, Iterator
from itertools import product
import json
from pathlib import Path
import re
import struct
import sys
import tomllib
from typing import Any, get_args

from awesomeversion import AwesomeVersion
from homeassistant.components.sensor import SensorEntityDescription
from homeassistant.const import Platform
from homeassistant.helpers import config_validation as cv
from homeassistant.helpers.service import _SERVICES_SCHEMA
from homeassistant.util.yaml import load_yaml_dict
import pytest

from custom_components.windowed_conversation.agents.actions.conversations import ATTR_CONTENT, CONVERSATION_CONTENTS
from custom_components.windowed_conversation.agents.actions.turns import TURN_OUTCOMES, TURN_ROUTES
from custom_components.windowed_conversation.agents.issues import FIXABLE_ISSUES, Issue
from custom_components.windowed_conversation.agents.statistics import LAST_ROUTE_STATES
from custom_components.windowed_conversation.bridge.errors import (
    HEARD_KEY_BY_KEY,
    LOCAL_WORKS_KEY,
)
from custom_components.windowed_conversation.bridge.fillers import FILLER_KEYS, FillerMode
from custom_components.windowed_conversation.bridge.openings import OpeningKind
from custom_components.windowed_conversation.const import (
    ATTR_DEVICE,
    ATTR_ENGINE,
    ATTR_ENTITY,
    ATTR_PERMISSION,
    ATTR_PERSON,
    ATTR_SECONDS,
    ATTR_TRUSTED,
    CONF_ASK_BEFORE_OPENING,
    CONF_CONTEXT_PLACEMENT,
    CONF_DEVICE_OWNERS,
    CONF_EFFORT,
    CONF_FILLER,
    CONF_FORMAT,
    CONF_MEMORY,
    CONF_PERSISTENCE,
    CONF_RECORD,
    CONF_ROUTING,
    CONF_SCOPE,
    CONF_TOOL_RESULTS,
    DOMAIN,
    SUBENTRY_AI_TASK,
    SUBENTRY_CONVERSATION,
    AskMode,
    MemoryMode,
    OpenAIFormat,
    Persistence,
    RecordLevel,
)
from custom_components.windowed_conversation.flows.account import _LIST_ERROR_KEYS, _MODEL_ERROR_KEYS
from custom_components.windowed_conversation.memory.core import KINDS
from custom_components.windowed_conversation.memory.turn.remember_requests import ReplyKey
from custom_components.windowed_conversation.memory.turn.speaker import Permission
from custom_components.windowed_conversation.providers.models import SELECTABLE_EFFORTS
from custom_components.windowed_conversation.sensor import COST_SENSORS, MEMORY_SENSORS, SENSORS
from custom_components.windowed_conversation.turn.context import ContextPlacement
from custom_components.windowed_conversation.turn.routing import RoutingMode, Scope
from custom_components.windowed_conversation.window import ToolResultMode
from scripts.measure_size import find_growth, measure_package, read_baseline

from .bridge.test_heard_errors import FAILURES
from .repository_files import ACTIONS, ICONS, MANIFEST, MODULES, PACKAGE, REPOSITORY, TEXTS, calls, placeholders, syntax

HACS = json.loads((REPOSITORY / "hacs.json").read_text())
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
PINS = dict(re.findall(r"^([\w-]+)==(\S+)$", (REPOSITORY / "requirements" / "test.txt").read_text(), re.MULTILINE))

# The keys that HACS accepts (hacs/validate/hacsjson.py).
HACS_KEYS = {"name", "country", "hide_default_branch", "homeassistant", "persistent_directory", "render_readme"}
# Packages that are installed with Home Assistant, its conversation integration, or an SDK.
OF_OTHERS = {
    "PIL", "aiohttp", "hassil", "home_assistant_intents", "homeassistant", "httpx2", "probatio", "unicode_rbnf", "yarl",
}  # fmt: skip


def module_of(requirement: str) -> str:
    """Return the import name of a requirement."""
    return requirement.partition(">=")[0].replace("-", "_")


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
    by_name = {node.value for node in syntax("memory/core/words") if isinstance(node, ast.Constant)}

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


# Hidden folders that belong to the repository. All others are caches of tools.
HIDDEN = {".ci", ".github"}

# Steps that show no form of their own: they forward to another step, or create the entry immediately.
SILENT_STEPS = {"reauth", "openai", "gemini", "anthropic"}
SILENT_AGENT_STEPS = {"user", "reconfigure"}
# Fields whose names say all. Home Assistant only wants a description of those with which an account is set up.
CLEAR_NAMES = {
    "ask_before_opening", "deployment", "device_owners", "expiry_hours", "images", "model", "name", "persistence",
    "routing", "scope", "tool_results", "turn_timeout",
}  # fmt: skip
SILENT_REPAIR_STEPS = {"delete", "keep", "settings"}
# Abort reasons raised by Home Assistant, in `homeassistant.config_entries.ConfigFlow._async_abort_entries_match`.
INHERITED_ABORTS = {"already_configured"}

REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(org|com)|https?://\S+/simple\b|index[-]url", re.IGNORECASE
)


def files() -> Iterator[Path]:
    """Yield the path of each file in the repository."""
    for top in REPOSITORY.iterdir():
        if not top.name.startswith(".") or top.name in HIDDEN:
            yield from (path for path in (top, *top.rglob("*")) if path.is_file() and path.suffix != ".pyc")


def forms(texts: Any) -> Iterator[dict[str, Any]]:
    """Yield the texts of each form, which are the dictionaries that have texts for fields."""
    if isinstance(texts, dict):
        if "data" in texts:
            yield texts
        for value in texts.values():
            yield from forms(value)


def words(*names: str) -> set[str]:
    """Return the string constants in these modules."""
    return {node.value for node in syntax(*names) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def steps(*names: str) -> set[str]:
    """Return the names of the flow steps in these modules."""
    methods = {node.name for node in syntax(*names) if isinstance(node, ast.AsyncFunctionDef)}
    methods |= {
        name for node in syntax(*names) if isinstance(node, ast.Assign) for name in map(ast.unparse, node.targets)
    }
    return {name.removeprefix("async_step_") for name in methods if name.startswith("async_step_")}


def text(node: ast.expr) -> str:
    """Return the value of a string literal."""
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, str)
    return node.value


def first_arguments(*functions: str) -> set[str]:
    """Return the first arguments of calls to these functions, as far as they are string literals."""
    arguments = [call.args[0] for name in functions for call in calls(name)]
    return {text(each) for each in arguments if isinstance(each, ast.Constant)}


def test_texts_are_those_of_what_there_is() -> None:
    assert TEXTS["config_subentries"][SUBENTRY_CONVERSATION]["initiate_flow"].keys() == {"user", "reconfigure"}
    described, fixable = {"title", "description"}, {"title", "fix_flow"}
    assert {key for key, issue in TEXTS["issues"].items() if issue.keys() != described} == FIXABLE_ISSUES
    assert [key for key in FIXABLE_ISSUES if TEXTS["issues"][key].keys() != fixable] == []


def test_every_field_of_the_set_up_has_a_name_and_a_description() -> None:
    found = list(forms(TEXTS["config"]))

    assert len(found) > 5
    assert [form for form in found if form["data"].keys() != form["data_description"].keys()] == []


def test_every_field_of_the_other_forms_has_a_description_unless_its_name_says_all(subtests: pytest.Subtests) -> None:
    for form in forms({key: TEXTS[key] for key in ("config_subentries", "options", "issues")}):
        with subtests.test(form=form.get("title", form.get("name"))):
            described = form.get("data_description", {}).keys()

            assert described <= form["data"].keys()
            assert form["data"].keys() - described <= CLEAR_NAMES


def test_every_step_has_its_text_and_every_text_its_step() -> None:
    assert TEXTS["config"]["step"].keys() == steps("config_flow") - SILENT_STEPS
    assert TEXTS["config"]["create_entry"].keys() == {"default", "used_in_assistant"}
    agents, tasks = (
        TEXTS["config_subentries"][each]["step"].keys() for each in (SUBENTRY_CONVERSATION, SUBENTRY_AI_TASK)
    )
    assert agents | tasks == steps("flows/agent") - SILENT_AGENT_STEPS
    assert TEXTS["options"]["step"].keys() == steps("flows/options")
    repairs = [TEXTS["issues"][key]["fix_flow"]["step"].keys() for key in FIXABLE_ISSUES]
    assert {step for shown in repairs for step in shown} == steps("repairs") - SILENT_REPAIR_STEPS


def test_every_error_and_abort_is_one_of_the_flows() -> None:
    account, agent = TEXTS["config"], TEXTS["config_subentries"][SUBENTRY_CONVERSATION]
    told_of_accounts = words("config_flow") | words("flows/account")

    assert account["error"].keys() | account["abort"].keys() <= told_of_accounts | INHERITED_ABORTS
    assert agent["error"].keys() | agent["abort"].keys() <= words("flows/agent")
    assert TEXTS["options"]["error"].keys() - {"out_of_range"} <= words("flows/options")
    repairs = [TEXTS["issues"][key]["fix_flow"] for key in FIXABLE_ISSUES]
    assert {each for flow in repairs for each in (*flow.get("error", ()), *flow["abort"])} <= words("repairs")
    assert {*_LIST_ERROR_KEYS.values(), *_MODEL_ERROR_KEYS.values()} <= account["error"].keys()


def test_every_exception_has_its_text_and_every_text_its_exception() -> None:
    told = {failure.key for failure in FAILURES}
    refused = first_arguments("build_translated_error", "build_refusal", "UnreadableFile")

    assert TEXTS["exceptions"].keys() == told | refused


def test_every_sentence_of_the_activity_and_of_memory_has_its_text() -> None:
    activities = {text(call.args[1]) for call in calls("_common_text") if isinstance(call.args[1], ast.Constant)}
    activities |= {f"answered_{by}" for by in ("locally", "by_model", "by_agent")} | {"answer_lost", "answer_ready"}
    gate = {each for each in words("agents/gate") if re.match("gate_.", each)}
    gate |= {f"gate_{kind}" for kind in get_args(OpeningKind.__value__)}
    spoken = words("reminders/bridge/answers", "reminders/bridge/schedule", "logbook")
    reminders = {each for each in spoken if re.fullmatch("reminder_[a-z_]+", each)}
    forms = product(("forgotten_exchanges", "memory_facts", "memory_turns"), ("one", "few", "other"))
    counts = {"_".join(each) for each in forms}
    speakers = {"known_by_device", "known_by_voice"}
    speakers |= {f"refusal_{each}" for each in Permission if each is not Permission.EVERYTHING}

    turns = {
        f"turn_{kind}" for kind in ("cost_today", "cost_month", "cost_unknown", "dollars", "cents", "slow", "unknown")
    }
    turns |= {f"turn_{each}" for each in ("why_local", "why_model", "away", "away_none")}
    late = {"hand_over", "hand_over_notice", "late_answer", "late_error", "answer_mention"}
    heard = {*FILLER_KEYS, *HEARD_KEY_BY_KEY.values(), LOCAL_WORKS_KEY, "memory_say_yes_or_no"}

    assert (
        TEXTS["common"].keys()
        == activities | gate | reminders | counts | set(ReplyKey) | late | heard | speakers | turns
    )


def test_phrase_has_placeholders_that_memory_fills_in(subtests: pytest.Subtests) -> None:
    for phrase in ReplyKey:
        with subtests.test(phrase=str(phrase)):
            known = {"facts", "replaced", "more", "counts", "count", "first", "last"}

            assert placeholders(TEXTS["common"][phrase]) <= known


def test_exception_has_the_placeholders_of_its_text(subtests: pytest.Subtests) -> None:
    for failure in FAILURES:
        with subtests.test(key=failure.key, placeholders=str(failure.placeholders)):
            assert placeholders(TEXTS["exceptions"][failure.key]["message"]) == set(failure.placeholders)


def test_every_issue_has_its_text_and_every_text_its_issue() -> None:
    attributes = (
        node
        for node in syntax("agents/issues", "agents/gate", "agents/server", "agents/after_turn")
        if isinstance(node, ast.Attribute)
    )
    created = {getattr(Issue, node.attr) for node in attributes if ast.unparse(node.value) == "Issue"}

    assert TEXTS["issues"].keys() == created == set(Issue)


@pytest.mark.rule("icon-translations")
def test_every_sensor_has_a_name_and_an_icon() -> None:
    descriptions: tuple[SensorEntityDescription, ...] = (*SENSORS, *COST_SENSORS, *MEMORY_SENSORS)
    sensors = {description.key for description in descriptions}

    assert TEXTS["entity"].keys() == ICONS["entity"].keys() == {Platform.SENSOR, Platform.TODO}
    assert TEXTS["entity"]["todo"].keys() == ICONS["entity"]["todo"].keys() == {"reminders"}
    assert TEXTS["entity"]["sensor"].keys() == sensors
    assert ICONS["entity"]["sensor"].keys() == sensors


def test_every_choice_has_its_text() -> None:
    choices: dict[str, Iterable[str]] = {
        CONF_ASK_BEFORE_OPENING: AskMode,
        CONF_CONTEXT_PLACEMENT: ContextPlacement,
        CONF_EFFORT: SELECTABLE_EFFORTS,
        CONF_FILLER: FillerMode,
        CONF_FORMAT: OpenAIFormat,
        CONF_PERSISTENCE: Persistence,
        CONF_MEMORY: MemoryMode,
        CONF_RECORD: RecordLevel,
        CONF_ROUTING: RoutingMode,
        CONF_SCOPE: Scope,
        CONF_TOOL_RESULTS: get_args(ToolResultMode.__value__),
        ATTR_CONTENT: CONVERSATION_CONTENTS,
        ATTR_PERMISSION: Permission,
        "memory_kinds": KINDS,
        "request_weight": ("tokens",),
        "turn_outcome": TURN_OUTCOMES,
        "turn_route": TURN_ROUTES,
    }
    told = dict(TEXTS["selector"])
    known_by = {ATTR_PERSON, ATTR_ENTITY, ATTR_SECONDS, ATTR_ENGINE, ATTR_TRUSTED}

    assert TEXTS["entity"]["sensor"]["last_route"]["state"].keys() == set(LAST_ROUTE_STATES)
    assert told.pop(CONF_DEVICE_OWNERS)["fields"].keys() == known_by | {ATTR_DEVICE, ATTR_PERMISSION}
    assert {key: texts["options"].keys() for key, texts in told.items()} == {
        key: set(values) for key, values in choices.items()
    }


def test_every_action_is_described_in_the_form_that_home_assistant_takes() -> None:
    described = _SERVICES_SCHEMA(load_yaml_dict(str(PACKAGE / "services.yaml")))

    assert described.keys() == TEXTS["services"].keys() == ICONS["services"].keys()
    fields = {name: action["fields"].keys() for name, action in described.items()}
    assert fields == {name: texts["fields"].keys() for name, texts in TEXTS["services"].items()}


def test_field_of_an_action_is_no_key_of_a_target(subtests: pytest.Subtests) -> None:
    for action in ACTIONS:
        with subtests.test(action=str(action)):
            # Home Assistant 2026.11 has `exclude` in a target, which the oldest supported version does not know.
            keys = {*map(str, cv.ENTITY_SERVICE_FIELDS), "exclude"}

            assert ACTIONS[action]["fields"].keys() & keys == set()


def test_module_is_short(subtests: pytest.Subtests) -> None:
    for path in MODULES:
        with subtests.test(module=str(path.relative_to(PACKAGE))):
            assert len(path.read_text().splitlines()) <= 500


def test_package_has_not_grown() -> None:
    assert find_growth(measure_package(), read_baseline()) == []


def test_every_module_opens_with_what_it_is_about() -> None:
    modules = [path for path in files() if path.suffix == ".py" and path.stat().st_size]

    assert [str(path) for path in modules if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_no_file_names_a_package_registry() -> None:
    assert [str(path) for path in files() if REGISTRIES.search(path.read_text(errors="replace"))] == []


def test_every_stage_of_the_tests_is_run_for_a_pull_request() -> None:
    stages = re.findall(r"^  (\w+)\) scripts/setup", (REPOSITORY / "scripts" / "test").read_text(), re.MULTILINE)
    run: Any = load_yaml_dict(str(REPOSITORY / ".github" / "workflows" / "test.yml"))

    assert {*run["jobs"]["test"]["strategy"]["matrix"]["stage"]} == {*stages} - {"quick", "all"}
