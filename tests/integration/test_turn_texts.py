"""Tests for the turn to which a text of a conversation or of memory belongs."""

import pytest

from custom_components.windowed_conversation.page.turn_texts import TurnTexts, TurnWords
from custom_components.windowed_conversation.record import TurnRecord
from tests.record.recorded import record

CONVERSATION = "a conversation"


def build_turn(number: int, begins: float, ends: float) -> TurnRecord:
    """Return the record of a turn of the model, without its text."""
    return record(number, time=begins, duration=ends - begins, route="model", conversation_id=CONVERSATION)


TURNS = [build_turn(1, 100.0, 104.0), build_turn(2, 104.5, 108.0)]
FIRST, SECOND = [turn["turn_id"] for turn in TURNS]


@pytest.mark.parametrize(
    ("at", "turn_id"), [(98.0, FIRST), (100.1, FIRST), (103.9, FIRST), (104.6, SECOND), (107.0, SECOND)]
)
def test_text_of_a_conversation_is_of_the_turn_in_which_it_was_added(at: float, turn_id: str) -> None:
    text = TurnWords(at, "is it raining")

    assert TurnTexts(opened={CONVERSATION: [text]}).find(TURNS) == {turn_id: text}


@pytest.mark.parametrize(("at", "turn_id"), [(103.9, FIRST), (104.4, FIRST), (107.9, SECOND), (108.3, SECOND)])
def test_text_of_memory_is_of_the_turn_that_ended_then(at: float, turn_id: str) -> None:
    text = TurnWords(at, "is it raining")

    assert TurnTexts(past={CONVERSATION: [text]}).find(TURNS) == {turn_id: text}


@pytest.mark.parametrize("at", [94.0, 109.0])
def test_text_of_another_time_is_of_no_turn(at: float) -> None:
    texts: dict[str | None, list[TurnWords]] = {CONVERSATION: [TurnWords(at, "is it raining")]}

    assert TurnTexts(texts, texts).find(TURNS) == {}
