"""Tests with many damaged copies of one file: whatever is damaged, the store works after the next opening."""

from collections.abc import Callable
from contextlib import closing
import itertools
import math
import random

import pytest

from custom_components.windowed_conversation.memory import PastSummary
from custom_components.windowed_conversation.store import (
    StoreUnavailable,
    delete_overdue,
    schedule_deletion,
)
from tests.memory.content import NOW, insert_summary, turn
from tests.record.recorded import request, whole, writes

from .files import add_conversation, add_value, opened

COPIES = 60
# The bytes of SQLite's header with the format version. A newer file is refused, and never set aside.
VERSION = slice(60, 64)
PAGE_SIZE = slice(16, 18)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """Return the bytes of a file with ten rows in each table."""
    path = tmp_path_factory.mktemp("whole") / "memory.db"
    memory = opened(path)
    for number in range(10):
        memory.add_fact(f"FACT {number} bread")
        memory.add_turn(turn(f"TURN {number} {'crumb ' * 20}"))
        insert_summary(memory, PastSummary("c1", NOW, NOW, f"SUMMARY {number}"))
        memory.add(writes(whole(number, f"WORDS {number}", attempts=[request(f"CONTENT {number}")])))
        add_value(memory, f"{number}", f"VALUE {number}")
    add_conversation(memory, *(f"EXCHANGE {number}" for number in range(10)))
    memory.close()
    return path.read_bytes()


def pages(content: bytearray) -> list[slice]:
    size = int.from_bytes(content[PAGE_SIZE])
    return [slice(start, start + size) for start in range(0, len(content), size)]


def change_bytes(number: int) -> Callable[[bytearray, random.Random], None]:
    def damage(content: bytearray, chance: random.Random) -> None:
        for place in chance.choices(range(len(content)), k=number):
            content[place] = chance.randrange(256)

    return damage


def empty_page(content: bytearray, chance: random.Random) -> None:
    page = chance.choice(pages(content))
    content[page] = bytes(page.stop - page.start)


def swap_pages(content: bytearray, chance: random.Random) -> None:
    first, second = chance.sample(pages(content), 2)
    content[first], content[second] = content[second], content[first]


def flip_header_bit(content: bytearray, chance: random.Random) -> None:
    content[chance.randrange(100)] ^= 1 << chance.randrange(8)


DAMAGES = {
    "3 bytes": change_bytes(3),
    "30 bytes": change_bytes(30),
    "400 bytes": change_bytes(400),
    "an empty page": empty_page,
    "two swapped pages": swap_pages,
    "a bit of the header": flip_header_bit,
}


def use(path) -> str:
    """Open the file as the writer thread does, read and write all rooms, and return the reason if that fails."""
    try:
        delete_overdue(path, 0.0)
        with closing(opened(path)) as memory:
            schedule_deletion(memory.database, None)
            memory.statistics()
            list(memory.export())
            list(itertools.takewhile(bool, iter(memory.reindex, None)))
            memory.recall("bread crumb")
            memory.add_turn(turn("another loaf"))
    except StoreUnavailable as error:
        return error.reason
    return "works"


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_works_after_the_second_opening_at_the_latest(content, tmp_path, damage) -> None:
    outcomes = {}
    for number in range(COPIES):
        damaged = bytearray(content)
        DAMAGES[damage](damaged, random.Random(f"{damage} {number}"))
        damaged[VERSION] = content[VERSION]
        path = tmp_path / f"{number}.db"
        path.write_bytes(damaged)
        outcomes[number] = any(use(path) == "works" for _ in range(2))

    assert [number for number, works in outcomes.items() if not works] == []


def damage_schema(path, before: bytes, after: bytes) -> None:
    """Replace bytes of the SQL that created a table."""
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"INSERT ON fact", b"INSERT ON \xffact"), (b"private INTEGER", b"privets INTEGER")],
    ids=["not decodable", "another name"],
)
def test_damaged_schema_is_damage_whatever_sqlite_reports(content, tmp_path, before, after) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    damage_schema(path, before, after)

    assert (use(path), use(path)) == ("damaged", "works")


def test_unreadable_file_is_not_overdue(content, tmp_path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    damage_schema(path, b"INSERT ON fact", b"INSERT ON \xffact")

    assert not delete_overdue(path, math.inf)
    assert path.exists()


def test_refused_statement_on_an_intact_schema_is_no_damage(content, tmp_path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)

    with (
        closing(opened(path)) as memory,
        pytest.raises(StoreUnavailable) as refused,
        memory.database.read_transaction() as connection,
    ):
        connection.execute("SELECT nothing FROM nowhere")

    assert refused.value.reason == "fault"
    assert path.exists()


def test_missing_fts5_is_not_damage_of_an_existing_file(content, tmp_path, monkeypatch) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    monkeypatch.setattr(
        "custom_components.windowed_conversation.memory.index._PROBE_STATEMENTS",
        ("CREATE VIRTUAL TABLE temp.probe USING fts0(words)",),
    )

    assert use(path) == "no_fts5"
    assert path.exists()
