"""Tests for the benchmarks of the home: their simulated day is always the same, and states save requests."""

from collections import Counter
from pathlib import Path
import re
import subprocess
import sys

import pytest

from benchmarks.home_day import CHANGES_PER_ENTITY, CONVERSATION_LENGTHS, SimulatedDay

_REPOSITORY = Path(__file__).parent.parent.parent
_ROW = re.compile(r"^  (?P<name>core's agent|ours, states off|ours, states on) +(?P<right>\d+)/(?P<questions>\d+)"
                  r" +(?P<in_one>\d+)% +(?P<requests>\d+) .* (?P<stale>\d+)$", re.MULTILINE)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--obey",)], ids=["as usual", "obedient model"])
def test_states_answer_questions_in_one_request_and_are_never_stale(options: tuple[str, ...]) -> None:
    command = (sys.executable, "-m", "benchmarks.home", "--quick", *options)
    done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, timeout=600, check=True)
    core, off, on = (match.groupdict() for match in _ROW.finditer(done.stdout))

    assert {each["right"] for each in (core, off, on)} == {on["questions"]}
    assert (core["in_one"], off["in_one"]) == ("0", "0")
    assert int(on["in_one"]) >= 80
    assert int(on["requests"]) <= 0.7 * int(core["requests"])
    assert on["stale"] == "0"


SIZES = (20, 200, 2_000)


def count_changes(day: SimulatedDay) -> tuple[int, int]:
    changes = [change for sentence in day.sentences for change in sentence.changes]
    return sum(change.is_real for change in changes), len(changes)


@pytest.mark.parametrize("size", SIZES)
def test_home_has_the_size_and_each_thing_its_own_name(size: int) -> None:
    day = SimulatedDay(size)
    assert len({thing.name for thing in day.entities}) == len({thing.entity_id for thing in day.entities}) == size


@pytest.mark.parametrize("talk", CONVERSATION_LENGTHS)
def test_hundred_sentences_fall_into_the_conversations_of_the_talk(talk: str) -> None:
    lengths = Counter(Counter(sentence.conversation_number for sentence in SimulatedDay(200, talk).sentences).values())
    assert lengths == Counter(CONVERSATION_LENGTHS[talk])
    assert sum(CONVERSATION_LENGTHS[talk]) == 100


@pytest.mark.parametrize("talk", CONVERSATION_LENGTHS)
@pytest.mark.parametrize("size", SIZES[1:])
def test_nine_of_ten_changes_are_within_rounding(size: int, talk: str) -> None:
    real, changes = count_changes(SimulatedDay(size, talk))
    assert real / changes == pytest.approx(0.1, abs=0.01)
    assert changes == pytest.approx(size * CHANGES_PER_ENTITY, rel=0.05)


def test_sentences_are_of_the_kinds_of_the_mix() -> None:
    sentences = SimulatedDay(200).sentences
    assert Counter(sentence.kind for sentence in sentences) == {
        "state": 50,
        "measured": 10,
        "lights in area": 8,
        "lights": 2,
        "switch": 18,
        "make sure": 12,
    }
    assert sum(sentence.is_question for sentence in sentences) == 70


def test_same_day_is_the_same_each_time() -> None:
    assert SimulatedDay(200).sentences == SimulatedDay(200).sentences
