"""Tests for requests and questions in the words of people who have not read our sentences, in each language.

They are about turns, about what was learned, about privacy, about the audience of a fact, and about forgetting. There
are ordinary sentences among them.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
import json
from pathlib import Path

import pytest

from custom_components.windowed_conversation.agents.turn_questions import TurnQuestion, match_turn_question
from custom_components.windowed_conversation.memory.bridge.answers import FORGET_BY_KIND
from custom_components.windowed_conversation.memory.bridge.sentences import RequestKind, match_request
from custom_components.windowed_conversation.memory.core import Memory, base_language
from custom_components.windowed_conversation.memory.turn.remember_requests import ReplyKey, remember_statement
from custom_components.windowed_conversation.memory.turn.speaker import Speaker

TABLES = [json.loads(path.read_text("utf-8")) for path in sorted((Path(__file__).parent / "own_words").glob("*.json"))]
# Of a fact that does not stand in memory, these ask nothing and forget nothing.
PASSED_ON = {RequestKind.RECALL, RequestKind.FORGET_LAST, RequestKind.FORGET_THING}
FOUND = {ReplyKey.FORGOTTEN, ReplyKey.ASK_IF_MEANT, ReplyKey.ASK_TO_FORGET_FACT, ReplyKey.SEVERAL_FOUND}
# Only a model knows that a nurse has a job, that these are nuts, and that somebody is a year older on a birthday.
MISSED = {
    "en": ["delete what you know about my job"],
    "sv": ["glöm det där med nötterna"],
    "nl": ["haal dat over oma haar verjaardag maar weg"],
    "pt": ["aquilo de eu não poder comer marisco podes tirar"],
}

type Row = dict[str, str]
type Check = Callable[[Row, str, Path], bool]


def anna(row: Row, language: str) -> Speaker:
    return Speaker(row["say"], language, "anna-id", "Anna", is_alone=True)


def asks_about_turns(row: Row, language: str, _: Path) -> bool:
    # the sentence before named the same thing
    return match_turn_question(row["say"], language, lambda: row["say"]) == row["kind"]


def asks_memory(row: Row, language: str, _: Path, *, kind: RequestKind) -> bool:
    request = match_request(row["say"], language)
    return request is not None and request.kind is kind


def open_memory(path: Path, language: str) -> closing[Memory]:
    return closing(Memory(path, (base_language(language), "en")))


def is_remembered(row: Row, language: str, path: Path, *, is_private: bool) -> bool:
    request = match_request(row["say"], language)
    if request is None or request.kind is not RequestKind.REMEMBER:
        return False
    with open_memory(path, language) as memory:
        remember_statement(memory, anna(row, language), request.text, row["say"], is_private=request.is_private)
        (fact,) = memory.get_facts("anna-id", private=True)
    text = fact.text.casefold()
    is_whole = row["fact"].casefold() in text and row["not"].casefold() not in text
    return is_whole and (fact.private, fact.person) == (is_private, "anna-id" if is_private else None)


def is_found(row: Row, language: str, path: Path) -> bool:
    request = match_request(row["say"], language)
    forget = FORGET_BY_KIND.get(request.kind) if request else None
    if request is None or forget is None:
        return False
    with open_memory(path, language) as memory:
        memory.add_fact(row["stored"])
        memory.add_fact("The piano tuner is called Xaver Quill")
        reply = forget(memory, speaker=anna(row, language), query=request.text)
    return reply.phrase in FOUND and row["stored"] in reply.fact_texts


def is_ordinary(row: Row, language: str, _: Path) -> bool:
    request = match_request(row["say"], language)
    is_taken = request is not None and request.kind not in PASSED_ON
    return not is_taken and match_turn_question(row["say"], language, lambda: row["say"]) is None


CHECKS: dict[str, Check] = {
    **dict.fromkeys(TurnQuestion, asks_about_turns),
    "learned": partial(asks_memory, kind=RequestKind.LIST_LEARNED),
    "private": partial(asks_memory, kind=RequestKind.KEEP_PRIVATE),
    "for_me": partial(is_remembered, is_private=True),
    "for_all": partial(is_remembered, is_private=False),
    "forget": is_found,
    "none": is_ordinary,
}


@pytest.mark.parametrize("language", TABLES[0])
def test_people_are_understood_in_their_own_words(language: str, tmp_path: Path) -> None:
    rows = enumerate(row for table in TABLES for row in table[language])

    missed = [row["say"] for n, row in rows if not CHECKS[row["kind"]](row, language, tmp_path / f"{n}.db")]

    assert missed == MISSED.get(language, [])
