"""Tests for the memories that a query returns to each person."""

import pytest

from custom_components.windowed_conversation.memory import PastSummary, RecallQuery, search

from .content import DAY, NOW, get_texts, insert_summary, turn


def test_a_fact_is_found_in_other_words(memory) -> None:
    fact = memory.add_fact("The orchid is watered once a week")
    memory.add_fact("The vet is Doctor Keller")

    assert [(found.kind, found.id) for found in memory.recall("how often do I water the orchids?")] == [("fact", fact)]


def test_the_best_is_first_and_the_limit_is_kept(memory) -> None:
    memory.add_fact("The lamp in the hall is new")
    best = memory.add_fact("The lamp behind the sofa flickers")
    memory.add_fact("The sofa is blue")

    assert [found.id for found in memory.recall("the lamp behind the sofa", limit=1)] == [best]


def test_a_hit_lifts_its_neighbours_in_the_conversation(memory) -> None:
    memory.add_turn(turn("What is the name of the plumber?", conversation="a"))
    answer = memory.add_turn(turn("He is called Hansen", conversation="a"))
    memory.add_turn(turn("It rains", conversation="b"))

    assert answer in [found.id for found in memory.recall("the plumber's name")]


def test_a_hit_lifts_nothing_outside_its_conversation(memory) -> None:
    plumber = memory.add_turn(turn("What is the name of the plumber?", conversation="a"))
    memory.add_turn(turn("He is called Hansen", conversation="b"))

    assert [found.id for found in memory.recall("the plumber's name")] == [plumber]


def test_a_nearer_neighbour_is_better(memory) -> None:
    turns = [memory.add_turn(turn(said)) for said in ("The plumber", "one", "two", "three", "four")]

    assert [found.id for found in memory.recall("plumber")] == turns[:4]


def test_of_two_equal_turns_the_newer_is_first(memory) -> None:
    old = memory.add_turn(turn("The bins go out on Monday", at=NOW - 90 * DAY, conversation="a"))
    new = memory.add_turn(turn("The bins go out on Friday", at=NOW, conversation="b"))

    assert [found.id for found in memory.recall("when do the bins go out?")] == [new, old]


def test_a_fact_is_before_a_turn_that_says_the_same(memory) -> None:
    memory.add_turn(turn("The bins go out on Friday"))
    memory.add_fact("The bins go out on Friday")

    assert [found.kind for found in memory.recall("when do the bins go out?")] == ["fact", "turn"]


def test_only_the_kinds_that_are_wanted_are_found(memory) -> None:
    memory.add_turn(turn("The bins go out on Friday"))
    memory.add_fact("The bins go out on Friday")
    insert_summary(memory, PastSummary("c1", NOW, NOW, "They spoke of bins"))

    assert [found.kind for found in memory.recall("bins", kinds=("summary",))] == ["summary"]


def test_facts_and_other_memories_each_have_the_limit(memory) -> None:
    for number in range(5):
        memory.add_turn(turn(f"The bins go out on Friday, {number}", at=NOW + number))
        memory.add_fact(f"The bins of house {number} go out on Friday")

    facts, turns = memory.recall_relevant(RecallQuery("when do the bins go out?", limit=3))

    assert facts == memory.recall("when do the bins go out?", kinds=("fact",), limit=3)
    assert turns == memory.recall("when do the bins go out?", kinds=("turn", "summary"), limit=3)


def test_what_was_said_in_a_time_is_found_by_it(memory) -> None:
    for day in range(10):
        memory.add_turn(turn(f"Bread on day {day}", at=NOW + day * DAY))

    found = memory.recall("bread", since=NOW + 3 * DAY, until=NOW + 4 * DAY)

    assert sorted(get_texts(found)) == ["Bread on day 3", "Bread on day 4"]


@pytest.mark.parametrize(
    "query", ["", "what is it?", '" OR words : *', "NEAR(a b)", "-", "🎉", "x" * 100_000, "\x00\ud800"]
)
def test_a_question_of_any_kind_is_answered(memory, query) -> None:
    memory.add_fact("The bins go out on Friday")

    assert memory.recall(query) == []


def test_where_words_are_in_too_many_rows_the_rarest_decide(memory, monkeypatch) -> None:
    monkeypatch.setattr(search, "_MAX_SCORED_ROWS", 6)
    for number in range(10):
        memory.add_turn(turn("kitchen light on", conversation=f"c{number}"))
    rare = memory.add_turn(turn("the orchid in the kitchen", conversation="rare"))

    assert [found.id for found in memory.recall("light at the orchid in the kitchen")] == [rare]


def test_what_is_in_every_turn_is_still_found(memory) -> None:
    for number in range(5):
        memory.add_turn(turn("lights", conversation=f"c{number}"))

    assert len(memory.recall("lights")) == 5


@pytest.mark.parametrize("speaker", ["ben", None, ""])
def test_what_is_a_persons_is_found_by_nobody_else(memory, speaker) -> None:
    memory.add_fact("Anna likes tea", person="anna")
    memory.add_fact("Anna fears tea", person="anna", private=True)
    memory.add_turn(turn("I drink tea", person="anna"))
    insert_summary(memory, PastSummary("c1", NOW, NOW, "Anna drank tea", person="anna"))

    assert memory.recall("tea", person=speaker) == []
    assert memory.get_facts(speaker) == []


def test_a_person_finds_what_is_theirs_and_the_homes(memory) -> None:
    memory.add_fact("Anna likes tea", person="anna")
    memory.add_fact("The tea is in the cupboard")

    assert {found.person for found in memory.recall("tea", person="anna")} == {"anna", None}


def test_another_persons_turn_lifts_no_neighbour(memory) -> None:
    memory.add_turn(turn("My test result came back positive", person="anna"))
    memory.add_turn(turn("Turn on the light", person="ben"))

    assert memory.recall("test result", person="ben") == []


def test_another_persons_turns_do_not_crowd_out(memory) -> None:
    own = memory.add_turn(turn("bread, and butter, and milk, and eggs", person="ben", conversation="own"))
    for number in range(400):
        memory.add_turn(turn("bread", person="anna", conversation=f"c{number}"))

    assert [found.id for found in memory.recall("bread", person="ben")] == [own]


def test_what_is_private_stays_out_of_a_window_that_others_share(memory) -> None:
    memory.add_fact("Anna likes tea", person="anna")
    memory.add_fact("Anna steals tea", person="anna", private=True)
    memory.add_turn(turn("I stole tea", person="anna"))
    memory.add_turn(turn("Buy tea"))

    shared = memory.recall("tea", person="anna", private=False)

    assert sorted(get_texts(shared)) == ["Anna likes tea", "Buy tea"]
    assert [fact.text for fact in memory.get_facts("anna", private=False)] == ["Anna likes tea"]
    assert not any(found.private for found in shared)
