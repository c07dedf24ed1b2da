"""Tests for sentences that nobody has read who wrote the templates: how many of them are understood in each language.

The share is that of a family's next sentence, as long as no template is written for a row of this table.
"""

from collections.abc import Callable
import json
from pathlib import Path
from typing import Any

import pytest

from custom_components.windowed_conversation.memory.bridge.sentences import RequestKind, match_request
from custom_components.windowed_conversation.memory.core import Memory, base_language
from custom_components.windowed_conversation.memory.turn.replies import parse_yes_no
from tests.reminders.test_spoken_requests import understand

from .test_own_words import CHECKS

type Row = dict[str, Any]

TABLES = json.loads(Path(__file__).with_name("unread_sentences.json").read_text("utf-8"))
ANSWERS = {"yes": True, "no": False, "neither": None}
# A question about facts may also be one about earlier conversations, and a request about a thing may name it alone.
KINDS = {
    "remember": {RequestKind.REMEMBER},
    "known": {RequestKind.LIST_FACTS, RequestKind.LIST_LEARNED, RequestKind.RECALL},
    "forget_fact": {RequestKind.FORGET, RequestKind.FORGET_THING, RequestKind.FORGET_EVERYTHING},
    "forget_everything": {RequestKind.FORGET_EVERYTHING},
    "forget_last": {RequestKind.FORGET_LAST, RequestKind.UNDO},
    "hears": {RequestKind.LIST_LISTENERS},
    "correct": {RequestKind.CORRECT, RequestKind.POSSIBLY_CORRECT},
}


def is_request_understood(row: Row, language: str, _: Path) -> bool:
    request = match_request(row["say"], language)
    if request is None or request.kind not in KINDS[row["kind"]]:
        return False
    found, text = request.text.casefold(), row["text"].casefold()
    return found == text if row["kind"] == "remember" else found in text or text in found or not text


def are_own_words_understood(row: Row, language: str, path: Path) -> bool:
    memory = Memory(path, (base_language(language), "en"))
    is_understood = CHECKS[row["kind"]](row, language, memory)
    memory.close()
    return is_understood


def is_reminder_understood(row: Row, language: str, _: Path) -> bool:
    expected = {name: value for name, value in row.items() if name != "say"}
    return understand(row["say"], base_language(language), row.get("text", "")) == expected


def is_reply_understood(row: Row, language: str, _: Path) -> bool:
    return parse_yes_no(row["say"], base_language(language), to_memory=True) is ANSWERS[row["kind"]]


@pytest.mark.parametrize(
    ("group", "is_understood", "percent"),
    [
        ("requests", is_request_understood, 82),
        ("own_words", are_own_words_understood, 72),
        ("reminders", is_reminder_understood, 88),
        ("replies", is_reply_understood, 93),
    ],
)
def test_most_sentences_of_a_stranger_are_understood(
    group: str, is_understood: Callable[[Row, str, Path], bool], percent: int, tmp_path: Path
) -> None:
    rows = [(row, language) for language, groups in TABLES.items() for row in groups[group]]

    understood = [is_understood(row, language, tmp_path / f"{n}.db") for n, (row, language) in enumerate(rows)]

    assert sum(understood) >= percent / 100 * len(rows)


@pytest.mark.parametrize("language", TABLES)
def test_nothing_but_a_yes_of_a_stranger_deletes(language: str) -> None:
    others = [row["say"] for row in TABLES[language]["replies"] if row["kind"] != "yes"]

    assert [said for said in others if parse_yes_no(said, base_language(language), to_memory=True)] == []
