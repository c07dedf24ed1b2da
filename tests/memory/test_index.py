"""Tests for merging the index, which reduces the number of segments that a search reads."""

import sqlite3

import pytest

from custom_components.windowed_conversation.memory import Memory, index

from .content import NOW, turn


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
