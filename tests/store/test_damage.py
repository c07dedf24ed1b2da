"""Tests for damaged files and copies: readable rows are used, and the others are set aside."""

from collections.abc import Callable
from contextlib import closing
import itertools
import math
import random
import sqlite3
from traceback import format_exception

import pytest

from custom_components.windowed_conversation.memory.core import PastSummary
from custom_components.windowed_conversation.record import RecordedTurns, TurnListQuery, expire_turns
from custom_components.windowed_conversation.store import (
    StoreUnavailable,
    delete_damaged_file,
    delete_overdue,
    file,
    get_damaged_path,
    read_value,
    schedule_deletion,
)
from tests.memory.content import NOW, get_texts, indexed, insert_summary, read_all_files, stored, turn
from tests.record.recorded import request, whole, writes

from .files import LANGUAGES, add_conversation, add_value, opened, overwrite_page, replace_bytes, rows

# Each table with texts, and a text that occurs only there in the file. It is in upper case, because indexes are in
# lower case.
TEXTS = {
    "fact": "FACT QUOKKA",
    "turn": "TURN QUOKKA",
    "summary": "SUMMARY QUOKKA",
    "record_words": "WORDS QUOKKA",
    "record_content": "CONTENT QUOKKA",
    "exchange": "EXCHANGE QUOKKA",
}


@pytest.fixture
def full(path):
    """Return the path of a closed file with two rows in each table of `TEXTS`."""
    memory = opened(path)
    for number, name in enumerate(("QUOKKA", "WOMBAT")):
        memory.add_fact(f"FACT {name}")
        memory.add_turn(turn(f"TURN {name}"))
        insert_summary(memory, PastSummary("c1", NOW, NOW, f"SUMMARY {name}"))
        memory.add(writes(whole(number, f"WORDS {name}", attempts=[request(f"CONTENT {name}")])))
    add_conversation(memory, "EXCHANGE QUOKKA", "EXCHANGE WOMBAT")
    memory.close()
    return path


def reindexed(path):
    """Return a memory opened from the file, with its index rebuilt as the writer thread does."""
    memory = opened(path)
    while memory.reindex():
        pass
    return memory


def read_tables(path):
    return {table: rows(path, f"SELECT rowid, * FROM {table}") for table in TEXTS}


def broken(path):
    """Return the reason why opening the file fails, and check that the file is set aside."""
    with pytest.raises(StoreUnavailable) as refused:
        opened(path)
    assert refused.value.damaged_path == get_damaged_path(path)
    return refused.value.reason


@pytest.mark.parametrize("byte", [b"R", b"\xff"], ids=["another letter", "no letter"])
@pytest.mark.parametrize("table", TEXTS)
def test_one_flipped_byte_sets_aside_the_one_row(full, table, byte) -> None:
    before, text = read_tables(full), TEXTS[table].encode()
    replace_bytes(full, text, text.replace(b"Q", byte))

    memory = reindexed(full)

    assert memory.rows_set_aside == 1
    memory.close()
    lost = {name: set(before[name]).difference(kept) for name, kept in read_tables(full).items()}
    assert {name: len(each) for name, each in lost.items() if each} == {table: 1}
    assert indexed(full) == stored(full, LANGUAGES)
    ((of, content),) = rows(full, "SELECT of, content FROM set_aside")
    assert (of.decode(), byte + b"UOKKA" in content) == (table, True)


@pytest.mark.parametrize("table", TEXTS)
def test_what_is_left_beside_a_row_that_was_set_aside_is_still_read(full, table) -> None:
    replace_bytes(full, TEXTS[table].encode(), TEXTS[table].replace("Q", "R").encode())

    memory = reindexed(full)

    assert {"FACT WOMBAT", "TURN WOMBAT", "SUMMARY WOMBAT"}.issubset(get_texts(memory.recall("wombat")))
    turns = RecordedTurns(memory.database)
    assert None not in [turns.get_turn(f"turn-000{number}") for number in range(2)]
    assert len(list(turns.export(TurnListQuery()))) == 2
    assert memory.forget(query="wombat").is_erased
    memory.close()


def test_letters_that_are_none_stop_nothing_and_are_in_no_error(full, caplog) -> None:
    memory = opened(full)
    with closing(sqlite3.connect(full)) as beside:
        beside.create_function("text_sum", -1, file.calculate_checksum, deterministic=True)
        beside.execute("UPDATE fact SET text = CAST(x'ff' || text AS TEXT)")
        beside.execute("UPDATE record_sent SET messages = '[QUOKKA' WHERE turn = 2")
        beside.commit()

    with closing(opened(full)) as again:
        assert {fact.text for fact in again.get_facts()} == {"\ufffdFACT QUOKKA", "\ufffdFACT WOMBAT"}
    assert list(memory.export())
    assert (damaged := RecordedTurns(memory.database).get_turn("turn-0001")) is not None
    assert [each["sent"]["messages"] for each in damaged["attempts"]] == [[]]
    with memory.database.write_transaction() as connection:
        expire_turns(connection, {}, 0.0, NOW + 0.5)
    assert memory.forget_expired({}, 0.0).is_erased
    assert memory.forget(query="turn quokka").is_erased
    with pytest.raises(StoreUnavailable) as refused, memory.database.read_transaction() as connection:
        connection.execute("SELECT json_extract(text, '$[QUOKKA') FROM fact").fetchall()
    assert "QUOKKA'" not in "".join(format_exception(refused.value.__class__, refused.value, None))
    assert "QUOKKA" not in caplog.text
    memory.close()


def test_forgetting_empties_what_was_set_aside_and_deletes_the_damaged_file_also_if_it_finds_nothing(full) -> None:
    replace_bytes(full, b"FACT QUOKKA", b"FACT ZUOKKA")
    get_damaged_path(full).write_bytes(b"ZUOKKA")
    memory = opened(full)
    memory.forget(before=NOW - 1)
    assert memory.rows_set_aside == 1
    assert get_damaged_path(full).exists()

    assert memory.forget(query="platypus").is_erased

    assert memory.rows_set_aside == 0
    assert b"ZUOKKA" not in read_all_files(full)
    memory.close()


def test_a_damaged_file_that_cannot_be_deleted_is_not_erased(memory, path) -> None:
    (get_damaged_path(path) / "in the way").mkdir(parents=True)

    assert not memory.forget(query="platypus").is_erased
    assert not delete_damaged_file(path)


@pytest.fixture
def many(path):
    """Return the path of a closed file with many pages. In each table, one row in the middle contains MIDDLE."""
    memory = opened(path)
    names = {number: f"{'MIDDLE' if number == 200 else 'bread'} {'crumb ' * 30}" for number in range(400)}
    memory.add(turn(f"{name}TURN") for name in names.values())
    add_conversation(memory, *(f"{name}EXCHANGE" for name in names.values()))
    for number, name in names.items():
        add_value(memory, f"{number:03}", f"{name}VALUE")
    memory.close()
    return path


PLACES = {
    "turn": ("SELECT id FROM turn", "TURN"),
    "exchange": ("SELECT id & 0xffff FROM exchange", "EXCHANGE"),
    "value": ("SELECT CAST(name AS INTEGER) + 1 FROM value", "VALUE"),
}


def places(path, table):
    return [place for (place,) in rows(path, PLACES[table][0])]


def break_middle(path, table):
    text = f"MIDDLE {'crumb ' * 30}{PLACES[table][1]}".encode()
    overwrite_page(path, text)


@pytest.mark.parametrize("table", PLACES)
def test_rows_before_and_after_a_damaged_page_are_taken_over(many, table) -> None:
    break_middle(many, table)
    assert broken(many) == "damaged"

    memory = opened(many)

    assert memory.database.is_new
    memory.close()
    kept = places(many, table)
    assert (min(kept), max(kept), 201 in kept) == (1, 400, False)
    assert len(kept) > 350
    assert {len(places(many, other)) for other in PLACES if other != table} == {400}


def test_what_was_taken_over_is_found_by_its_words(many) -> None:
    break_middle(many, "turn")
    broken(many)

    memory = reindexed(many)

    assert memory.recall("bread")
    memory.close()
    assert indexed(many) == stored(many, LANGUAGES)


def test_a_file_that_is_damaged_again_loses_only_what_is_damaged_then(many) -> None:
    for table in PLACES:
        break_middle(many, table)
        assert broken(many) == "damaged"
        opened(many).close()

    assert min(len(places(many, table)) for table in PLACES) > 350


def test_what_was_set_aside_when_it_was_killed_is_taken_over_at_the_next_opening(many) -> None:
    break_middle(many, "turn")
    many.replace(get_damaged_path(many))

    memory = opened(many)

    assert memory.statistics().turns > 350
    memory.close()


def test_rows_that_are_not_what_was_written_are_not_taken_over(full) -> None:
    before = read_tables(full)
    for text in TEXTS.values():
        replace_bytes(full, text.encode(), text.replace("Q", "R").encode())
    full.replace(get_damaged_path(full))

    opened(full).close()

    after = read_tables(full)
    assert {table: len(before[table]) - len(after[table]) for table in TEXTS} == dict.fromkeys(TEXTS, 1)


def test_ids_are_not_given_again_by_the_file_that_takes_over(many) -> None:
    memory = opened(many)
    memory.forget(ids=[("turn", 400)])
    memory.close()
    break_middle(many, "exchange")
    broken(many)

    memory = opened(many)

    assert memory.add_turn(turn("bread")) == 401
    assert len(memory.get_tombstones()) == 1
    memory.close()


def test_values_are_taken_over(many) -> None:
    many.replace(get_damaged_path(many))

    memory = opened(many)

    with memory.database.read_transaction() as connection:
        assert str(read_value(connection, "a1", "200")).startswith("MIDDLE")
    memory.close()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 1_000, b"SQLite format 3\x00" + b"\xff" * 8_000])
def test_nothing_is_taken_over_where_nothing_can_be_read(path, content) -> None:
    get_damaged_path(path).write_bytes(content)

    memory = opened(path)

    assert (memory.statistics().turns, memory.rows_set_aside) == (0, 0)
    memory.close()


def test_what_is_beside_an_earlier_damaged_file_is_not_beside_the_next_one(path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(f"{path.name}.damaged{end}").write_bytes(b"earlier")
    path.write_bytes(b"no database at all" * 1_000)

    broken(path)

    assert [each.name for each in path.parent.iterdir()] == ["memory.db.damaged"]


@pytest.mark.parametrize("table", ["turn_words_data", "fact_words_idx"])
def test_a_damaged_index_is_no_damaged_file(full, table) -> None:
    with closing(sqlite3.connect(full)) as beside:
        beside.execute(f"DELETE FROM {table} WHERE rowid > 10" if table.endswith("data") else f"DELETE FROM {table}")
        beside.commit()

    memory = reindexed(full)

    assert {"FACT WOMBAT", "TURN WOMBAT", "SUMMARY WOMBAT"}.issubset(get_texts(memory.recall("wombat")))
    assert not get_damaged_path(full).exists()
    memory.close()


def fail(connection):
    connection.execute("no statement")


def test_an_index_that_cannot_be_made_anew_is_a_damaged_file(full) -> None:
    memory = opened(full)
    failure = sqlite3.DatabaseError()
    failure.sqlite_errorcode = sqlite3.SQLITE_CORRUPT_VTAB
    memory.database._schemas = (file.Schema("", mend=fail),)

    with pytest.raises(StoreUnavailable) as refused, memory.database.read_transaction():
        raise failure

    assert refused.value.reason == "damaged"
    assert get_damaged_path(full).exists()


def test_who_finds_the_damage_second_sets_nothing_aside(memory, path) -> None:
    failure = sqlite3.DatabaseError()
    failure.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    memory.close()

    with pytest.raises(StoreUnavailable) as refused, memory.database.read_transaction():
        raise failure

    assert refused.value.reason == "closed"
    assert path.exists()


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
    [(b"DELETE ON fact", b"DELETE ON \xffact"), (b"private INTEGER", b"privets INTEGER")],
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
    damage_schema(path, b"DELETE ON fact", b"DELETE ON \xffact")

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
        "custom_components.windowed_conversation.memory.core.index._PROBE_STATEMENTS",
        ("CREATE VIRTUAL TABLE temp.probe USING fts0(words)",),
    )

    assert use(path) == "no_fts5"
    assert path.exists()
