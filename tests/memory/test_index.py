"""The index of the words: how many parts a search has to look into."""

import sqlite3

import pytest

from custom_components.windowed_conversation.memory import Memory

from .content import NOW, turn


def segments(path) -> int:
    """Return of how many segments the index of turns consists."""
    with sqlite3.connect(path) as connection:
        count: int = connection.execute("SELECT count(DISTINCT segid) FROM turn_words_idx").fetchone()[0]
    connection.close()
    return count


@pytest.fixture
def many(memory: Memory) -> Memory:
    """Return a memory of turns that were stored one by one."""
    for number in range(300):
        words = " ".join(f"w{number * 40 + each}" for each in range(40))
        memory.add_turn(turn(f"the bins go out on day {number}", words, at=NOW + number))
    return memory


def test_the_daily_work_merges_the_index(many: Memory, path) -> None:
    assert segments(path) > 1

    many.expire({}, 0.0)

    assert segments(path) == 1


def test_a_merged_index_finds_the_same(many: Memory) -> None:
    before = many.recall("bins on day 7")

    many.expire({}, 0.0)

    assert many.recall("bins on day 7") == before


def test_a_full_disk_fails_the_merge_alone(many: Memory, path) -> None:
    full = many._database._writer.execute("PRAGMA page_count").fetchone()[0]
    many._database._writer.execute(f"PRAGMA max_page_count = {full}")

    assert many.expire({}, 0.0).erased
    assert segments(path) > 1
