"""Tests with a year of dialogues: the share of questions whose answer is found, compared with plain FTS5."""

import re
import sqlite3

import pytest

from custom_components.windowed_conversation.memory.core import Memory, PastTurn
from custom_components.windowed_conversation.memory.core.words import get_function_words

from .content import get_texts
from .dialogues import found_in_tokens, found_in_turns, questions, utterances

_MOST = 60


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    memory = Memory(tmp_path_factory.mktemp("dialogues") / "memory.db", ("en",))
    for said in utterances():
        memory.add_turn(PastTurn(said.session_day, said.at, said.text, ""))
    yield lambda question: get_texts(memory.recall(question, kinds=("turn",), limit=_MOST))
    memory.close()


@pytest.fixture(scope="module", params=["porter", "trigram"])
def plain(request):
    index = sqlite3.connect(":memory:")
    index.execute(f"CREATE VIRTUAL TABLE said USING fts5(text, tokenize='{request.param}')")
    index.executemany("INSERT INTO said VALUES (?)", [(said.text,) for said in utterances()])
    dropped = get_function_words(("en",), "stop")

    def search(question):
        words = [word for word in re.findall(r"\w{3,}", question.lower()) if word not in dropped]
        query = "SELECT text FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?"
        return [text for (text,) in index.execute(query, (" OR ".join(words), _MOST))]

    yield search
    index.close()


def test_the_set_is_long() -> None:
    assert len(utterances()) >= 500
    assert len(questions()) >= 60


def test_more_is_found_in_ten_turns(ours, plain) -> None:
    assert found_in_turns(ours, 10) > found_in_turns(plain, 10) + 0.1


def test_more_is_found_in_three_hundred_tokens(ours, plain) -> None:
    assert found_in_tokens(ours, 300) > found_in_tokens(plain, 300) + 0.1


def test_as_much_is_found_as_ever(ours) -> None:
    assert found_in_turns(ours, 10) >= 0.58
    assert found_in_tokens(ours, 300) >= 0.8
