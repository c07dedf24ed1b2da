"""Tests for replies to a question of memory, as people say them, in each language."""

from collections.abc import Mapping
from pathlib import Path
import re

import pytest

from custom_components.windowed_conversation.memory.turn.replies import leans_to_yes, parse_yes_no
from custom_components.windowed_conversation.memory.turn.speaker import UNDERSTOOD_LANGUAGES, load_language

REPLIES = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "replies").glob("*.txt")}
ANSWERS = {"yes": True, "no": False, "neither": None}


def replies(language: str) -> Mapping[str, list[str]]:
    parts = [part.partition("]\n") for part in REPLIES[language].split("[")[1:]]
    return {kind: said.splitlines() for kind, _, said in parts}


def test_each_language_has_replies() -> None:
    assert set(REPLIES) == UNDERSTOOD_LANGUAGES


@pytest.mark.parametrize("language", sorted(REPLIES))
@pytest.mark.parametrize("kind", ["yes", "no"])
def test_nearly_every_yes_and_no_is_understood(language: str, kind: str) -> None:
    said = replies(language)[kind]

    missed = [each for each in said if parse_yes_no(each, language, to_memory=True) is not ANSWERS[kind]]

    assert len(missed) <= 0.05 * len(said), missed


@pytest.mark.parametrize("language", sorted(REPLIES))
def test_only_a_yes_is_a_yes(language: str) -> None:
    others = [*replies(language)["no"], *replies(language)["neither"]]

    assert [each for each in others if parse_yes_no(each, language, to_memory=True)] == []


@pytest.mark.parametrize("language", sorted(REPLIES))
def test_nothing_else_is_a_no(language: str) -> None:
    others = [*replies(language)["yes"], *replies(language)["neither"]]

    assert [each for each in others if parse_yes_no(each, language, to_memory=True) is False] == []


@pytest.mark.parametrize("language", sorted(UNDERSTOOD_LANGUAGES))
def test_no_yes_goes_on_with_a_negation(language: str) -> None:
    data = load_language(language)

    negations = [word for word in data["memory"]["yes_continues"].split() if re.fullmatch(data["negations"], word)]

    assert negations == []


@pytest.mark.parametrize("said", ["Yes, delete everything", "Yes, please delete it all", "Yeah, go for it"])
def test_a_yes_of_more_words_opens_nothing(said: str) -> None:
    assert parse_yes_no(said, "en") is None


@pytest.mark.parametrize("said", ["Yes, delete my shopping list", "oh yes, but keep the one about the dentist, please"])
def test_a_yes_with_other_words_is_unclear(said: str) -> None:
    assert parse_yes_no(said, "en", to_memory=True) is None
    assert leans_to_yes(said, "en")


@pytest.mark.parametrize("said", ["Yes, and turn on the light", "No, delete it", "is it raining"])
def test_what_does_not_begin_with_a_yes_to_the_question_is_no_unclear_yes(said: str) -> None:
    assert not leans_to_yes(said, "en")


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "I don't know"),
        ("en", "hm, I'm not so sure"),
        ("de", "das weiß ich noch nicht"),
        ("fr", "je ne sais pas"),
        ("nl", "dat weet ik niet"),
        ("sv", "jag vet inte riktigt"),
        ("da", "det ved jeg ikke"),
        ("nb", "jeg vet ikke"),
        ("en", "yes, just that one"),
        ("de", "ja, nur die"),
        ("fr", "oui, juste les trois"),
        ("sv", "ja, bara den"),
        ("pl", "tak, tylko tamtą"),
    ],
)
def test_doubt_or_a_part_is_neither_a_yes_nor_a_no(language: str, said: str) -> None:
    assert parse_yes_no(said, language, to_memory=True) is None


@pytest.mark.parametrize("to_memory", [True, False])
def test_doubt_in_the_words_of_a_yes_is_none(*, to_memory: bool) -> None:
    assert parse_yes_no("yeah, right", "en", to_memory=to_memory) is None


@pytest.mark.parametrize("said", ["Sure, can you really do that?", "Yes, do you know everything about me?"])
def test_a_question_is_no_yes(said: str) -> None:
    assert parse_yes_no(said, "en", to_memory=True) is None
