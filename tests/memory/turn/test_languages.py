"""Tests that memory works in languages whose words change or are not separated: recall, updates and forgetting."""

from collections.abc import Iterator
from datetime import UTC, datetime
import json
from pathlib import Path
from typing import Any

import pytest

from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.memory.turn.forgetting import forget_everything, forget_fact
from custom_components.windowed_conversation.memory.turn.recall_query import build_recall_query
from custom_components.windowed_conversation.memory.turn.remember_requests import ReplyKey, remember_statement
from custom_components.windowed_conversation.memory.turn.speaker import Speaker

HOUSEHOLDS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("households.json").read_text(encoding="utf-8")
)
QUESTIONS = [
    (language, question, fact)
    for language, household in HOUSEHOLDS.items()
    for fact, question in household["questions"].items()
]


def ada(text: str, language: str) -> Speaker:
    return Speaker(text, language, "ada-id", "Ada", is_alone=True)


@pytest.fixture
def memory(tmp_path: Path, language: str) -> Iterator[Memory]:
    """Yield the memory of a home that speaks the language and knows the facts of its household."""
    memory = Memory(tmp_path / "memory.db", (language, "en"))
    for fact in HOUSEHOLDS[language]["questions"]:
        remember_statement(memory, ada(fact, language), fact, fact)
    yield memory
    memory.close()


@pytest.mark.parametrize(("language", "question", "fact"), QUESTIONS)
def test_question_recalls_the_fact_that_answers_it(memory: Memory, language: str, question: str, fact: str) -> None:
    now = datetime(2026, 11, 26, 16, 30, tzinfo=UTC)

    facts, _ = memory.recall_relevant(build_recall_query(ada(question, language), now, frozenset()))

    assert facts[0].text == fact


@pytest.mark.parametrize("language", HOUSEHOLDS)
def test_fact_with_another_day_updates_the_old_one(memory: Memory, language: str) -> None:
    household = HOUSEHOLDS[language]

    reply = remember_statement(memory, ada(household["update"], language), household["update"], household["update"])

    assert [each.fact_texts for each in reply.others] == [(next(iter(household["questions"])),)]


@pytest.mark.parametrize("language", HOUSEHOLDS)
def test_fact_is_forgotten_by_its_words(memory: Memory, language: str) -> None:
    fact = next(iter(HOUSEHOLDS[language]["questions"]))

    reply = forget_fact(memory, ada(fact, language), fact)

    assert (reply.phrase, reply.fact_texts) == (ReplyKey.FORGOTTEN, (fact,))


@pytest.mark.parametrize("language", HOUSEHOLDS)
def test_subject_is_forgotten_in_another_form_of_its_word(memory: Memory, language: str) -> None:
    household = HOUSEHOLDS[language]

    reply = forget_everything(memory, ada(household["subject"], language), household["subject"])

    assert (reply.phrase, reply.fact_texts) == (ReplyKey.FORGOTTEN, (list(household["questions"])[-1],))
