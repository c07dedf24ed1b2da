"""Tests for values that are stored by owner and name."""

import pytest

from custom_components.windowed_conversation.store import delete_values, list_value_owners, read_value, write_value
from tests.memory.content import read_all_files

from .files import opened


def read(memory, owner="a1", name="totals"):
    with memory.database.read_transaction() as connection:
        return read_value(connection, owner, name)


def write(memory, value, owner="a1", name="totals"):
    with memory.database.write_transaction() as connection:
        write_value(connection, owner, name, value)


@pytest.mark.parametrize("value", [0, 1.5, "Ü", None, [1, {"a": True}]])
def test_a_value_is_read_as_it_was_written_also_by_the_next_one_who_opens_the_file(memory, path, value) -> None:
    write(memory, 1)
    write(memory, value)
    memory.close()

    again = opened(path)

    assert read(again) == value
    again.close()


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["cut off", "too deep"])
def test_nothing_is_read_where_there_is_nothing_that_can_be_read(memory, text) -> None:
    write(memory, 1)

    with memory.database.write_transaction() as connection:
        connection.execute("UPDATE value SET value = ?", (text,))

    assert read(memory) is None


def test_values_go_with_their_owner(memory) -> None:
    for owner in ("a1", "a2", "a3"):
        write(memory, 1, owner)

    with memory.database.write_transaction() as connection:
        delete_values(connection, {"a1", "a3", "nobody"})

    assert (read(memory, "a1"), read(memory, "a2"), read(memory, "a2", "costs")) == (None, 1, None)
    with memory.database.read_transaction() as connection:
        assert list_value_owners(connection) == {"a2"}


def test_nothing_of_a_deleted_value_is_left_in_the_file(memory, path) -> None:
    write(memory, "QUOKKA")
    write(memory, "wombat", name="another")
    assert memory.database.checkpoint()
    assert b"QUOKKA" in read_all_files(path)

    with memory.database.write_transaction() as connection:
        connection.execute("DELETE FROM value WHERE name = 'totals'")
    assert memory.database.checkpoint()

    assert b"QUOKKA" not in read_all_files(path)
