"""What is asked of memory by words: six sentences and more of each language, and as many that ask nothing of it."""

from collections.abc import Callable, Iterator
import json
from pathlib import Path

import pytest

from custom_components.windowed_conversation.bridge.memory_sentences import (
    ForgetEverything,
    ForgetThat,
    RememberThat,
    WhatIsKnown,
    Wish,
    is_loaded,
    languages,
    matched,
)

SENTENCES = json.loads(Path(__file__).with_name("memory_sentences.json").read_text("utf-8"))
WISHES: dict[str, Callable[[str], Wish]] = {
    "remember": RememberThat,
    "forget": ForgetThat,
    "forget_everything": ForgetEverything,
}


def asked() -> Iterator[tuple[str, str, Wish | None]]:
    for language, sentences in SENTENCES.items():
        for name, wish in WISHES.items():
            yield from ((language, said, wish(text)) for said, text in sentences[name].items())
        yield from ((language, said, WhatIsKnown()) for said in sentences["known"])
        yield from ((language, said, None) for said in sentences["nothing"])


@pytest.mark.parametrize(("language", "said", "wish"), asked())
def test_a_sentence_asks_of_memory_what_it_says(language: str, said: str, wish: Wish | None) -> None:
    assert matched(said, language) == wish


def heard() -> Iterator[tuple[str, str, type[Wish]]]:
    for language, said, wish in asked():
        # a heading needs its colon, and a name in Swedish and Danish its capital
        if wish is not None and ":" not in said and "Anna" not in said:
            yield language, said.lower().strip("¿?.!").replace(",", ""), type(wish)


@pytest.mark.parametrize(("language", "said", "kind"), heard())
def test_a_sentence_needs_no_capitals_and_marks(language: str, said: str, kind: type[Wish]) -> None:
    assert type(matched(said, language)) is kind


def test_there_are_ten_languages() -> None:
    assert set(languages()) == set(SENTENCES)
    assert len(SENTENCES) == 10


@pytest.mark.parametrize("language", ["en-GB", "EN", "en_US"])
def test_a_language_of_a_country_is_that_language(language: str) -> None:
    assert matched("What do you remember?", language) == WhatIsKnown()


def test_a_language_without_sentences_asks_nothing() -> None:
    assert matched("What do you remember?", "fi") is None


def test_a_language_is_loaded_once_a_sentence_was_matched() -> None:
    matched("What do you remember?", "pt-BR")

    assert is_loaded("pt-PT")


def test_a_language_without_sentences_is_never_loaded() -> None:
    matched("What do you remember?", "fi")

    assert not is_loaded("fi")


def test_a_story_is_no_sentence() -> None:
    assert matched(f"Remember that {'I like tea and ' * 100}coffee", "en") is None


def test_a_fact_keeps_its_capitals_and_its_marks() -> None:
    assert matched("Remember that Dr. Keller, the vet, is at 5-7 Main St.", "en") == RememberThat(
        "Dr. Keller, the vet, is at 5-7 Main St"
    )
