"""Sentences of each language that ask something of memory, and as many that ask nothing of it."""

from collections.abc import Callable, Iterator
from functools import partial
import json
from pathlib import Path

import pytest

from custom_components.windowed_conversation.bridge.memory_sentences import (
    Correct,
    ForgetEverything,
    ForgetThat,
    RememberThat,
    WhatIsKnown,
    WhoHears,
    Wish,
    assent,
    is_loaded,
    languages,
    matched,
)

from .ordinary_sentences import ordinary_sentences

FOLDER = Path(__file__).parent
SENTENCES = json.loads((FOLDER / "memory_sentences.json").read_text("utf-8"))
EVERYDAY = json.loads((FOLDER / "everyday_memory_sentences.json").read_text("utf-8"))
WISHES: dict[str, Callable[[str], Wish]] = {
    "remember": RememberThat,
    "forget": ForgetThat,
    "forget_everything": ForgetEverything,
    "correct": partial(Correct, is_sure=True),
    "correct_unsure": partial(Correct, is_sure=False),
    "hears": WhoHears,
}


def asked() -> Iterator[tuple[str, str, Wish | None]]:
    for language, sentences in (*SENTENCES.items(), *EVERYDAY.items()):
        for name, wish in WISHES.items():
            yield from ((language, said, wish(text)) for said, text in sentences.get(name, {}).items())
        yield from ((language, said, WhatIsKnown()) for said in sentences["known"])
        yield from ((language, said, None) for said in sentences["nothing"])


@pytest.mark.parametrize(("language", "said", "wish"), asked())
def test_a_sentence_asks_of_memory_what_it_says(language: str, said: str, wish: Wish | None) -> None:
    assert matched(said, language) == wish


# How many ordinary sentences are drawn for each language.
ORDINARY = 500
MARKS = str.maketrans("", "", "¿?.!,:;")


def heard() -> Iterator[tuple[str, str, type[Wish]]]:
    for language, said, wish in asked():
        # a heading needs its colon, and a name in Swedish and Danish its capital
        needs_marks = isinstance(wish, RememberThat) and (":" in said or "Anna" in said)
        if wish is not None and not needs_marks:
            yield language, said.lower().translate(MARKS).strip(), type(wish)


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


def answered() -> Iterator[tuple[str, str, bool | None]]:
    for language, sentences in EVERYDAY.items():
        for name, answer in {"yes": True, "no": False, "neither": None}.items():
            yield from ((language, said, answer) for said in sentences[name])
        yield from ((language, said, answer) for said, answer in (("Yes", True), ("ok", True), ("No!", False)))


@pytest.mark.parametrize(("language", "said", "answer"), answered())
def test_an_answer_is_yes_or_no_or_neither(language: str, said: str, answer: bool | None) -> None:
    assert assent(said, language) is answer


@pytest.mark.parametrize(
    ("said", "answer"), [("yes", True), ("okay", True), ("no", False), ("kyllä", None), ("", None)]
)
def test_a_language_without_sentences_knows_few_answers(said: str, answer: bool | None) -> None:
    assert assent(said, "fi") is answer


@pytest.mark.parametrize("language", languages())
def test_hardly_an_ordinary_sentence_is_taken_for_one_of_memory(language: str) -> None:
    ordinary = ordinary_sentences(language, ORDINARY)

    taken = [said for said in ordinary if matched(said, language)]

    assert len(ordinary) == ORDINARY
    assert len(taken) <= ORDINARY // 100, taken
