"""Tests for the plural forms of spoken texts that contain a count."""

import pytest

from custom_components.windowed_conversation.bridge.errors import plural_form


@pytest.mark.parametrize(
    ("language", "count", "form"),
    [
        ("en", 0, "other"),
        ("en", 1, "one"),
        ("de", 21, "other"),
        ("fr", 0, "one"),
        ("pt-BR", 0, "other"),
        ("pl", 2, "few"),
        ("pl", 4, "few"),
        ("pl", 5, "other"),
        ("pl", 12, "other"),
        ("pl", 22, "few"),
        ("pl", 21, "other"),
        ("pl-PL", 3, "few"),
        ("cs", 1, "one"),
        ("cs", 4, "few"),
        ("cs", 5, "other"),
        ("cs", 21, "other"),
        ("cs", 22, "other"),
        ("uk", 1, "one"),
        ("uk", 3, "few"),
        ("uk", 5, "other"),
        ("uk", 11, "other"),
        ("uk", 14, "other"),
        ("uk", 21, "one"),
        ("uk", 24, "few"),
        ("uk", 111, "other"),
        ("ja", 2, "other"),
    ],
)
def test_a_count_takes_the_form_of_its_language(language: str, count: int, form: str) -> None:
    assert plural_form(language, count) == form
