"""Tests for the selection of tests that `scripts/test quick` runs."""

from types import SimpleNamespace
from typing import Any

from tests.one_of_each import half_of_integration, select_one

FORMATS = "abcd"


def test_tests_take_turns_with_their_parameters() -> None:
    assert {select_one(FORMATS, f"test_a.py::test_{number}") for number in range(100)} == set(FORMATS)
    assert len({select_one(FORMATS, "test_a.py::test_one") for _ in range(3)}) == 1


def test_every_second_test_with_a_home_assistant_runs_and_one_of_each_file() -> None:
    names = ["integration/test_a.py::one", "integration/test_a.py::two", "integration/test_b.py::one", "test_c.py::one"]
    items: list[Any] = [SimpleNamespace(nodeid=f"tests/{name}") for name in (*names, "test_c.py::two")]

    assert half_of_integration(items) == [items[0], *items[2:]]
