"""Tests that the counts of fields and the defaults that prose names are those of the forms."""

from pathlib import Path
import re
from typing import Any, NamedTuple

from homeassistant.data_entry_flow import section as form_section
import pytest

from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_OPENAI, SUBENTRY_CONVERSATION
from custom_components.windowed_conversation.flows.agent import (
    build_advanced_fields,
    build_memory_field,
    build_permission_fields,
)
from custom_components.windowed_conversation.flows.options import build_option_sections

from .documents import DOCS, headed_paragraphs, prose
from .repository_files import REPOSITORY, TEXTS

README = REPOSITORY / "README.md"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
OFF_OR_ON = ("off", "on")


class Count(NamedTuple):
    """A number of sections or fields that prose names under a heading."""

    heading: str
    number: str
    unit: str


NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNT = re.compile(rf"\b({'|'.join(NUMBERS)}|\d+) (sections|fields)\b", re.IGNORECASE)
# The steps of the forms by the headings of the page with the options.
FORMS = {
    "Account options": TEXTS["options"]["step"]["init"],
    "Conversation agent": TEXTS["config_subentries"][SUBENTRY_CONVERSATION]["step"]["agent"],
}


def find_counts(page: Path) -> list[Count]:
    """Return the numbers of sections and fields on a page."""
    paragraphs = [(heading, _COUNT.findall(text)) for heading, text in headed_paragraphs(prose(page))]
    return [Count(heading, number.casefold(), unit) for heading, found in paragraphs for number, unit in found]


def count_in_form(heading: str, unit: str) -> int:
    """Return the number of sections or of fields outside sections in the form that a heading is about."""
    return len(FORMS[heading].get({"sections": "sections", "fields": "data"}[unit], ()))


COUNTS = [pytest.param(count, id=f"{page.name}: {count.number}") for page in PAGES for count in find_counts(page)]


def read_switches(schema: dict[Any, Any], texts: dict[str, Any]) -> dict[str, str]:
    """Return "on" or "off", the default of each switch in a form and of each choice with these values, by its label."""
    switches: dict[str, str] = {}
    for marker, field in schema.items():
        if isinstance(field, form_section):
            switches |= read_switches(field.schema.schema, texts["sections"][str(marker)])
        elif isinstance(default := read_default(marker), bool):
            switches[texts["data"][str(marker)]] = OFF_OR_ON[default]
        elif default in OFF_OR_ON:
            switches[texts["data"][str(marker)]] = str(default)
    return switches


def read_default(marker: Any) -> Any:
    """Return the default of a field, or None."""
    return marker.default() if callable(marker.default) else None


AGENT_STEP = FORMS["Conversation agent"]
ACCOUNT_STEP = FORMS["Account options"]
OPENAI = {CONF_PROVIDER: PROVIDER_OPENAI}
SWITCHES = read_switches(build_permission_fields(OPENAI) | build_memory_field(OPENAI), AGENT_STEP)
SWITCHES |= read_switches(build_advanced_fields(OPENAI, {}), AGENT_STEP["sections"]["advanced"])
for name, fields in build_option_sections({}).items():
    SWITCHES |= read_switches(fields, ACCOUNT_STEP["sections"][name])
# the switch of the form that adds an account
SWITCHES[TEXTS["config"]["step"]["model"]["data"]["use_in_assistant"]] = "on"
_DEFAULT = re.compile(r"\b(on|off)\s+by\s+default")
# Each "on by default" or "off by default" on a page: the text of the paragraph before it, and "on" or "off".
CLAIMS = [
    pytest.param(text[: found.start()], found[1], id=f"{page.name}: {text[: found.start()][-30:]}")
    for page in PAGES
    for _, text in headed_paragraphs(prose(page))
    for found in _DEFAULT.finditer(text)
]


def find_switch(before: str) -> str | None:
    """Return the label of the switch that a text mentions last, or None."""
    return max(
        (label for label in SWITCHES if f"*{label}*" in before),
        key=lambda each: before.rfind(f"*{each}*"),
        default=None,
    )


@pytest.mark.parametrize("count", COUNTS)
def test_count_in_prose_is_the_one_of_the_form(count: Count) -> None:
    number = NUMBERS.index(count.number) if count.number in NUMBERS else int(count.number)

    assert number == count_in_form(count.heading, count.unit)


def test_count_in_prose_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("## Account options\n\nThe form has Three sections\nand 12 fields.\n")

    assert find_counts(page) == [
        Count("Account options", "three", "sections"),
        Count("Account options", "12", "fields"),
    ]


@pytest.mark.parametrize(("before", "said"), CLAIMS)
def test_default_in_prose_is_the_one_of_the_code(before: str, said: str) -> None:
    assert SWITCHES.get(find_switch(before) or "") == said


def test_several_defaults_are_in_prose() -> None:
    assert len(CLAIMS) >= 3


def test_switch_is_the_one_that_was_mentioned_last() -> None:
    first, last = list(SWITCHES)[:2]

    assert find_switch(f"*{first}* is not meant, *{last}*, which is") == last
    assert find_switch("Nothing is named, and it is") is None
