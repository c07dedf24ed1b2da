"""Tests for splitting texts into the words by which they are found."""

import pytest

from custom_components.windowed_conversation.memory.words import Words

_WORDS = Words(("en", "de", "it", "zh-Hans"))


def has_common_word(said, asked):
    return not set(_WORDS.search_terms(asked).words).isdisjoint(_WORDS.build_index_terms(said).words.split())


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("The lamp flickers", "why is it flickering?"),
        ("Die Schlüssel liegen hier", "Wo liegt der Schluessel, der SCHLUSSEL?"),
        ("in der Hauptstraße", "HAUPTSTRASSE"),
        ("Il cane di Anna", "i cani"),
        ("\uff37\uff49\uff46\uff49 \uff11\uff12", "wifi 12"),
        ("Anna's café", "CAFE"),
        ("我们家的猫叫小花", "猫叫什么名字？"),
        ("備用鑰匙在這裡", "鑰匙"),
        ("어머니의 생일은 내일입니다", "어머니 생일"),
        ("กุญแจอยู่ในลิ้นชัก", "กุญแจ"),
        ("Ёлка в гостиной", "елка"),
    ],
)
def test_a_word_is_found_however_it_is_written(said, asked) -> None:
    assert has_common_word(said, asked)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Мій стоматолог", "коли до стоматолога?"),
        ("Ключі в сусідки", "де мій ключ?"),
        ("Сміття вивозять зранку", "хто вивозить сміттям"),
        ("Машина в дворі", "хто взяв машину?"),
    ],
)
def test_ukrainian_word_is_found_in_another_case(said: str, asked: str) -> None:
    words = Words(("uk",))

    assert set(words.search_terms(asked).words) & set(words.build_index_terms(said).words.split())


def test_a_part_of_a_long_word_is_found() -> None:
    asked = _WORDS.search_terms("Heizung")

    assert set(asked.word_parts) <= set(_WORDS.build_index_terms("Die Fußbodenheizung im Bad").word_parts.split())


@pytest.mark.parametrize(("asked", "told"), [("nuts", "hazelnuts"), ("nonne", "la nonna"), ("Haus", "Treppenhaus")])
def test_words_that_begin_or_end_alike_have_that_in_common(asked: str, told: str) -> None:
    assert not set(_WORDS.search_terms(asked).word_edges).isdisjoint(_WORDS.build_index_terms(told).word_edges.split())


def test_stop_words_are_omitted_from_questions_only() -> None:
    assert _WORDS.search_terms("What is the name of my cat?").words == ("nam", "cat")
    assert "of" in _WORDS.build_index_terms("the name of the cat").words.split()


@pytest.mark.parametrize("asked", ["When is my birthday?", "Wann habe ich Geburtstag?", "我的生日是什么时候？"])
def test_a_speaker_is_what_my_stands_for(asked) -> None:
    assert "ada" in _WORDS.search_terms(asked, "Ada").words
    assert "ada" not in _WORDS.search_terms(asked).words


def test_a_speaker_is_not_looked_for_in_what_is_not_theirs() -> None:
    assert (
        _WORDS.search_terms("When does Ben get up?", "Ada").words == _WORDS.search_terms("When does Ben get up?").words
    )


def test_one_character_stands_for_what_begins_with_it() -> None:
    assert _WORDS.search_terms("猫").word_beginnings == ("猫",)


@pytest.mark.parametrize("text", ["", "   ", "?!", "🎉", "\ud800"])
def test_a_text_without_words_has_none(text) -> None:
    assert _WORDS.build_index_terms(text).words == ""
    assert _WORDS.search_terms(text).words == ()


def test_languages_are_the_same_in_any_order_and_region() -> None:
    assert Words(("en-GB", "de")).version == Words(("de-AT", "EN")).version


def test_a_language_without_stemmer_is_split_all_the_same() -> None:
    assert Words(("xx",)).build_index_terms("zwei Wörter").words == "zwei worter"


def test_question_in_a_language_that_is_not_the_homes_has_its_small_words() -> None:
    english = Words(("en",))

    assert "nicht" not in english.search_terms("Was verträgt Ben nicht?").words
    assert "ada" in english.search_terms("Wo wohnt meine Großmutter?", "Ada").words
    assert english.search_terms("door").words == ("door",)
