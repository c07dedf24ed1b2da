"""Tests for the language of a spoken text, and for its plural form if it contains a count."""

import pytest

from custom_components.windowed_conversation.bridge.errors import (
    SPOKEN_LANGUAGES,
    find_nearest_language,
    plural_form,
)
from custom_components.windowed_conversation.memory import base_language

PLURAL_FORMS = [
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
    ("uk", 13, "other"),
    ("zh-Hans", 2, "other"),
    ("no", 2, "other"),
]


def test_a_count_takes_the_form_of_its_language(subtests: pytest.Subtests) -> None:
    for language, count, form in PLURAL_FORMS:
        with subtests.test(language=language, count=count):
            assert plural_form(language, count) == form


@pytest.mark.parametrize(
    ("code", "base"),
    [
        ("zh-Hans", "zh"),
        ("zh-cn", "zh"),
        ("zh_TW", "zh"),
        ("yue-CN", "zh"),
        ("nb", "nb"),
        ("no", "nb"),
        ("nn-NO", "nb"),
        ("pt-br", "pt"),
        ("EN_us", "en"),
        ("ja", "ja"),
    ],
)
def test_a_code_stands_for_one_language(code: str, base: str) -> None:
    assert base_language(code) == base


NEAREST_LANGUAGES = [
    ("zh-Hans", "zh-Hans"),
    ("zh-cn", "zh-Hans"),
    ("zh", "zh-Hans"),
    ("zh-Hant", "zh-Hans"),
    ("zh-TW", "zh-Hans"),
    ("no", "nb"),
    ("nb-NO", "nb"),
    ("nn", "nb"),
    ("pt", "pt"),
    ("pt-PT", "pt"),
    ("pt-br", "pt-BR"),
    ("uk-UA", "uk"),
    ("cs_CZ", "cs"),
    ("ja-JP", "ja"),
    ("de-AT", "de"),
    ("fi", "en"),
    ("", "en"),
]


def test_a_text_is_in_the_nearest_spoken_language(subtests: pytest.Subtests) -> None:
    for code, spoken in NEAREST_LANGUAGES:
        with subtests.test(code=code):
            assert find_nearest_language(code, None, SPOKEN_LANGUAGES) == spoken


@pytest.mark.parametrize(
    ("code", "nearest"),
    [("zh-tw", "zh-Hant"), ("zh-HK", "zh-Hant"), ("zh-CN", "zh-Hans"), ("no", "nb"), ("nn", "nn"), ("en-GB", "en-GB")],
)
def test_home_assistant_has_more_languages(code: str, nearest: str) -> None:
    assert find_nearest_language(code, None) == nearest
