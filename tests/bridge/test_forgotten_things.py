"""Tests for requests to forget a fact in other words than it was told: inflected, or as a part of a compound."""

from pathlib import Path

import pytest

from custom_components.windowed_conversation.memory.bridge.answers import FORGET_BY_KIND
from custom_components.windowed_conversation.memory.bridge.sentences import RequestKind, match_request
from custom_components.windowed_conversation.memory.core import Memory, PastTurn, base_language
from custom_components.windowed_conversation.memory.turn.forgetting import ask_to_forget_thing
from custom_components.windowed_conversation.memory.turn.remember_requests import ReplyKey
from custom_components.windowed_conversation.memory.turn.speaker import Speaker

SENTENCES = (Path(__file__).parent / "forgotten_things.txt").read_text("utf-8").splitlines()
FOUND = {ReplyKey.FORGOTTEN, ReplyKey.ASK_IF_MEANT, ReplyKey.ASK_TO_FORGET_FACT}
SOMEONE = Speaker("", "en")


def test_a_fact_is_found_or_asked_about_in_other_words(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, line in enumerate(SENTENCES):
        language, fact, said = line.split("|")
        memory = Memory(tmp_path / f"{number}.db", (base_language(language), "en"))
        memory.add_fact(fact)
        memory.add_fact("the bus leaves at 8")
        request = match_request(said, language)
        with subtests.test(language=language, said=said):
            assert request is not None
            assert FORGET_BY_KIND[request.kind](memory, Speaker(said, language), request.text).phrase in FOUND
        memory.close()


def test_a_thing_is_asked_about_and_its_turns_stay(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.db", ("en",))
    memory.add_turn(PastTurn("c1", 1.0, "I'd like some pizza", "Enjoy it.", "a1", None))
    request = match_request("Forget the pizza", "en")
    before = ask_to_forget_thing(memory, SOMEONE, "pizza")
    memory.add_fact("Anna likes pizza")
    asked = ask_to_forget_thing(memory, SOMEONE, "pizza")
    memory.close()

    assert request is not None
    assert (request.kind, request.text) == (RequestKind.FORGET_THING, "pizza")
    assert (before.phrase, before.on_yes) == (ReplyKey.NOT_FOUND, None)
    assert (asked.phrase, asked.fact_texts) == (ReplyKey.ASK_TO_FORGET_FACT, ("Anna likes pizza",))
