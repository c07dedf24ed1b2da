"""Tests for the words by which texts are found, and for search words that a model wrote for a fact."""

import json

import pytest

from custom_components.windowed_conversation.memory.core import Memory, RecallQuery
from custom_components.windowed_conversation.memory.core.words import Words

from .content import get_texts, read_all_files

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


FUSES = "The fuse box is behind the wardrobe"
WORDS = "power cut, blackout, electricity gone, breaker, Stromausfall"


def find_relevant(memory, text, **more):
    return get_texts(memory.recall_relevant(RecallQuery(text, **more))[0])


def test_fact_is_found_by_its_search_words(memory) -> None:
    memory.add_fact(FUSES, search_words=WORDS)
    memory.add_fact("The vet is Doctor Keller")

    assert get_texts(memory.recall("there is a blackout, what do I do?")) == [FUSES]


def test_word_of_the_fact_counts_more_than_a_search_word(memory) -> None:
    memory.add_fact("The kettle is in the cupboard", search_words="blackout, electricity")
    memory.add_fact("In a blackout the candles are in the drawer")

    assert get_texts(memory.recall("blackout"))[0] == "In a blackout the candles are in the drawer"


def test_two_search_words_recall_a_fact(memory) -> None:
    memory.add_fact(FUSES, search_words=WORDS)

    assert find_relevant(memory, "is there no electricity because of a breaker?") == [FUSES]


def test_single_search_word_recalls_nothing(memory) -> None:
    memory.add_fact(FUSES, search_words=WORDS)

    assert find_relevant(memory, "was there a blackout?") == []


def test_search_words_are_no_text_of_the_fact(memory) -> None:
    memory.add_fact(FUSES, search_words=WORDS, quote="the fuse box is behind the wardrobe")

    found = memory.recall("blackout electricity")

    assert "blackout" not in str([each.text for each in (*found, *memory.get_facts())])


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("  power\ncut [or]  (blackout) <x> ", "power cut or blackout x"),
        ("blackout " * 100, f"{('blackout ' * 22).strip()}…"),
        ("", ""),
        (None, None),
    ],
)
def test_search_words_are_one_bounded_line_without_brackets(memory, written, stored) -> None:
    memory.add_fact(FUSES, search_words=written)

    (line,) = map(json.loads, memory.export())
    assert line.get("search_words") == stored


def test_repetition_of_a_fact_adds_its_search_words(memory) -> None:
    first = memory.add_fact(FUSES)
    again = memory.add_fact(FUSES.upper(), search_words=WORDS)
    memory.add_fact(FUSES)

    assert (again, get_texts(memory.recall("blackout"))) == (first, [FUSES])


def test_later_search_words_replace_the_earlier_ones(memory) -> None:
    row = memory.add_fact(FUSES, search_words=WORDS)
    memory.set_search_words({row: "lights out"})

    assert [get_texts(memory.recall(each)) for each in ("blackout", "lights")] == [[], [FUSES]]


def test_search_words_of_a_forgotten_fact_are_not_stored(memory, path) -> None:
    row = memory.add_fact(FUSES)
    memory.forget(ids=[("fact", row)])
    memory.set_search_words({row: WORDS})
    memory.checkpoint()

    assert b"blackout" not in read_all_files(path)


def test_forgotten_fact_leaves_no_byte_of_its_search_words(memory, path) -> None:
    row = memory.add_fact(FUSES, search_words="zebrablackout, quaggabreaker")
    memory.checkpoint()
    assert b"zebrablackout" in read_all_files(path)

    memory.forget(ids=[("fact", row)])

    assert [each in read_all_files(path) for each in (b"zebrablackout", b"quaggabreak")] == [False, False]


def test_replaced_fact_is_not_found_by_its_search_words(memory) -> None:
    old = memory.add_fact(FUSES, search_words=WORDS)
    new = memory.add_fact("The fuse box is in the cellar", replaces=old)

    assert memory.recall("blackout") == []
    assert [found.id for found in memory.recall("fuse")] == [new]


def test_search_words_of_another_person_find_nothing(memory) -> None:
    memory.add_fact("Ada hides the key in the blue jar", person="ada", private=True, search_words=WORDS)
    memory.add_fact("Ada sings", person="ada", search_words=WORDS)

    asked = {who: find_relevant(memory, "is it a power blackout?", person=who) for who in ("ben", None)}

    assert asked == {"ben": [], None: []}
    assert memory.recall("blackout", person="ben") == []
    assert get_texts(memory.recall("blackout", person="ada", private=False)) == ["Ada sings"]


def test_fact_tells_whether_somebody_wrote_search_words_for_it(memory) -> None:
    memory.add_fact(FUSES, search_words=WORDS)
    memory.add_fact("The router is in the study", search_words="")
    memory.add_fact("The vet is Doctor Keller")

    assert [fact.search_words for fact in memory.get_facts()] == [None, "", WORDS]


def test_search_words_survive_an_export_and_an_import(memory, tmp_path) -> None:
    memory.add_fact(FUSES, search_words=WORDS)
    other = Memory(tmp_path / "other.db", ("en",))
    other.load_lines(list(memory.export()))

    assert get_texts(other.recall("blackout")) == [FUSES]
    other.close()


def test_search_words_are_indexed_again_in_other_languages(memory, path) -> None:
    memory.add_fact(FUSES, search_words="Stromausfälle")
    memory.close()

    again = Memory(path, ("de",))
    while again.reindex():
        pass

    assert get_texts(again.recall("Stromausfall")) == [FUSES]
    again.close()
