"""Tests for the plugins that shuffle tests and that choose one of each."""

from itertools import groupby
from types import SimpleNamespace
from typing import Any

from tests.one_of_each import half_of_integration, select_one
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


FORMATS = "abcd"


def test_tests_take_turns_with_their_parameters() -> None:
    assert {select_one(FORMATS, f"test_a.py::test_{number}") for number in range(100)} == set(FORMATS)
    assert len({select_one(FORMATS, "test_a.py::test_one") for _ in range(3)}) == 1


def test_every_second_test_with_a_home_assistant_runs_and_one_of_each_file() -> None:
    names = ["integration/test_a.py::one", "integration/test_a.py::two", "integration/test_b.py::one", "test_c.py::one"]
    items: list[Any] = [SimpleNamespace(nodeid=f"tests/{name}") for name in (*names, "test_c.py::two")]

    assert half_of_integration(items) == [items[0], *items[2:]]
