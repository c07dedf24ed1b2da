"""Tests for properties of a captured text that follow from its words. The tables serve as documentation."""

import pytest

from custom_components.windowed_conversation.turn.routing import (
    has_no_required_word,
    have_same_words,
    is_question,
    is_unlikely_name,
    is_word_cut,
)
from custom_components.windowed_conversation.turn.speaker import is_instruction


@pytest.mark.parametrize(
    ("item", "is_long"),
    [
        ("milk", False),
        ("oat milk", False),
        ("two red peppers", False),
        ("the usual for the weekend", True),
        ("milk, eggs", True),
        ("牛奶，鸡蛋", True),  # noqa: RUF001 - a Chinese comma
        ("Donaudampfschifffahrtsgesellschaft", True),
        ("", False),
    ],
)
def test_an_item_is_at_most_three_words(item: str, is_long: bool) -> None:
    assert is_unlikely_name(item) is is_long


ANNOUNCEMENTS = [
    ("who is at the door", "en", True),
    ("When the washing machine is done", "en-GB", True),
    ("dinner is ready", "en", False),
    ("whoever is hungry may come", "en", False),
    ("wenn die Waschmaschine fertig ist", "de", True),
    ("das Essen ist fertig", "de-CH", False),
    ("who is at the door", "xx", False),
    ("a che ora parte il treno", "it", True),
    ("a tavola", "it", False),
    ("dès que Ben est à la maison", "fr", True),
    ("på vilken tid går tåget", "sv", True),
    ("hvad tid toget går", "da", True),
    ("quando o filme começa", "pt-BR", True),
    ("v kolik hodin jede vlak", "cs", True),
    ("večeře je hotová", "cs", False),
    ("до котрої години відчинено", "uk", True),
    ("hvis det regner", "no", True),
    ("middagen er klar", "nb", False),
    ("火车几点开", "zh-cn", True),
    ("晚饭好了", "zh-Hans", False),
    ("電車はいつ来る", "ja", True),
    ("ごはんだよ", "ja", False),
    ("...", "en", False),
]


def test_an_announcement_that_begins_like_a_question_is_an_instruction(subtests: pytest.Subtests) -> None:
    for message, language, is_one in ANNOUNCEMENTS:
        with subtests.test(message=message, language=language):
            assert is_instruction(message, language) is is_one


@pytest.mark.parametrize(
    ("template", "bare"),
    [
        ("{name}", True),
        ("[<the>] {name}", True),
        ("[[the] [big] ]{name}", True),
        ("[the] {area} {name}", True),
        ("{name} on", False),
        ("<turn> on {name}", False),
        ("(turn|switch) on [the] {name}", False),
        ("", True),
    ],
)
def test_a_bare_template_has_no_word_that_must_be_said(template: str, bare: bool) -> None:
    assert has_no_required_word(template) is bare


@pytest.mark.parametrize(("text", "asks"), [("kitchen light?", True), ("厨房灯？", True), ("kitchen light.", False)])
def test_a_question_mark_makes_a_question(text: str, asks: bool) -> None:
    assert is_question(text) is asks


@pytest.mark.parametrize(("one", "other", "same"), [("milk, eggs", "milk eggs", True), ("nna ", "Anna", False)])
def test_words_are_the_same_whatever_stands_between_them(one: str, other: str, same: bool) -> None:
    assert have_same_words(one, other) is same


@pytest.mark.parametrize(
    ("text", "span", "cut"),
    [
        ("añade pan a la lista", (6, 13), True),
        ("añade pan a la lista", (6, 9), False),
        ("add milk", (4, 8), False),
        ("把牛奶加到清单", (1, 3), False),
    ],
)
def test_a_span_that_ends_between_two_letters_cuts_a_word(text: str, span: tuple[int, int], cut: bool) -> None:
    assert is_word_cut(text, span) is cut
