"""Tests for the memories that are relevant to a sentence which did not ask for them."""

import pytest

from custom_components.windowed_conversation.memory import PastSummary, RecallQuery

from .content import DAY, NOW, get_texts, insert_summary, turn

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
