"""Tests for the memories that a query returns to each person, and which of them are relevant."""

import pytest

from custom_components.windowed_conversation.memory.core import PastSummary, RecallQuery, search

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


COMMANDS = frozenset(["turn", "on", "off", "the", "light", "lights", "kitchen", "set", "open", "close", "door"])


def find_facts(memory, text, **more):
    return get_texts(memory.recall_relevant(RecallQuery(text, command_words=COMMANDS, **more))[0])


def find_turns(memory, text, **more):
    return get_texts(memory.recall_relevant(RecallQuery(text, command_words=COMMANDS, **more))[1])


def test_sentence_of_command_words_finds_nothing(memory) -> None:
    memory.add_turn(turn("turn on the light", "The kitchen light is on"))
    memory.add_turn(turn("the kitchen has a lovely light in autumn"))

    assert find_turns(memory, "turn on the kitchen light", is_question=False) == []


def test_command_finds_the_fact_about_most_of_its_words(memory) -> None:
    memory.add_fact("The kitchen door is painted and must stay open")
    memory.add_fact("The kitchen is green")

    assert find_facts(memory, "close the kitchen door", is_question=False) == [
        "The kitchen door is painted and must stay open"
    ]


def test_single_distinctive_word_of_a_command_finds_facts_only(memory) -> None:
    memory.add_turn(turn("the aquarium needs new plants"))
    memory.add_fact("The aquarium light is on until ten")

    facts, turns = memory.recall_relevant(
        RecallQuery("turn off the aquarium", command_words=COMMANDS, is_question=False)
    )

    assert (get_texts(facts), turns) == (["The aquarium light is on until ten"], [])


def test_question_finds_a_turn_by_a_single_distinctive_word(memory) -> None:
    memory.add_turn(turn("the aquarium needs new plants"))

    assert find_turns(memory, "what about the aquarium?") == ["the aquarium needs new plants"]


def test_question_about_oneself_needs_no_distinctive_word(memory) -> None:
    memory.add_turn(turn("my door is green, by the way", person="ada"))

    found = memory.recall_relevant(RecallQuery("which is my door?", "ada", "Ada", command_words=COMMANDS))[1]

    assert get_texts(found) == ["my door is green, by the way"]


def test_question_about_oneself_is_answered_however_often_it_was_asked(memory) -> None:
    memory.add_turn(turn("my name is Ada Lovelace", person="ada"))
    for number in range(60):
        memory.add_turn(turn("what is my name?", "Your name is Ada.", conversation=f"c{number}", person="ada"))

    asked = "what is my name?"
    query = RecallQuery(asked, "ada", "Ada", command_words=COMMANDS | {"name"}, asked_text=asked)

    assert "my name is Ada Lovelace" in get_texts(memory.recall_relevant(query)[1])


def test_wish_of_a_person_finds_facts_by_less_than_a_command(memory) -> None:
    memory.add_fact("Ben drinks coffee with oat milk", person="ben")
    sentence = "make {} coffee as strong and as hot as usual"

    found = {
        whose: find_facts(memory, sentence.format(whose), person="ben", speaker="Ben", is_question=False)
        for whose in ("my", "the")
    }

    assert found == {"my": ["Ben drinks coffee with oat milk"], "the": []}


def test_number_is_no_distinctive_word(memory) -> None:
    memory.add_turn(turn("the parcel weighs 21 pounds"))

    assert find_turns(memory, "set the kitchen to 21?") == []


def test_turn_with_a_small_share_of_the_question_is_not_recalled(memory) -> None:
    memory.add_turn(turn("I bought a blue umbrella"))

    assert find_turns(memory, "does the blue parrot of the neighbours bite strangers?") == []


def test_turn_that_was_a_command_is_not_recalled(memory) -> None:
    memory.add_turn(turn("turn on the kitchen light", "The aquarium is dark"))

    assert find_turns(memory, "what about the aquarium?") == []


def test_neighbor_of_a_relevant_turn_is_recalled(memory) -> None:
    memory.add_turn(turn("who is the plumber we had?", conversation="a"))
    memory.add_turn(turn("he is called Hansen", conversation="a"))

    assert "he is called Hansen" in find_turns(memory, "what is the plumber called?")


def test_neighbor_of_a_turn_that_is_not_relevant_is_not_recalled(memory) -> None:
    memory.add_turn(turn("the blue umbrella is new", conversation="a"))
    memory.add_turn(turn("he is called Hansen", conversation="a"))

    assert find_turns(memory, "does the blue parrot of the neighbours bite strangers?") == []


@pytest.mark.parametrize("quote", ["our bins go out on Tuesdays", ""], ids=["quote", "words of the fact"])
def test_turn_that_told_a_replaced_fact_is_not_recalled(memory, quote) -> None:
    memory.add_turn(turn("by the way, our bins go out on Tuesdays", conversation="a"))
    memory.add_turn(turn("our bins go out on Thursdays now", conversation="b"))
    old = memory.add_fact("our bins go out on Tuesdays", quote=quote)
    memory.add_fact("the bins go out on Thursdays", replaces=old)

    assert find_turns(memory, "when do the bins go out?") == ["our bins go out on Thursdays now"]


def test_turn_of_somebody_else_with_the_words_of_a_replaced_fact_is_recalled(memory) -> None:
    memory.add_turn(turn("the dentist is on Monday", person="ben"))
    old = memory.add_fact("the dentist is on Monday", person="ada")
    memory.add_fact("the dentist is on Friday", person="ada", replaces=old)

    assert find_turns(memory, "when is the dentist?", person="ben") == ["the dentist is on Monday"]


def test_turn_that_told_a_fact_which_is_true_again_is_recalled(memory) -> None:
    memory.add_turn(turn("the bins go out on Tuesdays"))
    old = memory.add_fact("the bins go out on Tuesdays")
    between = memory.add_fact("the bins go out on Thursdays", replaces=old)
    memory.add_fact("the bins go out on Tuesdays", replaces=between)

    assert find_turns(memory, "when do the bins go out?") == ["the bins go out on Tuesdays"]


def test_turns_of_the_time_span_are_recalled(memory) -> None:
    for day in range(10):
        memory.add_turn(turn(f"stains of sort {day}", conversation=f"c{day}", at=NOW + day * DAY))

    found = find_turns(memory, "how did we remove the stains?", since=NOW + 3 * DAY, until=NOW + 4 * DAY)

    assert sorted(found) == ["stains of sort 3", "stains of sort 4"]


def test_turns_of_any_time_are_recalled_if_the_span_has_none(memory) -> None:
    memory.add_turn(turn("stains are removed with salt"))

    found = find_turns(memory, "how are stains removed?", since=NOW + DAY, until=NOW + 2 * DAY)

    assert found == ["stains are removed with salt"]


def test_turns_of_no_other_time_are_recalled_if_the_span_is_over(memory) -> None:
    memory.add_turn(turn("stains are removed with salt"))

    assert find_turns(memory, "how are stains removed?", since=NOW + DAY, until=NOW + 2 * DAY, is_time_over=True) == []


def test_newest_turns_of_the_time_span_are_recalled_if_none_matches(memory) -> None:
    for day in range(4):
        memory.add_turn(turn(f"stains of sort {day}", conversation=f"c{day}", at=NOW + day * DAY))
    time = {"since": NOW + DAY, "until": NOW + 2 * DAY, "is_time_over": True, "lists_time": True}

    assert find_turns(memory, "what did I ask?", **time) == ["stains of sort 2", "stains of sort 1"]
    assert find_turns(memory, "what did I ask about stains of sort 1?", **time)[0] == "stains of sort 1"


def test_question_that_asks_for_a_time_is_not_in_its_list(memory) -> None:
    asked = "what did I ask you today?"
    memory.add_turn(turn(asked, at=NOW))

    assert (
        find_turns(memory, "what did I ask you?", since=NOW, until=NOW + DAY, asked_text=asked, lists_time=True) == []
    )


def test_facts_are_recalled_from_any_time(memory) -> None:
    memory.add_fact("stains are removed with salt", at=NOW)

    found = find_facts(memory, "how are stains removed?", since=NOW + DAY, until=NOW + 2 * DAY)

    assert found == ["stains are removed with salt"]


def test_relevant_summary_is_recalled(memory) -> None:
    insert_summary(memory, PastSummary("c1", NOW, NOW, "They spoke of the orchid and its pot"))

    assert find_turns(memory, "what about the orchid?") == ["They spoke of the orchid and its pot"]


def test_summary_of_commands_is_not_recalled(memory) -> None:
    insert_summary(memory, PastSummary("c1", NOW, NOW, "Set the kitchen lights on"))

    assert find_turns(memory, "what about kitchen lights?") == []


def test_summary_with_a_replaced_fact_is_not_recalled(memory) -> None:
    old = memory.add_fact("The aquarium needs new plants")
    memory.add_fact("The aquarium needs new stones", replaces=old)
    insert_summary(memory, PastSummary("c1", NOW, NOW, "They said: the aquarium needs new plants"))

    assert find_turns(memory, "what about the aquarium?") == []


def test_sentence_of_a_script_without_spaces_is_weighed_by_pairs_of_characters(memory) -> None:
    memory.add_turn(turn("客用无线网络的密码在路由器背面"))
    memory.add_turn(turn("今天天气很好", conversation="c2"))

    assert find_turns(memory, "无线网络的密码是什么?") == ["客用无线网络的密码在路由器背面"]


def test_single_character_is_weighed_by_the_words_that_begin_with_it(memory) -> None:
    memory.add_turn(turn("猫喜欢鱼"))

    assert find_turns(memory, "猫?") == ["猫喜欢鱼"]


def test_name_of_the_speaker_is_no_evidence_beside_other_words(memory) -> None:
    memory.add_fact("Ben is allergic to nuts", person="ben")
    memory.add_turn(turn("Ben has a dentist appointment", person="ben"))

    asked = {"person": "ben", "speaker": "Ben"}
    assert find_facts(memory, "did I close the door when I left?", **asked) == []
    assert find_turns(memory, "did I forget something?", **asked) == []
    assert find_facts(memory, "what am I allergic to?", **asked) == ["Ben is allergic to nuts"]
