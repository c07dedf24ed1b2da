"""Tests for an unused file: it is deleted at the scheduled time, unless the deletion is cancelled."""

import pytest

from custom_components.windowed_conversation.store import (
    delete_overdue,
    list_value_owners,
    schedule_deletion,
)

from .test_values import write


@pytest.mark.parametrize(("now", "is_deleted"), [(99.9, False), (100.0, True), (1e9, True)])
def test_a_file_is_deleted_when_its_time_has_come(memory, path, now: float, is_deleted: bool) -> None:
    schedule_deletion(memory.database, 100.0)
    memory.close()

    assert delete_overdue(path, now) == is_deleted
    assert path.exists() != is_deleted


def test_a_file_that_is_in_use_again_is_kept(memory, path) -> None:
    schedule_deletion(memory.database, 100.0)

    schedule_deletion(memory.database, None)

    memory.close()
    assert not delete_overdue(path, 1e9)


def test_what_the_file_says_of_itself_has_no_owner(memory) -> None:
    schedule_deletion(memory.database, 100.0)

    with memory.database.read_transaction() as connection:
        assert list_value_owners(connection) == set()


@pytest.mark.parametrize("rotten", ["seven", '"soon"', '{"until": 1.0}'])
def test_a_file_of_which_nobody_knows_until_when_is_kept(memory, path, rotten: str) -> None:
    write(memory, rotten, "", "deletion")
    memory.close()

    assert not delete_overdue(path, 1e9)


def test_there_is_nothing_to_do_without_a_file_that_can_be_read(path) -> None:
    assert not delete_overdue(path, 1e9)
    assert not path.exists()

    path.write_bytes(b"no database" * 1000)
    assert not delete_overdue(path, 1e9)
    assert path.exists()
