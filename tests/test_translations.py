"""Tests for the translations: every language has every text, in the words of Home Assistant."""

import json
from pathlib import Path
import re
from typing import Any

import pytest

from custom_components.windowed_conversation.memory.core import base_language
from custom_components.windowed_conversation.memory.turn.speaker import UNDERSTOOD_LANGUAGES

from .repository_files import PACKAGE
from .translations.check import check_language
from .translations.texts import LANGUAGES, TERMS, load_language

PATH_BY_LANGUAGE = {path.stem: path for path in sorted((PACKAGE / "translations").glob("*.json"))}

# Home Assistant takes an answer that ends like this for a question, and listens for the reply.
QUESTION_MARKS = ("?", ";", "？")
# Patterns that a sentence in lower case is searched for.
LOWER_CASE_KEYS = ("trigger", "further_trigger", "but", "confided", "shared")
# Texts to recognize sentences, which only some languages need for their grammar.
OPTIONAL_SPEECH_KEYS = {
    "bare",
    "clause",
    "forget",
    "forget_clause",
    "forget_owned",
    "main_clauses",
    "me",
    "owned",
    "remember",
    "remember_bare",
    "remember_clause",
    "states",
    "thing",
    "variants",
}


def read(path: Path) -> dict[str, Any]:
    """Return the texts of a translation."""
    texts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return texts


def test_a_language_that_memory_understands_is_one_that_it_speaks() -> None:
    assert set(map(base_language, PATH_BY_LANGUAGE)) == UNDERSTOOD_LANGUAGES


@pytest.mark.parametrize("language", PATH_BY_LANGUAGE)
def test_texts_of_a_language_are_complete_and_right(language: str) -> None:
    assert [str(found) for found in check_language(load_language(language))] == []


def test_every_translation_has_terms_to_be_checked_against() -> None:
    assert PATH_BY_LANGUAGE.keys() - {"en"} <= set(LANGUAGES)
    assert TERMS["form_of_address"].keys() == set(LANGUAGES)


@pytest.mark.parametrize("section", ["frontend", "labels", "project", "words"])
def test_every_term_has_a_form_in_every_language(section: str) -> None:
    assert {term: missing for term, forms in TERMS[section].items() if (missing := set(LANGUAGES) ^ forms.keys())} == {}


@pytest.mark.parametrize("path", PATH_BY_LANGUAGE.values(), ids=PATH_BY_LANGUAGE)
def test_home_assistant_hears_that_memory_asks(path: Path) -> None:
    asked = {key: text for key, text in read(path)["common"].items() if key.startswith(("memory_ask", "memory_go_on"))}

    assert len(asked) == 6
    assert [key for key, text in asked.items() if not text.endswith(QUESTION_MARKS)] == []


@pytest.mark.parametrize("section", ["memory", "reminders"])
def test_patterns_that_are_searched_in_lower_case_have_no_capitals(section: str) -> None:
    texts = [read(path).get(section, {}) for path in sorted((PACKAGE / "languages").glob("*.json"))]
    patterns = [each[key] for each in texts for key in LOWER_CASE_KEYS if key in each]
    letters = [re.sub(r"\\[A-Z]", "", each) for each in patterns]

    assert letters
    assert [each for each in letters if each != each.lower()] == []


@pytest.mark.parametrize("section", ["memory", "past", "updates"])
def test_what_is_understood_has_the_same_keys_in_every_language(section: str) -> None:
    texts = [read(path)[section] for path in sorted((PACKAGE / "languages").glob("*.json"))]

    assert len({frozenset(each) - OPTIONAL_SPEECH_KEYS for each in texts}) == 1
