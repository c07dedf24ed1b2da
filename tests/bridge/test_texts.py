"""Tests for the language of a spoken text, and for its plural form if it contains a count or a wait."""

import json
import math
from pathlib import Path

import pytest

from custom_components import windowed_conversation
from custom_components.windowed_conversation.bridge.errors import (
    SPOKEN_LANGUAGES,
    describe_error,
    find_nearest_language,
    format_count,
    plural_form,
)
from custom_components.windowed_conversation.memory.core import base_language
from custom_components.windowed_conversation.providers.errors import RateLimited

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


# The texts that the page shows: a browser's number format returns them.
COUNTS = {
    "cs": ("900", "1\xa0143", "1\xa0234\xa0567"),
    "da": ("900", "1.143", "1.234.567"),
    "de": ("900", "1.143", "1.234.567"),
    "en": ("900", "1,143", "1,234,567"),
    "es": ("900", "1143", "1.234.567"),
    "fr": ("900", "1\u202f143", "1\u202f234\u202f567"),
    "it": ("900", "1143", "1.234.567"),
    "ja": ("900", "1,143", "1,234,567"),
    "nb": ("900", "1\xa0143", "1\xa0234\xa0567"),
    "nl": ("900", "1.143", "1.234.567"),
    "pl": ("900", "1143", "1\xa0234\xa0567"),
    "pt": ("900", "1.143", "1.234.567"),
    "pt-BR": ("900", "1.143", "1.234.567"),
    "sv": ("900", "1\xa0143", "1\xa0234\xa0567"),
    "uk": ("900", "1\xa0143", "1\xa0234\xa0567"),
    "zh-Hans": ("900", "1,143", "1,234,567"),
}


def test_numbers_are_grouped_as_on_the_page() -> None:
    found = {each: tuple(format_count(count, each) for count in (900, 1143, 1_234_567)) for each in SPOKEN_LANGUAGES}

    assert found == COUNTS


@pytest.mark.parametrize(
    ("language", "text"), [("en-GB", "10,000"), ("de-CH", "10.000"), ("pt-PT", "10.000"), ("hu", "10,000")]
)
def test_numbers_are_grouped_as_in_the_language_of_their_text(language: str, text: str) -> None:
    assert format_count(10_000, language) == text


@pytest.mark.parametrize(
    ("seconds", "key", "placeholders"),
    [
        (0.2, "rate_limited_for", {"seconds": "2"}),
        (119, "rate_limited_for", {"seconds": "119"}),
        (119.5, "rate_limited_for_minutes", {"minutes": "2"}),
        (601, "rate_limited_for_minutes", {"minutes": "11"}),
        (7200, "rate_limited_for_hours", {"hours": "2"}),
        (31_536_000, "rate_limited_for_hours", {"hours": "8760"}),
    ],
)
def test_wait_is_told_in_seconds_minutes_or_hours(seconds: float, key: str, placeholders: dict[str, str]) -> None:
    failure = describe_error(RateLimited("", seconds))

    assert (failure.key, failure.placeholders) == (key, placeholders)


@pytest.mark.parametrize("seconds", [None, 0, -1, math.nan, math.inf, 1e300])
def test_wait_that_is_none_is_not_told(seconds: float | None) -> None:
    assert describe_error(RateLimited("", seconds)).key == "rate_limited"


def test_texts_of_the_page_are_short_in_each_language(subtests: pytest.Subtests) -> None:
    for file in sorted((Path(windowed_conversation.__file__).parent / "translations").glob("*.json")):
        with subtests.test(file.stem):
            groups = json.loads(file.read_text("utf-8"))["config_panel"]
            texts = {f"{name}.{key}": text for name, group in groups.items() for key, text in group.items()}
            assert [key for key, text in texts.items() if len(text) > 240] == []
