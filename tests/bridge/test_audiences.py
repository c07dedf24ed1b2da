"""Tests for the audience of a fact, as people say it in each language: it decides, and is no part of the fact."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from custom_components.windowed_conversation.memory.bridge.sentences import RequestKind, match_request
from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.memory.turn.remember_requests import ReplyKey, remember_statement
from custom_components.windowed_conversation.memory.turn.speaker import UNDERSTOOD_LANGUAGES, Speaker

SENTENCES = [line.split("|") for line in (Path(__file__).parent / "audiences.txt").read_text("utf-8").splitlines()]
IS_PRIVATE = {"private": True, "everyone": False, "none": None}
ANNA = Speaker("", "en", "anna-id", "Anna", is_alone=True)
SOMEONE = Speaker("", "en")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory(tmp_path / "memory.db", ("en",))
    yield opened
    opened.close()


def test_the_audience_is_understood_and_cut_from_the_fact(subtests: pytest.Subtests) -> None:
    for language, audience, said, text in SENTENCES:
        with subtests.test(language=language, said=said):
            request = match_request(said, language)

            assert request is not None
            assert (request.kind, request.is_private, request.text) == (
                RequestKind.REMEMBER,
                IS_PRIVATE[audience],
                text,
            )


def test_each_language_has_both_audiences() -> None:
    assert {(language, audience) for language, audience, *_ in SENTENCES} >= {
        (language, audience) for language in UNDERSTOOD_LANGUAGES for audience in ("private", "everyone")
    }


def test_a_fact_of_the_home_is_private_if_that_is_said(memory: Memory) -> None:
    reply = remember_statement(memory, ANNA, "the safe code is 99", "the safe code is 99", is_private=True)

    assert reply.phrase is ReplyKey.REMEMBERED_OWN
    assert [(fact.person, fact.private) for fact in memory.get_facts("anna-id")] == [("anna-id", True)]


def test_a_fact_about_oneself_names_its_speaker_for_everyone(memory: Memory) -> None:
    reply = remember_statement(memory, ANNA, "I'm allergic to nuts", "I'm allergic to nuts", is_private=False)

    assert (reply.phrase, reply.fact_texts) == (ReplyKey.REMEMBERED_HOME, ("Anna: I'm allergic to nuts",))


def test_a_request_for_me_from_nobody_known_is_of_the_home(memory: Memory) -> None:
    request = "Note down for me that the bins go out on Friday"

    reply = remember_statement(memory, SOMEONE, "the bins go out on Friday", request)

    assert reply.phrase is ReplyKey.REMEMBERED_HOME


@pytest.mark.parametrize(
    ("text", "is_private"), [("the safe code is 99", True), ("I'm allergic to nuts", None), ("my name is Ada", False)]
)
def test_nobody_known_can_have_no_facts(memory: Memory, text: str, is_private: bool | None) -> None:
    assert remember_statement(memory, SOMEONE, text, text, is_private=is_private).phrase is ReplyKey.UNKNOWN_SPEAKER
