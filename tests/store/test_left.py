"""Tests for an unused file: it is deleted at the scheduled time, unless the deletion is cancelled."""

import pytest

from custom_components.windowed_conversation.store import (
    cancel_deletion,
    cancel_file_deletion,
    delete_overdue,
    list_value_owners,
    schedule_deletion,
)

from .files import opened
from .test_values import write


@pytest.mark.parametrize(("now", "is_deleted"), [(99.9, False), (100.0, True), (1e9, True)])
def test_a_file_is_deleted_when_its_time_has_come(memory, path, now: float, is_deleted: bool) -> None:
    schedule_deletion(memory.database, 100.0, {})
    memory.close()

    assert delete_overdue(path, now) == is_deleted
    assert path.exists() != is_deleted


def test_a_file_that_is_in_use_again_is_kept(memory, path) -> None:
    schedule_deletion(memory.database, 100.0, {"a1": 30})

    assert cancel_deletion(memory.database) == {"a1": 30}

    memory.close()
    assert not delete_overdue(path, 1e9)


def test_a_file_that_somebody_keeps_is_kept_and_its_days_as_well(memory, path) -> None:
    schedule_deletion(memory.database, 100.0, {"a1": 30})
    memory.close()

    cancel_file_deletion(path)

    assert not delete_overdue(path, 1e9)
    again = opened(path)
    assert cancel_deletion(again.database) == {"a1": 30}
    again.close()


def test_days_of_agents_that_were_gone_before_stay(memory) -> None:
    schedule_deletion(memory.database, 100.0, {"a1": 30, "a2": 1})
    schedule_deletion(memory.database, 200.0, {"a2": 90})

    assert cancel_deletion(memory.database) == {"a1": 30, "a2": 90}


def test_what_the_file_says_of_itself_has_no_owner(memory) -> None:
    schedule_deletion(memory.database, 100.0, {})

    with memory.database.read_transaction() as connection:
        assert list_value_owners(connection) == set()


@pytest.mark.parametrize("rotten", ["7", '{"until": "soon", "days": {}}', '{"until": 1.0}'])
def test_a_file_of_which_nobody_knows_until_when_is_kept(memory, path, rotten: str) -> None:
    write(memory, rotten, "", "deletion")
    memory.close()

    assert not delete_overdue(path, 1e9)


def test_there_is_nothing_to_do_without_a_file_that_can_be_read(path) -> None:
    cancel_file_deletion(path)
    assert not delete_overdue(path, 1e9)
    assert not path.exists()

    path.write_bytes(b"no database" * 1000)
    assert not delete_overdue(path, 1e9)
    assert path.exists()
