"""Tests for search words: other words by which a fact is found, which are no part of it."""

import json

import pytest

from custom_components.windowed_conversation.memory import Memory, RecallQuery

from .content import get_texts, read_all_files

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
