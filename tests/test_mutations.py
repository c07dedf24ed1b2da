"""Tests for the changes that `scripts/mutate.py` makes, and for the tests that it runs."""

import ast
from pathlib import Path

import pytest

from scripts.mutate import create_mutants, find_tests, select_mutants
from scripts.mutations import iter_mutations

MODULE = '''"""A module."""

from collections import deque

__all__ = ["take"]
type Names = list[str]


def take(names: Names, most: int = 3) -> Names:
    """Return the newest names."""
    kept: deque[str] = deque(maxlen=most)
    for name in names:
        if name and len(name) < 9:
            kept.append(name)
    return list(kept)
'''


@pytest.mark.parametrize(
    "change",
    [
        (9, "3", "4"),
        (13, "name and len(name) < 9", "not (name and len(name) < 9)"),
        (13, "name and len(name) < 9", "name or len(name) < 9"),
        (13, "len(name) < 9", "len(name) <= 9"),
        (13, "9", "10"),
        (14, "kept.append(name)", "pass"),
        (15, "return list(kept)", "return None"),
    ],
    ids=str,
)
def test_change_is_among_those_of_a_module(change: tuple[int, str, str]) -> None:
    assert change in {(each.line, each.before, each.after) for each in iter_mutations(MODULE)}


def test_what_only_declares_is_left_as_it_is() -> None:
    assert {each.line for each in iter_mutations(MODULE)} == {9, 13, 14, 15}


def test_each_change_is_a_module_of_its_own() -> None:
    changed = [each.source for each in iter_mutations(MODULE)]

    assert ast.unparse(ast.parse(MODULE)) not in changed
    assert len(set(changed)) == len(changed)
    assert all(ast.parse(source) for source in changed)


def test_tests_of_a_module_are_those_of_its_name_and_then_those_that_import_it() -> None:
    tests = find_tests(Path("agents", "hand_over.py"))

    assert tests[0] == "tests/integration/test_hand_over.py"
    assert "tests/integration/test_rooms.py" in tests
    assert len(tests) <= 12


def test_tests_of_a_folder_without_home_assistant_are_all_of_its_own() -> None:
    tests = find_tests(Path("store", "queue.py"))

    assert {str(Path(test).parent) for test in tests} == {"tests/store"}
    assert len(tests) == len({*tests}) > 3


def test_same_seed_selects_the_same_lines() -> None:
    mutants = create_mutants([Path("window", "policy.py")], seed=1)

    assert len(select_mutants(mutants, 1, 5, [])) == 5
    assert select_mutants(mutants, 1, 5, []) == select_mutants(mutants, 1, 5, [])


def test_named_lines_are_the_only_ones_that_change() -> None:
    mutants = create_mutants([Path("window", "policy.py")], seed=1)
    line = mutants[3].mutation.line

    assert {each.mutation.line for each in select_mutants(mutants, 1, 5, [line])} == {line}
