"""What was forgotten stays forgotten when an older copy of the file replaces the current one."""

from dataclasses import replace

import pytest

from custom_components.windowed_conversation.memory import Memory, MemoryUnavailable, Summary, file

from .content import NOW, file_bytes, indexed, turn


def reopened(path, copy):
    """Return the memory after a copy has taken the place of its file."""
    path.write_bytes(copy)
    return Memory(path, ("en", "de"))


def test_an_older_copy_of_the_file_brings_nothing_back(memory, path) -> None:
    memory.add_fact("The safe code is quokka")
    memory.add_turn(turn("The safe code is quokka", "I see."))
    memory.add_turn(turn("The wombat is asleep", "Good."))
    memory.checkpoint()
    copy = path.read_bytes()
    memory.forget(query="quokka")
    memory.close()

    again = reopened(path, copy)

    assert [found.id for found in again.recall("quokka wombat")] == [2]
    again.close()
    assert b"quokka" not in file_bytes(path)
    assert {place[0] for place in indexed(path)} == {"turn"}


def test_a_summary_that_another_has_replaced_does_not_come_back_with_an_older_copy(memory, path) -> None:
    memory.add_turn(turn("The safe code is quokka", "I see."))
    first = Summary("c1", NOW - 10, ("The safe code is quokka",), "They spoke of a quokka.")
    memory.add([first])
    memory.checkpoint()
    copy = path.read_bytes()
    memory.add_turn(turn("The wombat is asleep", "Good."))
    later = replace(first, said=("The wombat is asleep",), text="A quokka, a wombat.", earlier=first.text)
    memory.add([later])
    memory.forget(ids=[("turn", 1)])
    memory.close()

    again = reopened(path, copy)

    assert again.recall("quokka") == []
    again.close()
    assert b"quokka" not in file_bytes(path)


def test_what_was_told_again_afterwards_stays(memory, path) -> None:
    memory.forget(ids=[("fact", memory.add_fact("The safe code is quokka"))])
    memory.add_fact("The safe code is quokka")
    memory.close()

    again = Memory(path, ("en",))

    assert [fact.text for fact in again.facts()] == ["The safe code is quokka"]
    again.close()


def test_a_list_that_was_cut_off_is_read_as_far_as_it_is_whole(memory, path) -> None:
    memory.forget(ids=[("fact", memory.add_fact("The safe code is quokka"))])
    memory.close()
    with file.forgotten(path).open("a") as written:
        written.write("\nturn 1 ")

    Memory(path, ("en", "de")).close()


def test_a_list_that_cannot_be_read_turns_memory_off(memory, path) -> None:
    memory.close()
    file.forgotten(path).mkdir()

    with pytest.raises(MemoryUnavailable):
        Memory(path, ("en", "de"))


def test_the_list_is_for_its_owner_alone_and_has_no_words(memory, path) -> None:
    memory.forget(ids=[("fact", memory.add_fact("The safe code is quokka"))])

    assert file.forgotten(path).stat().st_mode & 0o777 == 0o600
    assert file.forgotten(path).read_text().startswith("\nfact 1 1")
