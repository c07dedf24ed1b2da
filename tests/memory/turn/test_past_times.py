"""Tests for questions about a past time, in twelve languages: they find that time, and no other."""

from datetime import UTC, datetime
import json
from pathlib import Path
from typing import Any

import pytest

from custom_components.windowed_conversation.memory.core import Memory, PastTurn
from custom_components.windowed_conversation.memory.turn.recall_query import build_recall_query
from custom_components.windowed_conversation.memory.turn.speaker import Speaker

NOW = datetime(2026, 11, 26, 18, 30, tzinfo=UTC)
TIMES = {"yesterday": (11, 25, 21), "last_week": (11, 18, 20), "earlier": (9, 8, 20)}
SPOKEN: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("past_questions.json").read_text(encoding="utf-8")
)
QUESTIONS = [
    (language, when, question)
    for language, spoken in SPOKEN.items()
    for when in ("yesterday", "last_week")
    for question in spoken[f"about_{when}"]
]
STATES = [
    ("en", "how warm was it yesterday?"),
    ("en", "was it warm last week?"),
    ("de", "wie warm war es gestern?"),
    ("de", "war es letzte Woche warm?"),
    ("fr", "est-ce qu'il faisait chaud hier ?"),
]


def recall(path: Path, language: str, question: str) -> list[str]:
    """Return the turns that a question finds of three: yesterday's, last week's, and one of September."""
    memory = Memory(path / f"{language}.db", (language, "en"))
    for when, (month, day, hour) in TIMES.items():
        at = datetime(2026, month, day, hour, tzinfo=UTC).timestamp()
        memory.add_turn(PastTurn(when, at, SPOKEN[language][when], "", person="ada"))
    speaker = Speaker(question, language, person="ada", name="Ada", is_alone=True)
    facts, found = memory.recall_relevant(build_recall_query(speaker, NOW, frozenset()))
    memory.close()
    return [each.text for each in (*facts, *found)]


def test_question_about_a_past_time_finds_that_time_and_no_other(tmp_path, subtests: pytest.Subtests) -> None:
    for number, (language, when, question) in enumerate(QUESTIONS):
        with subtests.test(question):
            (tmp_path / str(number)).mkdir()
            assert recall(tmp_path / str(number), language, question) == [SPOKEN[language][when]]


@pytest.mark.parametrize("question", ["where do we see curtains today?", "when do we buy curtains in December?"])
def test_question_about_a_time_that_is_not_over_also_finds_what_was_said_before(tmp_path, question) -> None:
    assert recall(tmp_path, "en", question) == [SPOKEN["en"]["earlier"]]


@pytest.mark.parametrize(("language", "question"), STATES)
def test_question_about_a_state_of_the_past_finds_nothing_of_another_time(tmp_path, language, question) -> None:
    assert recall(tmp_path, language, question) == []
