"""Tests for the marks of turns that are still to be read: which turns they return, once, and when they are deleted."""

from dataclasses import replace
from functools import partial
import json

import pytest

from custom_components.windowed_conversation.memory.core import Memory, PastTurn, rows, take_ended_turns

from .content import NOW, turn

LATER = NOW + 1_000.0


def unread(said, at=NOW, *, person="anna", conversation="c1", agent="a1", language="en"):
    """Return a turn that is to be read."""
    whose = PastTurn(conversation, at, said, f"Answer to {said}", agent, person)
    return replace(whose, unread_language=language)


def take_all(memory, agent="a1", before=LATER):
    """Return the texts of all readings, in their order."""
    readings = iter(partial(take_ended_turns, memory, agent, before), {})
    return [[each.said for each in reading.values()] for reading in readings]


def count_marks(memory):
    with memory.database.read_transaction() as connection:
        return connection.execute("SELECT count(*) FROM unread").fetchone()[0]


def test_turns_of_an_ended_conversation_are_returned_as_they_were(memory) -> None:
    turns = (unread("one"), replace(unread("two", NOW + 1), device="satellite", unread_language="pt-BR"))
    memory.add(turns)

    assert take_ended_turns(memory, "a1", LATER) == dict(enumerate(turns, 1))


def test_turns_are_returned_once(memory) -> None:
    memory.add([unread("one"), unread("two", NOW + 1)])

    assert take_all(memory) == [["one", "two"]]
    assert take_ended_turns(memory, "a1", LATER) == {}
    assert count_marks(memory) == 0
    assert memory.statistics().turns == 2


def test_turns_are_in_the_order_of_their_times(memory) -> None:
    memory.add([unread("three", NOW + 2), unread("one"), unread("two", NOW + 1)])

    assert take_all(memory) == [["one", "two", "three"]]


def test_conversation_that_ended_first_is_first(memory) -> None:
    memory.add([unread(f"b{each}", NOW + each, conversation="c2") for each in (5, 6)])
    memory.add([unread(f"a{each}", NOW + each, conversation="c1") for each in (0, 9)])
    memory.add([unread(f"c{each}", NOW + each, conversation="c3") for each in (7, 8)])

    assert take_all(memory) == [["b5", "b6"], ["c7", "c8"], ["a0", "a9"]]


def test_conversation_that_may_go_on_is_left(memory) -> None:
    memory.add([unread("one"), unread("two", NOW + 10)])

    assert take_ended_turns(memory, "a1", NOW + 10) == {}
    assert take_all(memory, before=NOW + 11) == [["one", "two"]]


def test_single_turn_waits_for_another(memory) -> None:
    memory.add_turn(unread("one"))
    assert take_all(memory) == []

    memory.add_turn(unread("two", NOW + 1))
    assert take_all(memory) == [["one", "two"]]


def test_each_person_is_read_alone(memory) -> None:
    people = ["anna", "ben", None, "anna", "ben", None]
    memory.add([unread(f"{person} {place}", NOW + place, person=person) for place, person in enumerate(people)])

    assert take_all(memory) == [["anna 0", "anna 3"], ["ben 1", "ben 4"], ["None 2", "None 5"]]


def test_turn_of_somebody_else_is_no_second_turn(memory) -> None:
    memory.add([unread("one"), unread("two", NOW + 1, person="ben"), unread("three", NOW + 2, person=None)])

    assert take_all(memory) == []


def test_person_who_has_ended_does_not_wait_for_another(memory) -> None:
    memory.add([unread("one"), unread("two", NOW + 1), unread("ben 1", NOW + 2, person="ben")])
    memory.add_turn(unread("ben 2", NOW + 20, person="ben"))

    assert take_all(memory, before=NOW + 10) == [["one", "two"]]


def test_conversations_of_another_agent_are_left(memory) -> None:
    memory.add([unread("one", agent="a2"), unread("two", NOW + 1, agent="a2"), unread("three", NOW + 2)])

    assert take_all(memory, "a1") == []
    assert take_all(memory, "a2") == [["one", "two"]]


def test_turns_without_a_mark_are_left(memory) -> None:
    memory.add([unread("one"), replace(unread("two", NOW + 1), unread_language=None), unread("three", NOW + 2)])

    assert take_all(memory) == [["one", "three"]]


def test_marks_stay_when_the_file_is_opened_again(memory, path) -> None:
    memory.add([unread("one"), unread("two", NOW + 1)])
    memory.close()

    again = Memory(path, ("en", "de"))
    assert take_all(again) == [["one", "two"]]
    again.close()


@pytest.mark.parametrize("conditions", [{"query": "penguins", "person": "anna"}, {"person": "anna"}], ids=str)
def test_forgotten_turn_is_not_returned(memory, conditions) -> None:
    memory.add([unread("I saw penguins"), unread("ben 1", person="ben"), unread("ben 2", NOW + 1, person="ben")])
    memory.add_turn(unread("penguins again", NOW + 1))

    memory.forget(**conditions)

    assert take_all(memory) == [["ben 1", "ben 2"]]
    assert count_marks(memory) == 0


def test_rest_of_a_forgotten_turns_conversation_is_returned(memory) -> None:
    memory.add([unread("one"), unread("penguins", NOW + 1), unread("three", NOW + 2)])

    memory.forget(query="penguins", person="anna", kinds=["turn"])

    assert take_all(memory) == [["one", "three"]]


def test_expired_turns_lose_their_marks(memory) -> None:
    memory.add([unread("one"), unread("two", NOW + 1), unread("three", NOW + 50), unread("four", NOW + 51)])

    memory.forget_expired({"a1": NOW + 10}, NOW)

    assert count_marks(memory) == 2
    assert take_all(memory) == [["three", "four"]]


def test_oldest_turns_lose_their_marks_when_memory_is_full(memory, monkeypatch) -> None:
    monkeypatch.setitem(rows.MAX_ROWS_BY_KIND, "turn", 2)
    monkeypatch.setattr(rows, "_ROWS_PER_LIMIT_CHECK", 1)
    memory.add([unread(f"number {each}", NOW + each) for each in range(4)])

    assert count_marks(memory) == 2
    assert take_all(memory) == [["number 2", "number 3"]]


def test_export_has_no_marks(memory, tmp_path) -> None:
    memory.add([unread("one"), unread("two", NOW + 1)])
    lines = [*memory.export()]
    other = Memory(tmp_path / "other.db", ("en",))

    other.load_lines(lines)

    assert "unread" not in "".join(lines)
    assert other.statistics().turns == 2
    assert count_marks(other) == 0
    other.close()


def test_import_of_a_turn_that_is_known_keeps_its_mark(memory) -> None:
    memory.add([unread("one"), unread("two", NOW + 1)])

    memory.load_lines([*memory.export()])

    assert take_all(memory) == [["one", "two"]]


def test_mark_in_a_line_is_not_imported(memory) -> None:
    memory.add([turn("one", conversation="c1"), turn("two", at=NOW + 1)])
    lines = [
        json.dumps(json.loads(line) | {"id": 7 + place, "unread_language": "en", "agent": "a1"})
        for place, line in enumerate(memory.export())
    ]

    memory.load_lines(lines)

    assert memory.statistics().turns == 4
    assert count_marks(memory) == 0
