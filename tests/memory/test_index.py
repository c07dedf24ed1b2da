"""Tests for the index: merging its segments, and indexing anew after a change of the languages or the stemmer."""

import sqlite3

import pytest

from custom_components.windowed_conversation.memory.core import Memory, index, words

from .content import NOW, indexed, stored, turn


def segments(path) -> int:
    """Return the number of segments in the index of turns."""
    with sqlite3.connect(path) as connection:
        count: int = connection.execute("SELECT count(DISTINCT segid) FROM turn_words_idx").fetchone()[0]
    connection.close()
    return count


@pytest.fixture
def many(memory: Memory) -> Memory:
    """Return a memory with many turns that were stored one at a time."""
    for number in range(300):
        words = " ".join(f"w{number * 40 + each}" for each in range(40))
        memory.add_turn(turn(f"the bins go out on day {number}", words, at=NOW + number))
    return memory


def merge(memory: Memory) -> int:
    """Merge the index as the writer thread does, and return the number of steps."""
    steps, may_go_on = 1, memory.merge(anew=True)
    while may_go_on:
        steps, may_go_on = steps + 1, memory.merge(anew=False)
    return steps


def test_the_index_is_merged_in_steps(many: Memory, path, monkeypatch) -> None:
    monkeypatch.setattr(index, "_PAGES_PER_MERGE", 3)
    assert segments(path) > 1

    assert merge(many) > 2

    assert segments(path) == 1
    assert merge(many) == 1


def test_a_merged_index_finds_the_same(many: Memory) -> None:
    before = many.recall("bins on day 7")

    merge(many)

    assert many.recall("bins on day 7") == before


def test_a_full_disk_fails_the_merge_alone(many: Memory, path) -> None:
    full = many.database._write_connection.execute("PRAGMA page_count").fetchone()[0]
    many.database._write_connection.execute(f"PRAGMA max_page_count = {full}")

    assert merge(many) == 1
    assert segments(path) > 1


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
