"""Tests for sentences in each language that ask memory for something, and for equally many that do not."""

from collections.abc import Iterator
import json
from pathlib import Path
import re

import pytest

from custom_components.windowed_conversation.memory.bridge.sentences import (
    MemoryRequest,
    RequestKind,
    are_sentences_loaded,
    match_request,
)
from custom_components.windowed_conversation.memory.turn.replies import parse_decision, parse_yes_no
from custom_components.windowed_conversation.memory.turn.speaker import UNDERSTOOD_LANGUAGES, load_language
from custom_components.windowed_conversation.memory.turn.suggestions import Decision
from tests.repository_files import PACKAGE

from .ordinary_sentences import ordinary_sentences

FOLDER = Path(__file__).parent
TRANSLATIONS = PACKAGE / "translations"
# What a sentence quotes, in the quotation marks of several languages.
QUOTED = re.compile('["„“”«「] ?([^"„“”»」{}]+?) ?["”“»」]')
PRIVATE = json.loads((FOLDER / "private_sentences.json").read_text("utf-8"))
# These have no text besides the request.
NAMED_ONLY = {RequestKind.LIST_FACTS, RequestKind.LIST_LEARNED, RequestKind.KEEP_PRIVATE}
SENTENCES = json.loads((FOLDER / "memory_sentences.json").read_text("utf-8"))
EVERYDAY = json.loads((FOLDER / "everyday_memory_sentences.json").read_text("utf-8"))
# More sentences than the others have: at least 40 of each kind, under its name in brackets.
REQUESTS = {path.stem: path.read_text("utf-8") for path in (FOLDER / "requests").glob("*.txt")}


def requests() -> Iterator[tuple[str, str, MemoryRequest | None]]:
    for language, sentences in (*SENTENCES.items(), *EVERYDAY.items()):
        for verb in (each for each in RequestKind if each not in NAMED_ONLY):
            captures = sentences.get(verb, {}).items()
            yield from ((language, said, MemoryRequest(verb, text)) for said, text in captures)
        yield from ((language, said, MemoryRequest(RequestKind.LIST_FACTS)) for said in sentences["known"])
        yield from ((language, said, MemoryRequest(RequestKind.LIST_LEARNED)) for said in sentences.get("learned", ()))
        private = PRIVATE.get(language, ()) if sentences is SENTENCES.get(language, EVERYDAY[language]) else ()
        yield from ((language, said, MemoryRequest(RequestKind.KEEP_PRIVATE)) for said in private)
        yield from ((language, said, None) for said in sentences["nothing"])


# Unless memory has a fact about them, these go on to others.
PASSED_ON = (RequestKind.RECALL, RequestKind.FORGET_LAST)


def match_own(said: str, language: str) -> MemoryRequest | None:
    """Return the request that memory answers with or without a fact, or None."""
    request = match_request(said, language)
    return None if request is None or request.kind in PASSED_ON else request


# Thousands of rows: a subtest for each would take as long as the matching.
def test_a_sentence_asks_of_memory_what_it_says() -> None:
    found = [(language, said, expected, match_own(said, language)) for language, said, expected in requests()]

    assert [row for row in found if row[2] != row[3]] == []


def test_a_family_asks_who_hears_and_what_it_told(subtests: pytest.Subtests) -> None:
    for line in (FOLDER / "questions_of_families.txt").read_text("utf-8").splitlines():
        language, kind, said = line.split("|")
        with subtests.test(language=language, said=said):
            request = match_request(said, language)

            assert request is not None
            assert request.kind == kind


def is_matched(said: str, language: str, kind: str, text: str) -> bool:
    """Return whether a sentence is of this kind, and about this text, if there is any."""
    request = match_request(said, language)
    return (request.kind if request else "nothing") == kind and text in ("", request and request.text)


def test_a_request_in_other_words_is_understood() -> None:
    rows = [line.split("|") for line in (FOLDER / "first_sight.txt").read_text("utf-8").splitlines()]

    assert [row for row in rows if not is_matched(row[2], row[0], row[1], row[3])] == []


# Number of ordinary sentences to draw for each language.
ORDINARY = 500
MARKS = str.maketrans("", "", "¿?.!,:;")


# Only its mark makes each of these a question: without it, it is the demand to keep something private.
DEMANDS = {
    "c'est privé",
    "eso es privado",
    "resta tra noi",
    "isso é privado",
    "isso fica entre nós",
    "це приватно",
    "це залишиться між нами",
}


def unmarked() -> Iterator[tuple[str, str, RequestKind]]:
    for language, said, request in requests():
        if request is None:
            continue
        # a heading is recognized only by its colon, and a name in Swedish and Danish only by its capital letter
        if request.kind is not RequestKind.REMEMBER or not (":" in said or "Anna" in said):
            plain = said.lower().translate(MARKS).strip()
            yield language, plain, RequestKind.KEEP_PRIVATE if plain in DEMANDS else request.kind


def get_kind(said: str, language: str) -> str | None:
    request = match_request(said, language)
    return request.kind.removesuffix("_unsure") if request else None


def test_a_sentence_needs_no_capitals_and_marks() -> None:
    found = [(language, said, verb, get_kind(said, language)) for language, said, verb in unmarked()]

    assert [row for row in found if row[2].removesuffix("_unsure") != row[3]] == []


def test_sentences_of_each_language_are_tested() -> None:
    assert set(EVERYDAY) == UNDERSTOOD_LANGUAGES


@pytest.mark.parametrize("language", ["en-GB", "EN", "en_US"])
def test_a_language_of_a_country_is_that_language(language: str) -> None:
    assert match_request("What do you remember?", language) == MemoryRequest(RequestKind.LIST_FACTS)


def test_a_language_without_sentences_asks_nothing() -> None:
    assert match_request("What do you remember?", "fi") is None


def test_a_language_is_loaded_once_a_sentence_was_match_request() -> None:
    match_request("What do you remember?", "pt-BR")

    assert are_sentences_loaded("pt-PT")


def test_a_language_without_sentences_has_nothing_to_load() -> None:
    assert are_sentences_loaded("fi")


def test_a_story_is_no_sentence() -> None:
    assert match_request(f"Remember that {'I like tea and ' * 100}coffee", "en") is None


def test_a_fact_keeps_its_capitals_and_its_marks() -> None:
    assert match_request("Remember that Dr. Keller, the vet, is at 5-7 Main St.", "en") == MemoryRequest(
        RequestKind.REMEMBER, "Dr. Keller, the vet, is at 5-7 Main St"
    )


def answered() -> Iterator[tuple[str, str, bool | None]]:
    for language, sentences in EVERYDAY.items():
        for name, answer in {"yes": True, "no": False, "neither": None}.items():
            yield from ((language, said, answer) for said in sentences[name])
        yield from ((language, said, answer) for said, answer in (("Yes", True), ("ok", True), ("No!", False)))


def test_an_answer_is_yes_or_no_or_neither(subtests: pytest.Subtests) -> None:
    for language, said, answer in answered():
        with subtests.test(language=language, said=said):
            assert parse_yes_no(said, language, to_memory=True) is answer


def test_what_agrees_to_a_question_of_memory_only_is_no_other_yes(subtests: pytest.Subtests) -> None:
    for language in EVERYDAY:
        for said in load_language(language)["memory"]["yes_to_memory"]:
            with subtests.test(language=language, said=said):
                assert parse_yes_no(said, language, to_memory=True) is True
                assert parse_yes_no(said, language) is not True


@pytest.mark.parametrize(
    ("said", "answer"), [("yes", True), ("okay", True), ("no", False), ("kyllä", None), ("", None)]
)
@pytest.mark.parametrize("to_memory", [False, True])
def test_a_language_without_sentences_knows_few_answers(said: str, answer: bool | None, *, to_memory: bool) -> None:
    assert parse_yes_no(said, "fi", to_memory=to_memory) is answer


@pytest.mark.parametrize("language", [*EVERYDAY, "pt-BR"])
def test_hardly_an_ordinary_sentence_is_taken_for_one_of_memory(language: str) -> None:
    ordinary = ordinary_sentences(language, ORDINARY)

    taken = [said for said in ordinary if match_own(said, language)]

    assert len(ordinary) == ORDINARY
    assert len(taken) <= ORDINARY // 100, taken


def requests_by_kind() -> Iterator[tuple[str, str, list[str]]]:
    for language, text in sorted(REQUESTS.items()):
        for part in text.split("[")[1:]:
            kind, _, said = part.partition("]\n")
            yield language, kind, said.split("\n")[:-1]


@pytest.mark.parametrize(("language", "kind", "said"), requests_by_kind())
def test_nearly_every_request_is_understood(language: str, kind: str, said: list[str]) -> None:
    understood = [request.kind.removesuffix("_unsure") for each in said if (request := match_request(each, language))]

    assert len(set(said)) >= 40
    assert understood.count(kind) >= 0.95 * len(said)


@pytest.mark.parametrize("language", REQUESTS)
def test_there_are_requests_of_each_kind(language: str) -> None:
    kinds = [kind for of, kind, _ in requests_by_kind() if of == language]

    assert kinds == ["remember", "known", "forget", "forget_everything", "correct", "hears"]


def test_question_about_suggestions_offers_two_answers_that_are_understood(subtests: pytest.Subtests) -> None:
    for language in sorted(UNDERSTOOD_LANGUAGES):
        (path,) = [*TRANSLATIONS.glob(f"{language}.json"), *TRANSLATIONS.glob(f"{language}-Hans.json")]
        question = json.loads(path.read_text("utf-8"))["common"]["memory_learned"]
        offered = [found[1] for found in QUOTED.finditer(question)]
        with subtests.test(language=language, question=question):
            assert [parse_decision(each, language) for each in offered] == [Decision.SHARE, Decision.DISMISS]


def test_yes_and_no_are_no_decision_about_suggestions(subtests: pytest.Subtests) -> None:
    for language in sorted(UNDERSTOOD_LANGUAGES):
        data = load_language(language)["memory"]
        phrases = {name: set(data[name]) for name in ("keep", "share", "dismiss")}
        with subtests.test(language=language):
            assert not phrases["share"] & {*data["yes"], *data["no"]}
            assert not phrases["keep"] & phrases["share"]
            assert not phrases["keep"] & phrases["dismiss"]
            assert not phrases["share"] & phrases["dismiss"]


def test_decision_is_nothing_but_the_decision(subtests: pytest.Subtests) -> None:
    rows = {
        "please keep that": Decision.KEEP,
        "For everybody, please!": Decision.SHARE,
        "No, that's wrong.": Decision.DISMISS,
        "keep that light on": None,
        "that's wrong, it is on Tuesday": None,
        "is that for everybody": None,
    }
    for said, decision in rows.items():
        with subtests.test(said=said):
            assert parse_decision(said, "en-GB") is decision
