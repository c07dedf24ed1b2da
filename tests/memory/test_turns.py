"""Tests for storing and listing turns and summaries."""

from dataclasses import replace
import json
import math

import pytest

from custom_components.windowed_conversation.memory.core import PastSummary, PastTurn, rows

from .content import NOW, get_texts, insert_summary, turn


def test_a_turn_is_recalled_as_what_was_said_and_answered(memory) -> None:
    row = memory.add_turn(turn("Where are\nthe  bins?", "In the\tyard.", person="anna"))

    (found,) = memory.recall("bins", person="anna")

    assert (found.kind, found.id, found.text) == ("turn", row, "Where are the bins?\nIn the yard.")
    assert (found.time, found.person, found.conversation, found.private) == (NOW, "anna", "c1", True)


def test_everything_of_a_turn_is_kept(memory) -> None:
    memory.add_turn(PastTurn("c1", NOW, "Lights on", "Done", "agent", "anna", "satellite", ("HassTurnOn", "Search")))

    (line,) = memory.export()

    assert json.loads(line) == {
        "kind": "turn",
        "id": 1,
        "at": NOW,
        "conversation": "c1",
        "person": "anna",
        "agent": "agent",
        "device": "satellite",
        "tools": "HassTurnOn Search",
        "said": "Lights on",
        "answer": "Done",
    }


def test_the_texts_of_a_turn_are_bounded(memory) -> None:
    memory.add_turn(turn("bread " * 10_000, "butter " * 10_000))

    (found,) = memory.recall("bread")

    assert [len(text) <= limit for text, limit in zip(found.text.split("\n"), (2_000, 4_000), strict=True)] == [
        True
    ] * 2


def test_the_oldest_turns_make_room(memory, monkeypatch) -> None:
    monkeypatch.setitem(rows.MAX_ROWS_BY_KIND, "turn", 3)
    monkeypatch.setattr(rows, "_ROWS_PER_LIMIT_CHECK", 1)
    for number in range(6):
        memory.add_turn(turn(f"bread {number}", at=NOW + number))

    assert sorted(get_texts(memory.recall("bread"))) == ["bread 3", "bread 4", "bread 5"]


@pytest.mark.parametrize("at", [math.nan, math.inf, True])
def test_a_turn_needs_a_time(memory, at) -> None:
    with pytest.raises(ValueError, match="time"):
        memory.add_turn(turn("bread", at=at))


@pytest.mark.parametrize("said", ["", "\n", "\x00"])
def test_a_turn_needs_words(memory, said) -> None:
    with pytest.raises(ValueError, match="words"):
        memory.add_turn(turn(said))


def test_nothing_stays_of_a_turn_that_was_refused(memory) -> None:
    with pytest.raises(ValueError, match="name"):
        memory.add_turn(turn("bread", person="x" * 300))

    assert memory.statistics().turns == 0
    assert list(memory.export()) == []


@pytest.fixture
def filled(memory):
    old = memory.add_fact("Bins: Wednesday", at=NOW)
    memory.add_fact("Bins: Friday", replaces=old, at=NOW + 1)
    memory.add_fact("Anna fears geese", person="anna", private=True, at=NOW + 2)
    memory.add_fact("Anna likes tea", person="anna", at=NOW + 3)
    memory.add_fact("Ben likes rum", person="ben", at=NOW + 4)
    memory.add_turn(turn("Good morning", "Hello", person="anna", at=NOW + 5))
    memory.add_turn(turn("Good night", "Bye", at=NOW + 6))
    insert_summary(memory, PastSummary("c1", NOW, NOW + 7, "They greeted"))
    return memory


def test_newest_comes_first_and_what_is_no_longer_true_does_not_come(filled) -> None:
    assert get_texts(filled.recall()) == ["They greeted", "Good night\nBye", "Bins: Friday"]


def test_a_person_has_their_own_listed_and_the_homes(filled) -> None:
    listed = filled.recall(person="anna", kinds=("turn", "fact"))

    assert get_texts(listed) == [
        "Good night\nBye",
        "Good morning\nHello",
        "Anna likes tea",
        "Anna fears geese",
        "Bins: Friday",
    ]
    assert [each.private for each in listed] == [False, True, False, True, False]
    assert {(each.person, each.conversation) for each in listed} == {
        (None, "c1"),
        ("anna", "c1"),
        ("anna", None),
        (None, None),
    }


def test_what_is_private_is_not_listed_for_others(filled) -> None:
    listed = filled.recall(person="anna", private=False)

    assert get_texts(listed) == ["They greeted", "Good night\nBye", "Anna likes tea", "Bins: Friday"]


def test_listed_turns_have_their_tools(memory) -> None:
    memory.add_turn(replace(turn("Light on", "Done"), tools=("HassTurnOn", "HassTurnOff")))
    memory.add_turn(turn("Good night", "Bye", at=NOW + 1))

    listed = memory.recall()

    assert [each.tool_names for each in listed] == [(), ("HassTurnOn", "HassTurnOff")]


@pytest.mark.parametrize(
    ("listing", "told"),
    [
        ({"limit": 1}, ["They greeted"]),
        ({"since": NOW + 6, "until": NOW + 6}, ["Good night\nBye"]),
        ({"ids": (("turn", 2), ("fact", 3))}, ["Good night\nBye"]),
        ({"kinds": ()}, []),
    ],
    ids=["page", "time", "ids", "no kind"],
)
def test_a_part_is_listed(filled, listing, told) -> None:
    assert get_texts(filled.recall(**listing)) == told
