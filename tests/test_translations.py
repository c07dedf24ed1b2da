"""Tests for the translations: they contain every spoken text, with the same placeholders as in English."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from custom_components.windowed_conversation.memory import base_language
from custom_components.windowed_conversation.turn.speaker import UNDERSTOOD_LANGUAGES

from .repository_files import PACKAGE, TEXTS, calls, flat, placeholders

ENGLISH = dict(flat(TEXTS))
PATH_BY_LANGUAGE = {path.stem: path for path in sorted((PACKAGE / "translations").glob("*.json"))}
OTHERS = [pytest.param(path, id=language) for language, path in PATH_BY_LANGUAGE.items() if language != "en"]


def read(path: Path) -> dict[str, Any]:
    """Return the texts of a translation."""
    texts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return texts


def test_a_language_that_memory_understands_is_one_that_it_speaks() -> None:
    assert set(map(base_language, PATH_BY_LANGUAGE)) == UNDERSTOOD_LANGUAGES


@pytest.mark.parametrize("path", OTHERS)
def test_every_failure_and_all_that_memory_says_is_translated(path: Path) -> None:
    failures = {call.args[0].value for call in calls("ErrorText") if isinstance(call.args[0], ast.Constant)}

    assert read(path)["exceptions"].keys() >= failures
    assert read(path)["common"].keys() == TEXTS["common"].keys()


@pytest.mark.parametrize("path", OTHERS)
def test_a_translation_has_the_placeholders_of_the_english_text(path: Path) -> None:
    texts = dict(flat(read(path)))

    assert [key for key, text in texts.items() if placeholders(text) != placeholders(ENGLISH[key])] == []


@pytest.mark.parametrize("path", OTHERS)
def test_a_translation_is_trimmed_and_says_something_else(path: Path) -> None:
    texts = dict(flat(read(path)))

    assert [key for key, text in texts.items() if not text or text != text.strip() or text == ENGLISH[key]] == []


@pytest.mark.parametrize("path", PATH_BY_LANGUAGE.values(), ids=PATH_BY_LANGUAGE)
def test_home_assistant_hears_that_memory_asks(path: Path) -> None:
    asked = {key: text for key, text in read(path)["common"].items() if key.startswith(("memory_ask", "memory_go_on"))}

    assert len(asked) == 4
    assert [key for key, text in asked.items() if not text.endswith(("?", "？"))] == []
