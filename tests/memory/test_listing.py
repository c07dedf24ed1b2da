"""Tests for lists of memories without a query."""

from dataclasses import replace

import pytest

from custom_components.windowed_conversation.memory import MemoryListQuery, PastSummary

from .content import NOW, get_texts, insert_summary, turn


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
    assert get_texts(filled.list_newest(MemoryListQuery())) == ["They greeted", "Good night\nBye", "Bins: Friday"]


def test_a_person_has_their_own_listed_and_the_homes(filled) -> None:
    listed = filled.list_newest(MemoryListQuery("anna", kinds=("turn", "fact")))

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
    listed = filled.list_newest(MemoryListQuery("anna", private=False))

    assert get_texts(listed) == ["They greeted", "Good night\nBye", "Anna likes tea", "Bins: Friday"]


def test_listed_turns_have_their_tools(memory) -> None:
    memory.add_turn(replace(turn("Light on", "Done"), tools=("HassTurnOn", "HassTurnOff")))
    memory.add_turn(turn("Good night", "Bye", at=NOW + 1))

    listed = memory.list_newest(MemoryListQuery())

    assert [each.tool_names for each in listed] == [(), ("HassTurnOn", "HassTurnOff")]


@pytest.mark.parametrize(
    ("listing", "told"),
    [
        (MemoryListQuery(limit=1), ["They greeted"]),
        (MemoryListQuery(since=NOW + 6, until=NOW + 6), ["Good night\nBye"]),
        (MemoryListQuery(ids=(("turn", 2), ("fact", 3))), ["Good night\nBye"]),
        (MemoryListQuery(kinds=()), []),
    ],
    ids=["page", "time", "ids", "no kind"],
)
def test_a_part_is_listed(filled, listing, told) -> None:
    assert get_texts(filled.list_newest(listing)) == told
