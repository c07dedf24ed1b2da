"""Tests for forgetting in the record of turns, after which no byte remains in the file."""

from typing import Any

import pytest

from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.record import (
    RecordedTurns,
    TurnListQuery,
    expire_turns,
    list_recorded_people,
    tables,
)
from tests.memory.content import DAY, NOW, read_all_files, turn

from .recorded import record, request, whole, writes

SECRET = "pelican"
OTHERS = NOW - 90 * DAY


def levels(memory: Memory) -> dict[str, str]:
    """Return the recording level of each turn by its id, oldest first."""
    turns = RecordedTurns(memory.database).list_newest(TurnListQuery(limit=1_000))
    return {each["turn_id"]: "full" if each["has_text"] else "statistics" for each in turns[::-1]}


def expire(memory: Memory, before: dict[str, float], others: float = OTHERS, text_cutoff: float = 0.0) -> bool:
    """Expire turns as the store does each day, and return whether their bytes are erased."""
    with memory.database.write_transaction() as connection:
        expire_turns(connection, before, others, text_cutoff)
    return memory.forget_expired(before, others).is_erased


def test_words_go_after_their_days_and_figures_stay(memory, turns, path) -> None:
    memory.add(writes(whole(0, f"The {SECRET} is old"), whole(10, "Hello")))

    assert expire(memory, {}, text_cutoff=NOW + 5)

    assert levels(memory) == {"turn-0000": "statistics", "turn-0010": "full"}
    assert turns.get_turn("turn-0000")["attempts"][0]["usage"]["input"] == 100
    assert SECRET.encode() not in read_all_files(path)


def test_figures_go_when_the_turns_of_their_agent_do(memory, path) -> None:
    memory.add(writes(record(1, agent="short"), record(2, agent="long"), record(3, agent="gone")))

    expire(memory, {"short": NOW + 9, "long": NOW}, NOW + 2.5)

    assert list(levels(memory)) == ["turn-0002", "turn-0003"]
    assert b"short" not in read_all_files(path)


def test_text_that_a_younger_turn_has_sent_as_well_stays(memory, turns) -> None:
    memory.add(writes(whole(0, "Hello"), whole(10, "Hello")))

    expire(memory, {}, text_cutoff=NOW + 5)

    assert turns.get_turn("turn-0010") == whole(10, "Hello")


def test_forgotten_fact_takes_the_words_of_the_turns_that_may_have_heard_it_also_before_memory_did(
    memory, path
) -> None:
    before = whole(0, "Hello")
    fact = memory.add_fact(f"The {SECRET} lives here", at=NOW + 5)
    memory.add(
        writes(before, whole(10, f"Where is the {SECRET}?", person="anna"), whole(20, "Hello", conversation_id="c2"))
    )

    lost = memory.forget(ids=[("fact", fact)])

    assert (len(lost.textless_records), lost.records, lost.is_erased) == (3, (), True)
    assert set(levels(memory).values()) == {"statistics"}
    assert SECRET.encode() not in read_all_files(path)


def test_private_fact_takes_the_words_of_its_owner_and_of_who_shared_a_window_with_them(memory) -> None:
    fact = memory.add_fact("I like tea", person="anna", private=True, at=NOW)
    memory.add(
        writes(
            whole(1, "Hello", person="anna", conversation_id="shared"),
            whole(2, "Hello", person="ben", conversation_id="shared"),
            whole(3, "Hello", person="ben", conversation_id="own"),
        )
    )

    memory.forget(ids=[("fact", fact)], person="anna")

    assert levels(memory) == {"turn-0001": "statistics", "turn-0002": "statistics", "turn-0003": "full"}


def test_forgotten_turn_takes_its_words_along(memory, path) -> None:
    row = memory.add_turn(turn(f"The {SECRET} is here", at=NOW + 11, person="anna"))
    memory.add(
        writes(
            whole(10, f"The {SECRET} is here", person="anna"), whole(12, "Hello", person="ben", conversation_id="c2")
        )
    )

    memory.forget(ids=[("turn", row)], person="anna")

    assert levels(memory) == {"turn-0010": "statistics", "turn-0012": "full"}
    assert SECRET.encode() not in read_all_files(path)


def test_words_that_memory_does_not_know_leave_the_record(memory, path) -> None:
    others = (
        whole(2, "Hello", person="ben", conversation_id="c2"),
        whole(3, "Hello", person="anna", conversation_id="c3"),
    )
    memory.add(writes(whole(1, f"The {SECRET} is here", person="anna"), *others))

    lost = memory.forget(query=SECRET, person="anna")

    assert (len(lost.textless_records), lost.matching_record_count, lost.has_memories) == (2, 1, False)
    assert levels(memory) == {"turn-0001": "statistics", "turn-0002": "full", "turn-0003": "statistics"}
    assert SECRET.encode() not in read_all_files(path)


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ({"person": "anna"}, ["turn-0002", "turn-0003", "turn-0004"]),
        ({"agent": "a2"}, ["turn-0001", "turn-0002", "turn-0004"]),
        ({"before": NOW + 2.5}, ["turn-0003", "turn-0004"]),
        ({"since": NOW + 2.5}, ["turn-0001", "turn-0002"]),
        ({"person": None}, ["turn-0001", "turn-0002", "turn-0003", "turn-0004"]),
        ({"person": "anna", "kinds": ("fact",)}, ["turn-0001", "turn-0002", "turn-0003", "turn-0004"]),
        ({"person": "nobody"}, ["turn-0001", "turn-0002", "turn-0003", "turn-0004"]),
    ],
    ids=["person", "agent", "before", "since", "unknown speaker", "facts only", "nobody"],
)
def test_who_has_all_of_something_forgotten_takes_the_rows(memory, conditions: Any, left: list[str]) -> None:
    memory.add(writes(record(1, person="anna"), record(2, person="ben"), record(3, agent="a2"), record(4)))

    memory.forget(**conditions)

    assert list(levels(memory)) == left


def test_a_dry_run_takes_nothing(memory) -> None:
    memory.add(writes(whole(1, "Hello", person="anna")))

    assert len(memory.forget(person="anna", dry_run=True).records) == 1
    assert levels(memory) == {"turn-0001": "full"}


def test_export_of_everything_can_be_loaded_after_rows_were_forgotten(memory) -> None:
    memory.add(writes(record(1, person="anna")))
    memory.forget(person="anna")

    assert memory.load_lines(list(memory.export())).refused_count == 0


def test_oldest_turns_and_words_make_room(memory, monkeypatch) -> None:
    monkeypatch.setattr(tables, "MAX_TURNS", 400)
    monkeypatch.setattr(tables, "MAX_TEXTS", 50)

    memory.add(writes(*(whole(number, f"Hello {number}") for number in range(500))))

    stored = levels(memory)
    assert (len(stored), min(stored)) == (400, "turn-0100")
    kept = [each for each, level in stored.items() if level == "full"]
    assert (len(kept), min(kept)) == (50, "turn-0450")


def test_names_that_only_the_record_has_go_with_it(memory, turns, path) -> None:
    of_anna = [record(number, entity_id="conversation.attic", person="anna") for number in range(3)]
    memory.add(writes(*of_anna, record(9, attempts=[request(model="llama")])))
    memory.forget(person="anna")

    assert b"attic" not in read_all_files(path)
    assert turns.get_turn("turn-0009")["attempts"][0]["model"] == "llama"


def test_people_of_the_record_are_listed_once(memory) -> None:
    memory.add(writes(record(1, person="anna"), record(2, person="anna"), record(3), record(4, person="ben")))

    with memory.database.read_transaction() as connection:
        assert list_recorded_people(connection) == {"anna", "ben"}
