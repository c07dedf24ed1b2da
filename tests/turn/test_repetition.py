"""Tests for the difference between a loop of tool calls and a model that only checks its work."""

from collections.abc import Iterable

import pytest

from custom_components.windowed_conversation.turn.repetition import RepetitionDetector
from custom_components.windowed_conversation.window import ToolCall

READS = frozenset({"look", "look_there", "clock"})


def told(*rounds: Iterable[tuple[str, str]]) -> tuple[list[bool], bool]:
    """Return for each call whether the model gets a note, and finally whether the loop continued after one.

    A round consists of tool names with their results. The tools in `READS` are read-only.
    """
    repetition, found = RepetitionDetector(), list[bool]()
    for calls in rounds:
        repetition.begin_round()
        for name, result in calls:
            call = ToolCall(f"call_{len(found)}", name, {"name": "lamp"})
            found.append(repetition.add_call(call, result, read_only=name in READS))
    return found, repetition.is_note_ignored


def one_by_one(*names: str) -> tuple[list[bool], bool]:
    """Return the result of `told` if each call has its own round, and all results of a tool are the same."""
    return told(*([(name, f"result of {name}")] for name in names))


@pytest.mark.parametrize("name", ["look", "switch_on"])
def test_third_equal_call_with_an_equal_result_is_told(name: str) -> None:
    assert one_by_one(name, name, name) == ([False, False, True], False)


@pytest.mark.parametrize("name", ["look", "switch_on"])
def test_fourth_equal_call_is_one_too_many(name: str) -> None:
    assert one_by_one(name, name, name, name) == ([False, False, True, True], True)


def test_another_result_is_news() -> None:
    results = ([("look", result)] for result in ("off", "off", "on", "on", "off", "off"))

    assert told(*results) == ([False] * 6, False)


@pytest.mark.parametrize(
    "calls",
    [
        ("look", "switch_on", "look", "switch_off", "look"),
        ("look", "switch_on", "look", "switch_on", "look"),
        ("look", "look", "switch_on", "look", "look", "switch_off", "look", "look"),
        ("look", "look_there", "switch_on", "look", "look_there", "dim", "look", "look_there"),
        ("look", "switch_on", "dim", "look", "switch_on", "dim", "look"),
    ],
)
def test_checking_ones_work_is_no_loop(calls: tuple[str, ...]) -> None:
    found, goes_on = one_by_one(*calls)

    assert [name for name, is_told in zip(calls, found, strict=True) if is_told and name in READS] == []
    assert not goes_on


def test_change_that_is_checked_each_time_is_told_for_the_change() -> None:
    found, _ = one_by_one("switch_on", "look", "switch_on", "look", "switch_on", "look")

    assert found == [False, False, False, False, True, False]


@pytest.mark.parametrize(
    "pattern", [("look", "look_there"), ("on", "off"), ("look", "look_there", "clock"), ("on", "off", "dim")]
)
def test_pattern_is_told_with_its_last_call_and_is_a_loop_when_it_comes_again(pattern: tuple[str, ...]) -> None:
    twice, goes_on = one_by_one(*pattern, *pattern)
    _, goes_on_after_it = one_by_one(*pattern, *pattern, *pattern)

    assert twice == [*[False] * (2 * len(pattern) - 1), True]
    assert (goes_on, goes_on_after_it) == (False, True)


def test_pattern_with_other_results_is_none() -> None:
    rounds = ([(name, str(at))] for at, name in enumerate(("on", "off", "on", "off", "on", "off")))

    assert told(*rounds) == ([False] * 6, False)


def test_equal_calls_of_one_answer_are_one() -> None:
    switched = ("switch_on", "done")

    assert told([switched, switched, switched], [switched]) == ([False] * 4, False)


def test_other_arguments_make_another_call() -> None:
    repetition = RepetitionDetector()
    found = [
        repetition.add_call(ToolCall(f"call_{at}", "look", {"area": area}), "nothing", read_only=True)
        for at, area in enumerate(("Kitchen", "Hall", "Attic", "Cellar"))
    ]

    assert found == [False] * 4


def test_arguments_in_another_order_are_the_same() -> None:
    repetition, found = RepetitionDetector(), []
    for at, arguments in enumerate(({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}) * 2):
        repetition.begin_round()
        found.append(repetition.add_call(ToolCall(f"call_{at}", "act", arguments), "done", read_only=False))

    assert found == [False, False, True, True]
