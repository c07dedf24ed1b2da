"""Tests that the forms stay short enough to read: their fields in sight, their words, and the number of all texts."""

from collections.abc import Iterator
from typing import Any

import pytest

from custom_components.windowed_conversation.const import SUBENTRY_CONVERSATION

from .repository_files import TEXTS, flat

AGENT = TEXTS["config_subentries"][SUBENTRY_CONVERSATION]["step"]["agent"]
OPTIONS = TEXTS["options"]["step"]["init"]
# The texts of the page, which is no form.
PAGE = "config_panel"
# Only an account with Azure has these fields, in place of the model.
OF_AZURE = {"deployment", "model_family"}


def count_words(texts: dict[str, Any]) -> int:
    """Return the number of words in a form, with those of its sections."""
    return sum(len(text.split()) for _, text in flat(texts))


def descriptions(texts: dict[str, Any]) -> Iterator[str]:
    """Yield the descriptions of a form's fields, including those in its sections."""
    yield from texts.get("data_description", {}).values()
    for section in texts.get("sections", {}).values():
        yield from descriptions(section)


def test_form_of_an_agent_has_ten_fields_in_sight_and_one_section() -> None:
    assert len(AGENT["data"].keys() - OF_AZURE) <= 10
    assert AGENT["sections"].keys() == {"advanced"}


def test_form_of_an_agent_has_at_most_341_words() -> None:
    assert count_words(AGENT) <= 341


def test_options_have_four_sections_and_at_most_125_words() -> None:
    assert len(OPTIONS["sections"]) == 4
    assert count_words(OPTIONS) <= 125


def test_description_of_a_field_has_at_most_25_words(subtests: pytest.Subtests) -> None:
    for text in [*descriptions(AGENT), *descriptions(OPTIONS)]:
        with subtests.test(text=text):
            assert len(text.split()) <= 25


def test_interface_has_no_more_texts_than_needed() -> None:
    assert len([*flat({name: texts for name, texts in TEXTS.items() if name != PAGE})]) <= 576


def test_page_has_no_more_texts_than_needed() -> None:
    assert len([*flat(TEXTS[PAGE])]) <= 240
