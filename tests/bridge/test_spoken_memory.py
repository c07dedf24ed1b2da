"""Tests for the sound of memory's texts: no words of the project, no abbreviation, and no mere quotation marks."""

from collections.abc import Iterator
import json
from pathlib import Path
import re

import pytest

from custom_components.windowed_conversation.bridge.errors import SPOKEN_LANGUAGES
from custom_components.windowed_conversation.memory.turn.remember_requests import say_clause

FOLDER = Path(__file__).parents[2] / "custom_components" / "windowed_conversation" / "translations"
# The words for "turn" and "exchange" that the page has had, by language.
TURNS = {
    "cs": "výměn",
    "da": "replikskift",
    "de": "Wortwechsel|Anfrage",
    "en": r"\bturns?\b|exchange",
    "es": "intercambio",
    "fr": "échange",
    "it": "battute",
    "ja": "やり取り",
    "nb": "replikkveksling",
    "nl": "gespreksbeurt",
    "pl": "wymian",
    "pt": "interaç",
    "pt-BR": "interaç",
    "sv": "replikskift",
    "uk": "обмін",
    "zh-Hans": "轮对话",
}
# The verb for a thing that slips the mind. Memory does not say it of deleted things.
FORGOTTEN = {
    "da": "glemt",
    "de": "vergessen",
    "en": "forgot",
    "es": "olvidado",
    "fr": "oublié",
    "it": "dimenticato",
    "ja": "忘れました",
    "nb": "glemt",
    "nl": "vergeten",
    "pt": "esqueci",
    "pt-BR": "esqueci",
    "sv": "glömt",
    "zh-Hans": "忘掉",
}
ABBREVIATION = (
    r"[\d}] (?:s|h|с|год|хв|min|godz|hod)\b|\b(?:min|godz|hod|sek|sec|approx|etc|e\.g|z\.B|p\. ?ex|np|tzn|ca|bzw)\."  # noqa: RUF001 - Cyrillic
)
STIFF = r"\b(?:I am|I will|I have|I do not|I cannot|it is|that is|there is|do not)\b"

# The language, a request, its fact, and the fact as it is said.
CLAUSES = [
    (
        "de",
        "Merk dir, dass ich allergisch gegen Erdnüsse bin",
        "ich allergisch gegen Erdnüsse bin",
        "ich bin allergisch gegen Erdnüsse",
    ),
    ("de", "Merk dir, dass ich Tee mag", "ich Tee mag", "ich mag Tee"),
    (
        "de",
        "Merk dir, dass meine Schwester am dritten Mai Geburtstag hat",
        "meine Schwester am dritten Mai Geburtstag hat",
        "meine Schwester hat am dritten Mai Geburtstag",
    ),
    (
        "de",
        "Merk dir, dass der Code für die Garage 4711 ist",
        "der Code für die Garage 4711 ist",
        "dass der Code für die Garage 4711 ist",
    ),
    ("de", "Merk dir, dass Oma am Sonntag kommt", "Oma am Sonntag kommt", "dass Oma am Sonntag kommt"),
    ("de", "Merk dir: Ich mag Tee", "Ich mag Tee", "Ich mag Tee"),
    (
        "nl",
        "Onthoud dat ik allergisch voor pinda's ben",
        "ik allergisch voor pinda's ben",
        "ik ben allergisch voor pinda's",
    ),
    (
        "nl",
        "Onthoud dat mijn zus op drie mei jarig is",
        "mijn zus op drie mei jarig is",
        "dat mijn zus op drie mei jarig is",
    ),
    ("sv", "Kom ihåg att jag inte gillar te", "jag inte gillar te", "jag gillar inte te"),
    ("da", "Husk at jeg ikke kan lide te", "jeg ikke kan lide te", "jeg kan ikke lide te"),
    ("en", "Remember that I like tea", "I like tea", "I like tea"),
]


def dialog_errors(language: str) -> Iterator[str]:
    """Yield the errors that stand in place of an answer in the chat dialog."""
    errors: dict[str, dict[str, str]] = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))["exceptions"]
    yield from (errors[key]["message"] for key in errors if key.startswith("rate_limited"))


def texts(language: str) -> Iterator[tuple[str, str]]:
    spoken: dict[str, str] = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))["common"]
    yield from ((key, text) for key, text in spoken.items() if key.startswith(("memory_", "gate_", "heard_", "filler")))


@pytest.mark.parametrize("language", SPOKEN_LANGUAGES)
def test_no_turn_is_spoken(language: str) -> None:
    assert [text for _, text in texts(language) if re.search(TURNS[language], text, re.IGNORECASE)] == []


@pytest.mark.parametrize("language", FORGOTTEN)
def test_what_is_deleted_is_not_said_to_have_slipped_the_mind(language: str) -> None:
    said = [text for key, text in texts(language) if key.startswith("memory_forgotten")]

    assert len(said) == 3
    assert [text for text in said if re.search(FORGOTTEN[language], text, re.IGNORECASE)] == []


@pytest.mark.parametrize("language", SPOKEN_LANGUAGES)
def test_no_abbreviation_is_spoken(language: str) -> None:
    spoken = [*[text for _, text in texts(language)], *dialog_errors(language)]

    assert [text for text in spoken if re.search(ABBREVIATION, text)] == []


@pytest.mark.parametrize("language", SPOKEN_LANGUAGES)
def test_no_text_depends_on_quotation_marks_to_be_heard(language: str) -> None:
    assert [text for _, text in texts(language) if re.search('["“„«「『]\\{', text)] == []


def test_english_has_contractions() -> None:
    assert [text for _, text in texts("en") if re.search(STIFF, text, re.IGNORECASE)] == []


def test_a_clause_is_said_as_a_main_clause(subtests: pytest.Subtests) -> None:
    for language, request, fact, said in CLAUSES:
        with subtests.test(language=language, fact=fact):
            assert say_clause(fact, request, language) == said
