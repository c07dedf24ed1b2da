"""Tests that statements that were false do not come back to the documentation, and that prose agrees with the forms.

Each case has the sentence as it stood, so that the pattern is known to find it.
"""

from pathlib import Path
import re
from typing import Any, NamedTuple

from homeassistant.data_entry_flow import section as form_section
import pytest

from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_OPENAI, SUBENTRY_CONVERSATION
from custom_components.windowed_conversation.flows.agent import build_common_fields, build_permission_fields
from custom_components.windowed_conversation.flows.options import build_option_sections

from .documents import DOCS, headed_paragraphs, prose
from .repository_files import REPOSITORY, TEXTS

README = REPOSITORY / "README.md"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
OFF_OR_ON = ("off", "on")


class FalseStatement(NamedTuple):
    """A pattern of a false statement, the sentence as it stood, and the reason why it is false."""

    pattern: str
    sentence: str
    reason: str


FALSE = {
    "states are off": FalseStatement(
        r"states\b[^.|]*\boff by default",
        "With the option *Send states of the home* (off by default), names, areas, and states are sent.",
        "states are sent by default",
    ),
    "memory stays here": FalseStatement(
        r"\bkeeps? everything\b",
        "It keeps everything [on your system](docs/privacy.md), and you can turn it off.",
        "facts and matching turns are sent to the model",
    ),
    "developer tools": FalseStatement(
        r"developer tools",
        "Use actions under *Developer tools* > *Actions*.",
        "2026.10 and 2026.11 have Settings > Tools",
    ),
    "debug logging of an account": FalseStatement(
        r"debug logging\*?\s+in the account",
        "To report a bug, enable *Debug logging* in the account's menu.",
        "it is in the menu of the integration's page",
    ),
    "number of sections": FalseStatement(
        r"\b(two|three|five|six)\b[^.|]*\bsections of the form are closed",
        "The three sections of the form are closed at first.",
        "there were four; a test below counts them",
    ),
    "account that opens": FalseStatement(
        r"\bopen the account and\b",
        "To add one, open the account and select *Add conversation agent*.",
        "an account does not open",
    ),
    "only the forms are English": FalseStatement(
        r"\bthe forms are in English\.",
        "The forms are in English. Spoken errors are in ten languages.",
        "so are sensors, actions, issues, and most messages of actions",
    ),
    "only this one is local": FalseStatement(
        r"\bthis one adds:\s+- \*\*Local commands first",
        "Use one of those. This one adds:\n\n- **Local commands first.** Your lights do not wait.",
        "Home Assistant's pipeline can prefer local commands, too",
    ),
    "four providers": FalseStatement(
        r"\bagents for OpenAI, Anthropic, Google,? and Ollama\b",
        "Home Assistant has conversation agents for OpenAI, Anthropic, Google, and Ollama.",
        "it has agents for many more",
    ),
    "recalled memories that are kept": FalseStatement(
        r"\brecalled (lines|memories)\b[^.]*\b(are frozen|leave at the next trim)\b",
        "The time, the speaker, and recalled memories are put before the user's words and are frozen with them.",
        "only the newest request has them",
    ),
    "message as it was sent": FalseStatement(
        r"\bwindow stores the message as it was sent\b",
        "The agent writes it as one line before the user's words, and the window stores the message as it was sent.",
        "the window stores the stamp, and the live context nowhere",
    ),
}


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
    """Return "on" or "off", the default of each switch in a form, by its label."""
    switches: dict[str, str] = {}
    for marker, field in schema.items():
        if isinstance(field, form_section):
            switches |= read_switches(field.schema.schema, texts["sections"][str(marker)])
        elif isinstance(default := read_default(marker), bool):
            switches[texts["data"][str(marker)]] = OFF_OR_ON[default]
    return switches


def read_default(marker: Any) -> Any:
    """Return the default of a field, or None."""
    return marker.default() if callable(marker.default) else None


AGENT_STEP = FORMS["Conversation agent"]
ACCOUNT_STEP = FORMS["Account options"]
OPENAI = {CONF_PROVIDER: PROVIDER_OPENAI}
SWITCHES = read_switches(build_permission_fields(OPENAI) | build_common_fields(OPENAI, {}), AGENT_STEP)
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


def test_false_statement_is_not_back(subtests: pytest.Subtests) -> None:
    for statement in FALSE.values():
        for page in (*PAGES, *DECISIONS):
            with subtests.test(page=page.name, pattern=statement.pattern):
                assert not re.search(statement.pattern, prose(page), re.IGNORECASE), statement.reason


def test_pattern_finds_the_statement_as_it_stood(subtests: pytest.Subtests) -> None:
    for statement in FALSE.values():
        with subtests.test(sentence=statement.sentence):
            assert re.search(statement.pattern, statement.sentence, re.IGNORECASE)


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
