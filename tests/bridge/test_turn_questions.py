"""Tests for the questions about turns in each language, and for equally ordinary sentences that are none."""

import json
from pathlib import Path

import pytest

from custom_components.windowed_conversation.agents.turn_questions import TurnQuestion, match_turn_question
from custom_components.windowed_conversation.memory.core import base_language
from custom_components.windowed_conversation.memory.turn.speaker import UNDERSTOOD_LANGUAGES

from .ordinary_sentences import ordinary_sentences

SENTENCES = json.loads(Path(__file__).with_name("turn_questions.json").read_text("utf-8"))
ORDINARY = 500
# Questions that only a model, or Home Assistant, can answer.
OTHERS = {
    "en": (
        "why did you turn on the light in the kitchen",
        "why did the dog do that",
        "how much did it cost today",
        "how much did the heating cost this month",
        "what did Anna do while I was away",
        "why is the sky blue",
        "why does it take so long to boil an egg",
        "how much did we spend on groceries today",
    ),
    "de": ("warum hat der Film so lange gedauert", "was hat der Strom heute gekostet", "was hast du gestern gemacht"),
    "fr": ("pourquoi as-tu allumé la lampe", "combien a coûté le chauffage aujourd'hui"),
    "it": ("perché ci vuole tanto per cuocere la pasta", "quanto ho speso oggi"),
    "pt": ("quanto gastei hoje", "por que a internet está tão lenta"),
    "pl": ("ile wydałem dzisiaj", "dlaczego to tak długo się gotuje"),
    "uk": ("скільки я сьогодні витратив",),
    "ja": ("今日はいくら使った", "今月の電気料金はいくら"),
    "zh": ("今天花了多少钱", "为什么网速这么慢"),
    "es": ("por qué has encendido la luz", "cuánto ha costado la luz hoy"),
}


def test_each_question_is_recognized_in_each_language(subtests: pytest.Subtests) -> None:
    for language, kinds in SENTENCES.items():
        for kind, sentences in kinds.items():
            for said in sentences:
                with subtests.test(language=language, said=said):
                    assert match_turn_question(said, language) == kind


def test_each_language_has_each_question() -> None:
    assert {base_language(each) for each in SENTENCES} == {*UNDERSTOOD_LANGUAGES}
    assert {frozenset(kinds) for kinds in SENTENCES.values()} == {frozenset(map(str, TurnQuestion))}


def test_ordinary_sentences_are_no_questions_about_turns(subtests: pytest.Subtests) -> None:
    for language in UNDERSTOOD_LANGUAGES:
        with subtests.test(language=language):
            ordinary = ordinary_sentences(language, ORDINARY)
            taken = [said for said in ordinary if match_turn_question(said, language) is not None]
            assert len(taken) * 200 <= len(ordinary), taken


def test_questions_about_others_are_no_questions_about_turns(subtests: pytest.Subtests) -> None:
    for language, sentences in OTHERS.items():
        for said in sentences:
            with subtests.test(language=language, said=said):
                assert match_turn_question(said, language) is None


@pytest.mark.parametrize(
    ("language", "said", "before"),
    [
        ("en", "why did you turn on the light in the kitchen", "kitchen light on"),
        ("de", "wieso hast du das Licht ausgemacht", "Licht aus"),
        ("fr", "pourquoi as-tu allumé la lampe", "allume la lampe"),
        ("zh", "你怎么突然把灯打开了", "开灯"),
    ],
)
def test_question_about_a_thing_is_about_the_sentence_that_named_it(language: str, said: str, before: str) -> None:
    assert match_turn_question(said, language, lambda: before) is TurnQuestion.WHY
    assert match_turn_question(said, language, lambda: "how late is it") is None
