"""Tests for the plugin that shuffles tests."""

from itertools import groupby
from types import SimpleNamespace
from typing import Any

from tests.random_order import shuffle

ITEMS: list[Any] = [
    SimpleNamespace(nodeid=f"tests/test_{file}.py::test_{number}") for file in "abcd" for number in range(9)
]


def test_same_seed_leads_to_the_same_order_and_another_to_another() -> None:
    assert shuffle(ITEMS, "1") == shuffle(ITEMS, "1") != shuffle(ITEMS, "2")


def test_each_test_runs_once_and_those_of_a_file_stay_together() -> None:
    shuffled = shuffle(ITEMS, "1")
    assert sorted(item.nodeid for item in shuffled) == [item.nodeid for item in ITEMS]
    assert len(list(groupby(shuffled, key=lambda item: item.nodeid[:12]))) == 4
