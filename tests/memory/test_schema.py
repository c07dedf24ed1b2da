"""Tests for rebuilding the index after languages or stemmers change."""

from custom_components.windowed_conversation.memory import Memory, words

from .content import NOW, indexed, stored, turn


def filled(path, languages):
    memory = Memory(path, languages)
    old = memory.add_fact("Bins: Mittwochs", at=NOW)
    memory.add_fact("Bins: Freitags", at=NOW + 1, replaces=old)
    for number in range(9):
        memory.add_turn(turn(f"Die Katzen {number}"))
    memory.close()


def test_a_change_of_languages_indexes_anew_in_steps(path) -> None:
    filled(path, ("en",))
    memory = Memory(path, ("en", "de"))

    steps = []
    while memory.reindex(4):
        steps.append(memory.statistics().unindexed)

    assert steps == [9, 5, 1, 0]
    assert indexed(path) == stored(path, ("en", "de"))
    memory.close()


def test_what_is_written_and_forgotten_meanwhile_agrees(path) -> None:
    filled(path, ("en",))
    memory = Memory(path, ("en", "de"))
    memory.reindex(1)
    memory.reindex(4)
    memory.add_turn(turn("Die Hunde"))
    memory.forget(ids=[("turn", 1), ("turn", 8)])

    assert memory.recall("Hund")[0].text == "Die Hunde"
    assert indexed(path) == stored(path, ("en", "de"))
    memory.close()


def test_the_newest_are_found_first(path) -> None:
    filled(path, ("en",))
    memory = Memory(path, ("en", "de"))
    for _ in range(3):
        memory.reindex(1)

    assert memory.recall("Katze")[0].text == "Die Katzen 8"
    memory.close()


def test_what_is_not_indexed_yet_is_forgotten_by_its_words(path) -> None:
    filled(path, ("en",))
    memory = Memory(path, ("en", "de"))

    assert len(memory.forget(query="Katze").turns) == 9
    memory.close()


def test_the_same_languages_keep_the_index(path) -> None:
    filled(path, ("en", "de"))
    memory = Memory(path, ("de-CH", "en-GB"))

    assert memory.statistics().unindexed == 0
    memory.close()


def test_another_stemmer_indexes_anew(path, monkeypatch) -> None:
    filled(path, ("en",))
    monkeypatch.setattr(words, "_read_stemmer_version", lambda: "another")

    memory = Memory(path, ("en",))

    assert memory.statistics().unindexed == 11
    memory.close()
