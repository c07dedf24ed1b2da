"""Tests that the forms stay short enough to read: their fields in sight, their words, and the number of all texts."""

from collections.abc import Iterator
from typing import Any

import pytest

from custom_components.windowed_conversation.const import SUBENTRY_AI_TASK, SUBENTRY_CONVERSATION

from .repository_files import TEXTS, flat

AGENT = TEXTS["config_subentries"][SUBENTRY_CONVERSATION]["step"]["agent"]
TASK = TEXTS["config_subentries"][SUBENTRY_AI_TASK]["step"]["task"]
OPTIONS = TEXTS["options"]["step"]["init"]
# The texts of the page, which is no form.
PAGE = "config_panel"
# Only an account with Azure has these fields, in place of the model.
OF_AZURE = {"deployment", "model_family"}
# Shown only if neither the name of the model nor its server says it.
SELDOM_ASKED = {"images"}


def count_words(texts: dict[str, Any]) -> int:
    """Return the number of words in a form, with those of its sections."""
    return sum(len(text.split()) for _, text in flat(texts))


def descriptions(texts: dict[str, Any]) -> Iterator[str]:
    """Yield the descriptions of a form's fields, including those in its sections."""
    yield from texts.get("data_description", {}).values()
    for section in texts.get("sections", {}).values():
        yield from descriptions(section)


def list_fields(texts: dict[str, Any]) -> list[str]:
    """Return the fields of a form, including those in its sections."""
    sections = texts.get("sections", {}).values()
    return [*texts.get("data", {}), *[field for section in sections for field in list_fields(section)]]


def test_form_of_an_agent_has_nine_fields_in_sight_and_one_section() -> None:
    assert len(AGENT["data"].keys() - OF_AZURE) <= 9
    assert AGENT["sections"].keys() == {"advanced"}


def test_forms_of_an_agent_and_of_the_options_have_at_most_33_fields() -> None:
    assert len({*list_fields(AGENT)} - OF_AZURE - SELDOM_ASKED) + len(list_fields(OPTIONS)) <= 33


def test_form_of_a_task_asks_nothing_that_the_form_of_an_agent_does_not() -> None:
    assert {*list_fields(TASK)} <= {*list_fields(AGENT)}


def test_form_of_an_agent_has_at_most_285_words() -> None:
    assert count_words(AGENT) <= 285


def test_options_have_four_sections_and_at_most_125_words() -> None:
    assert len(OPTIONS["sections"]) == 4
    assert count_words(OPTIONS) <= 125


def test_description_of_a_field_has_at_most_25_words(subtests: pytest.Subtests) -> None:
    for text in [*descriptions(AGENT), *descriptions(OPTIONS)]:
        with subtests.test(text=text):
            assert len(text.split()) <= 25


def test_interface_has_no_more_texts_than_needed() -> None:
    assert len([*flat({name: texts for name, texts in TEXTS.items() if name != PAGE})]) <= 646


def test_page_has_no_more_texts_than_needed() -> None:
    assert len([*flat(TEXTS[PAGE])]) <= 248
