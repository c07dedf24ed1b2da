"""The tests that `scripts/test quick` runs."""

from types import SimpleNamespace
from typing import Any

from tests.one_of_each import one_of_each

FORMATS = "abcd"


def chosen(*names: str) -> list[str]:
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    return [item.nodeid for item in one_of_each(items)]


def test_test_without_parameters_is_run() -> None:
    assert chosen("test_a.py::test_one", "test_a.py::test_two") == ["test_a.py::test_one", "test_a.py::test_two"]


def test_each_test_is_run_once_in_its_order() -> None:
    names = [f"test_a.py::{name}[{each}]" for name in ("test_two", "test_one") for each in FORMATS]

    assert [name.partition("[")[0] for name in chosen(*names)] == ["test_a.py::test_two", "test_a.py::test_one"]


def test_tests_take_turns_with_their_parameters() -> None:
    names = [f"test_a.py::test_{number}[{each}]" for number in range(100) for each in FORMATS]

    assert {name[-2] for name in chosen(*names)} == set(FORMATS)
