"""Tests for storing turns and summaries."""

import json
import math

import pytest

from custom_components.windowed_conversation.memory import PastTurn, rows

from .content import NOW, get_texts, turn


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
