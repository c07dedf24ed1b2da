"""Tests for the database file: permissions, a killed process, and reasons why it cannot be used."""

from concurrent.futures import ThreadPoolExecutor
import errno
import sqlite3
import stat

import pytest

from custom_components.windowed_conversation.memory.core import Memory, index
from custom_components.windowed_conversation.store import (
    Schema,
    StoreUnavailable,
    delete_file,
    file,
    get_damaged_path,
    get_disk_bytes,
)
from tests.memory.content import indexed, stored, turn

from .files import LANGUAGES, opened, rows


def get_open_failure(path):
    with pytest.raises(StoreUnavailable) as refused:
        opened(path)
    return refused.value.reason


def test_only_its_owner_may_read_it(memory, path) -> None:
    memory.add_fact("Tea at five")

    modes = {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert modes == {0o600}


def test_a_file_that_others_could_read_becomes_private(path) -> None:
    path.touch(mode=0o644)

    opened(path).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_was_stored_is_there_after_it_was_closed(path) -> None:
    first = Memory(str(path), LANGUAGES)
    first.add_fact("Tea at five")
    first.close()
    second = opened(path)

    assert [found.text for found in second.recall("tea")] == ["Tea at five"]
    assert [each.name for each in path.parent.iterdir() if each.stat().st_size == 0] in [[], ["memory.db-wal"]]
    second.close()


def test_a_copy_of_the_one_file_has_everything_after_a_checkpoint(memory, path, tmp_path) -> None:
    memory.add_fact("Tea at five")
    assert memory.checkpoint()
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "memory.db"
    copy.write_bytes(path.read_bytes())

    restored = opened(copy)

    assert restored.get_facts() == memory.get_facts()
    restored.close()


def test_a_damaged_index_is_made_anew(memory, path) -> None:
    memory.add_fact("Tea at five")
    beside = sqlite3.connect(path)
    beside.execute("UPDATE fact_words_data SET block = zeroblob(5) WHERE id > 10")
    beside.commit()
    beside.close()

    with pytest.raises(StoreUnavailable) as refused:
        memory.recall("tea")
    assert refused.value.reason == "index"
    assert memory.reindex()

    assert [found.text for found in memory.recall("tea")] == ["Tea at five"]


def test_what_was_committed_survives_a_power_cut(memory) -> None:
    assert memory.database._write_connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_room_that_cannot_be_set_up_changes_nothing(memory, path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        Memory(path, LANGUAGES, rooms=(Schema("CREATE TABLE pantry (bread TEXT); CREATE TABLE pantry (butter TEXT)"),))

    assert rows(path, "SELECT name FROM sqlite_schema WHERE name = 'pantry'") == []


def test_a_room_that_is_new_finds_the_file_of_the_others_as_it_was(memory, path) -> None:
    memory.add_fact("Tea at five")
    memory.close()

    again = Memory(path, LANGUAGES, rooms=(Schema("CREATE TABLE IF NOT EXISTS pantry (bread TEXT)"),))

    assert [fact.text for fact in again.get_facts()] == ["Tea at five"]
    assert rows(path, "SELECT * FROM pantry") == []
    again.close()


def test_nothing_is_left_of_a_file_that_is_deleted(memory, path) -> None:
    memory.add_fact("Tea at five")
    assert get_disk_bytes(path) > 0
    memory.close()
    get_damaged_path(path).write_bytes(b"tea")

    delete_file(path)

    assert list(path.parent.iterdir()) == []


def test_without_fts5_it_says_so(path, monkeypatch) -> None:
    monkeypatch.setattr(index, "_PROBE_STATEMENTS", ("CREATE VIRTUAL TABLE temp.probe USING fts0(words)",))

    assert get_open_failure(path) == "no_fts5"


def test_a_folder_that_is_not_there_is_away(tmp_path) -> None:
    assert get_open_failure(tmp_path / "nowhere" / "memory.db") == "away"


def test_what_another_process_writes_to_for_long_is_locked(path, monkeypatch) -> None:
    monkeypatch.setattr(file, "_LOCK_TIMEOUT_SECONDS", 0.0)
    memory = opened(path)
    memory.add_fact("Tea at five")
    beside = sqlite3.connect(path, isolation_level=None)
    beside.execute("BEGIN EXCLUSIVE")

    with pytest.raises(StoreUnavailable) as refused:
        memory.add_fact("Tea at six")

    assert refused.value.reason == "locked"
    assert len(memory.recall("tea")) == 1
    beside.close()
    memory.add_fact("Tea at six")
    memory.close()


def test_a_full_disk_leaves_what_was_stored(memory) -> None:
    memory.add_fact("Tea at five")
    pages = memory.database._write_connection.execute("PRAGMA page_count").fetchone()[0]
    memory.database._write_connection.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreUnavailable) as refused:
        memory.load_lines(f'{{"kind": "forgotten", "of": "turn", "id": {row}, "at": 1.5}}' for row in range(1, 10_000))

    assert refused.value.reason == "full"
    assert len(memory.get_facts()) == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EROFS, ""), "read_only"),
        (OSError(errno.EACCES, ""), "read_only"),
        (OSError(errno.ENOSPC, ""), "full"),
        (OSError(errno.EIO, ""), "away"),
        (ValueError(), None),
        (sqlite3.ProgrammingError(), None),
    ],
)
def test_an_error_says_why(error, reason) -> None:
    assert file.find_reason(error) == reason


def test_many_threads_write_and_read_at_once(memory, path) -> None:
    def use(number):
        memory.add_turn(turn(f"bread {number}", conversation=f"c{number % 3}"))
        memory.add_fact(f"Bread {number % 7}")
        return len(memory.recall("bread", limit=5))

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(use, range(120)))

    assert min(found) >= 1
    assert indexed(path) == stored(path, LANGUAGES)


def test_what_was_closed_says_so(memory) -> None:
    memory.close()
    memory.close()

    with pytest.raises(StoreUnavailable) as refused:
        memory.recall("tea")

    assert refused.value.reason == "closed"
