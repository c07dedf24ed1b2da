"""Tests for README and docs: links and commands are valid, and the documented names match the code."""

import argparse
from collections.abc import Iterator
from itertools import chain, pairwise
import re
import shlex
from typing import Any

from homeassistant.data_entry_flow import section as form_section
import probatio
import pytest

from custom_components.windowed_conversation.agents.statistics import LAST_ROUTE_STATES
from custom_components.windowed_conversation.bridge import turn_report
from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_OPENAI, SUBENTRY_CONVERSATION
from custom_components.windowed_conversation.flows.agent import (
    build_advanced_fields,
    build_memory_field,
    build_permission_fields,
)
from custom_components.windowed_conversation.flows.fields import NumberFieldSelector
from custom_components.windowed_conversation.flows.options import build_option_sections
from custom_components.windowed_conversation.sensor import COST_SENSORS, MEMORY_SENSORS, SENSORS
from custom_components.windowed_conversation.turn.routing import RouteReason
from demo import __main__ as demo

from .documents import DOC_PAGES, DOCS, anchors, blocks, column, commands, links, section, slug, table
from .repository_files import ACTIONS, PACKAGE, REPOSITORY, TEXTS

MAX_PAGE_LINES = 110
# What a phone of 390 pixels shows side by side: the columns of a table, and the characters of a word in it and of code.
PHONE_COLUMNS, PHONE_WORD_CHARS, PHONE_CODE_CHARS = 3, 14, 39
MAX_LINE_CHARS = 155

README = REPOSITORY / "README.md"
SHOWN = sorted(set(commands()))
DEMO_COMMANDS = [command for command in SHOWN if re.match(r"scripts/demo (?!--help)", command)]
# The links to other parts of the documentation.
LINKS = [(page, link) for page in DOC_PAGES for link in links(page) if not re.match(r"\w+:", link)]

ACCOUNT_STEPS = TEXTS["config"]["step"].values()
AGENT_STEPS = TEXTS["config_subentries"][SUBENTRY_CONVERSATION]["step"].values()
AGENT_SECTIONS: dict[str, dict[str, Any]] = {
    texts["name"]: texts for step in AGENT_STEPS for texts in step["sections"].values()
}
AGENT_HEADINGS = ["Conversation agent", *AGENT_SECTIONS]


def named_labels(texts: dict[str, Any]) -> dict[str, str]:
    """Return the labels of a form's fields by name, including those in its sections."""
    inside = [named_labels(each).items() for each in texts.get("sections", {}).values()]
    return texts.get("data", {}) | dict(chain.from_iterable(inside))


def labels(texts: dict[str, Any]) -> set[str]:
    """Return the labels of a form's fields, including those in its sections."""
    return set(named_labels(texts).values())


def fields(schema: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the marker and the field of each option in a form, including those in its sections."""
    for marker, field in schema.items():
        yield from fields(field.schema.schema) if isinstance(field, form_section) else [(marker, field)]


def written(default: Any) -> str:
    """Return a default value as it is written in the documentation."""
    match default:
        case None:
            return ""
        case bool():
            return ("off", "on")[default]
        case int() | float():
            return f"{default:,g}"
        case list():
            return ", ".join(default)
    return str(default)


def in_code(text: str) -> str:
    """Return a translated text as it appears in the documentation, with its placeholders in italics."""
    return re.sub(r"{(\w+)}", r"*\1*", text)


ACCOUNT_FORM = {marker: field for fields in build_option_sections({}).values() for marker, field in fields.items()}
OPENAI = {CONF_PROVIDER: PROVIDER_OPENAI}
AGENT_FORM = build_permission_fields(OPENAI) | build_memory_field(OPENAI) | build_advanced_fields(OPENAI, {})
# The label of each option and the table cell with its default, for the options of the account and of an agent.
ACCOUNT_CELLS = {row[0]: row[1] for row in table(DOCS / "options.md", "Account options")}
AGENT_CELLS = {row[0]: row[1] for heading in AGENT_HEADINGS for row in table(DOCS / "options.md", heading)}
ACCOUNT_LABELS = named_labels(TEXTS["options"]["step"]["init"])
AGENT_LABELS = {name: label for step in AGENT_STEPS for name, label in named_labels(step).items()}

FORMS = [(ACCOUNT_FORM, ACCOUNT_LABELS, ACCOUNT_CELLS), (AGENT_FORM, AGENT_LABELS, AGENT_CELLS)]
NUMBERS = [
    (known[str(marker)], field, cells.get(known[str(marker)], ""))
    for form, known, cells in FORMS
    for marker, field in fields(form)
    if isinstance(field, NumberFieldSelector)
]
DEFAULTS = [
    (str(marker), marker.default(), cells.get(known[str(marker)], ""))
    for form, known, cells in FORMS
    for marker, _ in fields(form)
    if marker.default is not probatio.UNDEFINED and marker.default() != []
]


def test_readme_fits_three_screens() -> None:
    lines = README.read_text().splitlines()

    assert len(lines) <= MAX_PAGE_LINES
    assert [line for line in lines if len(line) > MAX_LINE_CHARS and not line.startswith(("[", "|"))] == []


def test_readme_needs_no_sideways_scrolling_on_a_phone() -> None:
    code = "".join(blocks(README, "sh")).splitlines()
    rows = [
        row for heading in ("A family's day", "Beside Home Assistant's own agents") for row in table(README, heading)
    ]
    shown = [re.sub(r"\]\([^)]*\)|<br>", " ", cell) for row in rows for cell in row]

    assert len(shown) > len(rows) > 0
    assert max(map(len, code)) <= PHONE_CODE_CHARS
    assert max(map(len, rows)) <= PHONE_COLUMNS
    assert [word for cell in shown for word in re.split(r"[\s-]", cell) if len(word) > PHONE_WORD_CHARS] == []


def test_readme_names_the_commands_that_try_and_check_the_project() -> None:
    code = "".join(blocks(README, "sh")).splitlines()

    assert {"scripts/demo", "scripts/test"} <= set(code)
    assert (REPOSITORY / ".ci" / "run").read_text().splitlines()[-1] == "exec scripts/test"


def test_versions_of_home_assistant_are_those_that_are_tested() -> None:
    pinned = [(REPOSITORY / "requirements" / f"{name}.txt").read_text() for name in ("test", "demo")]
    tested = [re.findall(r"^homeassistant==(.+)$", text, re.MULTILINE)[0] for text in pinned]

    rows = table(DOCS / "installation.md", "Versions")
    badge = re.findall(r"Home%20Assistant-([\d.]+)%20%7C%20([\d.]+)-", README.read_text())

    assert [re.findall(r"run in ([\d.]+\d)", row[2])[0] for row in rows] == tested
    assert [row[0] for row in rows] == [*badge[0]] == [version.rpartition(".")[0] for version in tested]


def test_every_page_is_in_the_table_of_contents() -> None:
    targets = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "README.md")}

    assert {*DOCS.glob("*.md")} - {DOCS / "README.md"} <= targets


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Who can read it", "who-can-read-it"),
        ("Actions, traces & `get_conversation`", "actions-traces--get_conversation"),
        ("0.1.0 (unreleased)", "010-unreleased"),
        ("[A link](https://example.com) of *one*", "a-link-of-one"),
    ],
)
def test_anchor_is_the_one_of_github(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_link_leads_to_a_file_and_an_anchor_of_it(subtests: pytest.Subtests) -> None:
    for page, link in LINKS:
        with subtests.test(page=page.name, link=link):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page

            assert target.exists()
            assert {anchor} - {""} <= (anchors(target) if target.suffix == ".md" else frozenset())


@pytest.mark.parametrize(
    "link", sorted(set(re.findall(r"blob/main/([\w./#-]+)", (PACKAGE / "flows" / "agent.py").read_text())))
)
def test_page_that_a_form_links_to_is_there(link: str) -> None:
    assert (REPOSITORY / link).is_file()


def test_command_that_is_shown_exists(subtests: pytest.Subtests) -> None:
    for command in SHOWN:
        with subtests.test(command=command):
            program, *words = shlex.split(command)
            environment = re.match(r"\.venv/(\w+)", program)
            modules = [after for word, after in pairwise(words) if word == "-m"]
            ours = [module.replace(".", "/") for module in modules if module != "pytest"]

            assert environment or (REPOSITORY / program).is_file()
            assert not environment or (REPOSITORY / "requirements" / f"{environment[1]}.txt").is_file()
            assert [module for module in ours if not [*REPOSITORY.glob(f"{module}*")]] == []


def test_every_benchmark_is_in_the_table_of_benchmarks() -> None:
    programs = {each.stem for each in (REPOSITORY / "benchmarks").glob("*.py") if "\ndef main()" in each.read_text()}

    listed = re.findall(r"^\| `\S+ -m benchmarks\.(\w+)", (REPOSITORY / "CONTRIBUTING.md").read_text(), re.MULTILINE)

    assert set(listed) == programs


PROGRAM_COMMANDS = [each for each in SHOWN if re.match(r"scripts/(setup|test|lint|demo)\b", each)]


def test_words_of_a_command_are_in_its_usage(subtests: pytest.Subtests) -> None:
    for command in PROGRAM_COMMANDS:
        with subtests.test(command=command):
            program, *words = shlex.split(command)
            usage = [*re.findall(r"[\w-]+", (REPOSITORY / program).read_text().partition("\nset -")[0]), "--help"]
            said = [word for before, word in pairwise(words) if before.startswith("--")]

            assert [word for word in words if word not in usage and word not in said] == []


@pytest.mark.parametrize("command", DEMO_COMMANDS)
def test_demo_takes_the_options_that_are_shown(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", shlex.split(command))

    assert isinstance(demo._parse_arguments(), argparse.Namespace)


@pytest.mark.rule("docs-configuration-parameters")
@pytest.mark.rule("docs-installation-parameters")
def test_every_option_is_documented_and_every_documented_option_exists() -> None:
    page = DOCS / "options.md"
    of_agents = set.union(*(set(step["data"].values()) for step in AGENT_STEPS))

    assert set(column(page, "Account")) == set.union(*map(labels, ACCOUNT_STEPS))
    assert set(column(page, "Account options")) == labels(TEXTS["options"]["step"]["init"])
    assert set(column(page, "Conversation agent")) == of_agents
    documented = {heading: set(column(page, heading)) for heading in AGENT_SECTIONS}
    assert documented == {heading: labels(texts) for heading, texts in AGENT_SECTIONS.items()}


def test_range_of_an_option_is_documented(subtests: pytest.Subtests) -> None:
    for label, field, cell in NUMBERS:
        with subtests.test(option=label):
            assert f"({field.config['min']:,.0f} to {field.config['max']:,.0f}" in cell


def test_default_of_an_option_is_documented(subtests: pytest.Subtests) -> None:
    for name, default, cell in DEFAULTS:
        with subtests.test(option=name):
            choices = TEXTS["selector"].get(name, {}).get("options", {})

            assert cell.startswith(choices.get(default) or written(default))


@pytest.mark.rule("docs-supported-functions")
@pytest.mark.parametrize(
    ("heading", "sensors"),
    [("Sensors", (*SENSORS, *COST_SENSORS)), ("Memory", MEMORY_SENSORS)],
    ids=["agent", "memory"],
)
def test_every_sensor_is_documented_and_every_documented_sensor_exists(heading: str, sensors: tuple[Any, ...]) -> None:
    names = {key: texts["name"] for key, texts in TEXTS["entity"]["sensor"].items()}

    documented = {row[0]: row[1] for row in table(DOCS / "sensors.md", heading)}

    assert documented == {names[each.key]: ("no", "yes")[each.entity_registry_enabled_default] for each in sensors}


def test_each_state_of_the_last_route_is_documented() -> None:
    (meaning,) = [row[2] for row in table(DOCS / "sensors.md", "Sensors") if row[0] == "Last route"]

    assert set(re.findall(r"`(\w+)`", meaning)) == set(LAST_ROUTE_STATES)


def test_every_named_attribute_is_documented() -> None:
    documented = {(row[0], row[1].strip("`")) for row in table(DOCS / "sensors.md", "Attributes")}

    sensors = TEXTS["entity"]["sensor"].values()
    assert {(each["name"], name) for each in sensors for name in each.get("state_attributes", {})} <= documented


def test_every_action_is_documented_and_every_documented_action_exists() -> None:
    headings = re.findall(r"^### windowed_conversation\.(\w+)$", (DOCS / "actions.md").read_text(), re.MULTILINE)

    assert sorted(headings) == sorted(ACTIONS)


@pytest.mark.rule("docs-actions")
def test_fields_and_defaults_of_an_action_are_documented(subtests: pytest.Subtests) -> None:
    for action in ACTIONS:
        with subtests.test(action=str(action)):
            known = ACTIONS[action]["fields"]
            defaults = {name: written(field.get("default")) for name, field in known.items()}
            required = {name: "required" for name, field in known.items() if field.get("required")}

            rows = table(DOCS / "actions.md", f"windowed_conversation.{action}")

            assert {name.strip("`"): default for name, default, _ in rows} == defaults | required


def test_every_event_is_documented_and_every_documented_event_exists() -> None:
    fired = {value for name, value in vars(turn_report).items() if name.startswith("EVENT_")}

    assert set(column(DOCS / "actions.md", "Events")) == fired


def test_every_reason_is_documented_and_every_documented_reason_exists() -> None:
    assert set(re.findall(r"`(\w+)`", section(DOCS / "routing.md", "Reasons"))) == set(RouteReason)


def test_every_issue_is_documented_and_every_documented_issue_exists() -> None:
    titles = [in_code(issue["title"]) for issue in TEXTS["issues"].values()]

    assert sorted(column(DOCS / "troubleshooting.md", "Repair issues")) == sorted(titles)


def test_every_message_is_documented_and_every_documented_message_exists() -> None:
    page = DOCS / "troubleshooting.md"
    messages = [in_code(each["message"]) for each in TEXTS["exceptions"].values()]

    assert sorted(column(page, "Messages") + column(page, "Messages of actions")) == sorted(messages)


def test_every_error_of_the_account_form_is_documented_and_every_documented_one_exists() -> None:
    texts = [in_code(each) for each in TEXTS["config"]["error"].values()]

    assert sorted(column(DOCS / "troubleshooting.md", "Messages of the account form")) == sorted(texts)
