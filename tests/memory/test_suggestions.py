"""Tests for suggestions: who sees them, when they go, and the decisions of their owner."""

from dataclasses import replace

import pytest

from custom_components.windowed_conversation.memory.core import (
    FactStatement,
    Memory,
    PastTurn,
    RecallQuery,
    add_suggestion,
    confirm_suggestion,
    delete_suggestion,
    rows,
)

from .content import DAY, NOW, read_all_files

PILLS = "Tom takes antidepressants every morning"
SAID = f"Don't tell anybody, but {PILLS}."


def mention(memory, text=PILLS, *, said=SAID, person="anna", at=NOW, conversation="c1"):
    """Store a turn with a suggestion of its speaker. Return the ids of the turn and of the suggestion."""
    row = memory.add_turn(PastTurn(conversation, at, said, "I see.", "a1", person))
    add_suggestion(memory, suggestion(row, text, person=person, at=at, quote=said), conversation)
    return row, next((fact.id for fact in memory.get_facts(person) if fact.turn == row), None)


def suggestion(turn, text=PILLS, *, person="anna", at=NOW, quote=SAID):
    """Return the statement of a suggestion that stands on a turn."""
    return FactStatement(
        text,
        person,
        private=True,
        source="learned",
        quote=quote,
        at=at,
        confirmed=at,
        search_words="pills medicine",
        turn=turn,
    )


def get_texts(memory, person=None, *, private=True):
    return [fact.text for fact in memory.get_facts(person, private=private)]


def recall_texts(memory, person=None, *, private=True):
    """Return the facts that a question finds, by words of the fact and by its search words."""
    queries = [RecallQuery(text, person, private=private) for text in ("what does Tom take?", "which medicine?")]
    return {each.text for query in queries for each in memory.recall_relevant(query)[0]}


def test_suggestion_is_known_and_found_for_its_owner_alone(memory) -> None:
    mention(memory)

    assert get_texts(memory, "anna") == [PILLS]
    assert recall_texts(memory, "anna") == {PILLS}


@pytest.mark.parametrize(
    ("person", "private"), [("ben", True), (None, True), ("anna", False)], ids=["another", "unknown", "shared window"]
)
def test_suggestion_is_known_and_found_for_nobody_else(memory, person, private) -> None:
    mention(memory)

    assert get_texts(memory, person, private=private) == []
    assert recall_texts(memory, person, private=private) == set()
    assert memory.recall("Tom antidepressants", person=person, private=private, kinds=("fact",)) == []


def test_search_says_that_a_suggestion_is_one(memory) -> None:
    memory.add_fact("Tom takes vitamins", person="anna", private=True)
    mention(memory)

    found = memory.recall("what does Tom take", person="anna", kinds=("fact",))

    assert {each.text: each.is_suggestion for each in found} == {PILLS: True, "Tom takes vitamins": False}


def test_suggestion_that_is_public_is_refused(memory) -> None:
    row, _ = mention(memory, "Tom drinks tea")
    with pytest.raises(ValueError, match="private"):
        add_suggestion(memory, replace(suggestion(row), person=None, private=False), "c1")


@pytest.mark.parametrize("conditions", [{"ids": [("turn", 1)]}, {"query": "Tom takes"}, {}], ids=str)
def test_suggestion_goes_with_its_turn(memory, path, conditions) -> None:
    mention(memory)

    lost = memory.forget(person="anna", **conditions)

    assert lost.facts == (1,)
    assert get_texts(memory, "anna") == []
    assert b"antidepressants" not in read_all_files(path)


def test_suggestion_expires_with_its_turn(memory) -> None:
    mention(memory)

    memory.forget_expired({"a1": NOW + 1}, NOW)

    assert get_texts(memory, "anna") == []


def test_suggestion_goes_with_a_turn_that_repeats_a_forgotten_one(memory) -> None:
    mention(memory)
    told = memory.add_fact("Tom takes antidepressants", person="anna", private=True)

    memory.forget(person="anna", ids=[("fact", told)])

    assert get_texts(memory, "anna") == []


def test_confirmed_suggestion_stays_when_its_turn_goes(memory) -> None:
    _, row = mention(memory)

    assert confirm_suggestion(memory, row, "anna", for_all=False) == row
    memory.forget_expired({"a1": NOW + 1}, NOW)

    (fact,) = memory.get_facts("anna")
    assert (fact.text, fact.person, fact.private, fact.turn, fact.at) == (PILLS, "anna", True, None, NOW)
    assert get_texts(memory, "ben") == []


def test_suggestion_that_is_shared_is_a_fact_of_the_home(memory) -> None:
    _, row = mention(memory)

    assert confirm_suggestion(memory, row, "anna", for_all=True) == row

    (fact,) = memory.get_facts(None)
    assert (fact.text, fact.person, fact.private, fact.turn) == (PILLS, None, False, None)
    assert recall_texts(memory, "ben") == {PILLS}


def test_suggestion_that_everybody_was_told_becomes_that_fact(memory) -> None:
    _, row = mention(memory)
    told = memory.add_fact(PILLS, teller="ben")

    assert confirm_suggestion(memory, row, "anna", for_all=True) == told

    assert [fact.id for fact in memory.get_facts("anna")] == [told]


@pytest.mark.parametrize("person", ["ben", "nobody"])
def test_nobody_else_decides_about_a_suggestion(memory, person) -> None:
    _, row = mention(memory)

    assert confirm_suggestion(memory, row, person, for_all=True) is None
    assert not delete_suggestion(memory, row, person)

    assert get_texts(memory, "anna") == [PILLS]
    assert get_texts(memory) == []


def test_told_fact_is_no_suggestion_to_decide_about(memory) -> None:
    row = memory.add_fact(PILLS, person="anna", private=True)

    assert confirm_suggestion(memory, row, "anna", for_all=True) is None
    assert not delete_suggestion(memory, row, "anna")

    assert get_texts(memory, "anna") == [PILLS]
    assert get_texts(memory) == []


def test_deleted_suggestion_leaves_its_turn(memory) -> None:
    _, row = mention(memory)

    assert delete_suggestion(memory, row, "anna")

    assert get_texts(memory, "anna") == []
    assert memory.statistics().turns == 1


def test_confirmed_suggestion_replaces_only_the_fact_that_is_named(memory) -> None:
    old = memory.add_fact("Tom takes vitamins", person="anna", private=True)
    _, row = mention(memory)
    assert set(get_texts(memory, "anna")) == {PILLS, "Tom takes vitamins"}

    confirm_suggestion(memory, row, "anna", for_all=False, replaces=old)

    assert get_texts(memory, "anna") == [PILLS]
    assert [(each.id, each.replaced_id) for each in memory.get_replacements("anna")] == [(row, old)]


@pytest.mark.parametrize("owner", [None, "anna"], ids=["home", "own"])
def test_what_was_told_is_no_suggestion(memory, owner) -> None:
    memory.add_fact(PILLS, person=owner, private=owner is not None)

    mention(memory)

    assert [fact.turn for fact in memory.get_facts("anna")] == [None]


def test_what_another_person_told_in_private_may_be_a_suggestion(memory) -> None:
    memory.add_fact(PILLS, person="ben", private=True)

    mention(memory)

    assert get_texts(memory, "anna") == [PILLS]


@pytest.mark.parametrize("owner", [None, "anna"], ids=["home", "own"])
def test_suggestion_that_is_told_later_is_told(memory, owner) -> None:
    mention(memory)

    memory.add_fact(PILLS, person=owner, private=owner is not None, teller="anna")

    assert [(fact.turn, fact.person) for fact in memory.get_facts("anna")] == [(None, owner)]


def test_what_is_mentioned_again_stands_on_the_newest_turn(memory) -> None:
    mention(memory)
    turn, _ = mention(memory, at=NOW + DAY, conversation="c2")

    assert [fact.turn for fact in memory.get_facts("anna")] == [turn]


def test_suggestion_of_a_turn_that_was_forgotten_is_not_stored(memory) -> None:
    add_suggestion(memory, suggestion(7), "c1")

    assert get_texts(memory, "anna") == []


def test_oldest_suggestion_makes_room_for_a_fact(memory, monkeypatch) -> None:
    monkeypatch.setattr(rows, "MAX_FACTS", 2)
    mention(memory)
    memory.add_fact("The bins go out on Friday")

    memory.add_fact("The spare key is in the shed")

    assert PILLS not in get_texts(memory, "anna")


def test_suggestions_are_exported_for_their_owner_alone_and_imported_with_their_turns(memory, tmp_path) -> None:
    mention(memory)
    other = Memory(tmp_path / "other.db", ("en",))
    other.add_turn(PastTurn("c0", NOW - 1, "hello", "hello", "a1", "ben"))

    other.load_lines([*memory.export()])

    (turn,) = [each.id for each in other.recall("Tom", person="anna", kinds=("turn",))]
    assert [fact.turn for fact in other.get_facts("anna")] == [turn]
    other.forget(person="anna", ids=[("turn", turn)])
    assert get_texts(other, "anna") == []
    assert PILLS not in "".join(memory.export("ben"))
    other.close()


def test_suggestion_is_not_imported_without_its_turn(memory, tmp_path) -> None:
    mention(memory)
    other = Memory(tmp_path / "other.db", ("en",))

    other.load_lines([line for line in memory.export() if '"turn": 1' in line])

    assert get_texts(other, "anna") == []
    other.close()


def test_public_suggestion_is_not_imported(memory, tmp_path) -> None:
    mention(memory)
    lines = [line.replace('"private": true', '"private": false') for line in memory.export()]
    other = Memory(tmp_path / "other.db", ("en",))

    with pytest.raises(ValueError, match="line 1"):
        other.load_lines(lines)

    other.close()


def test_suggestion_is_stored_with_all_that_it_was_made_of(memory) -> None:
    turn, row = mention(memory)

    (fact,) = memory.get_facts("anna")
    assert replace(fact, id=0) == replace(
        fact, id=0, quote=SAID, source="learned", at=NOW, turn=turn, search_words="pills medicine", private=True
    )
    assert memory.get_unshared_facts("anna") == {row}
