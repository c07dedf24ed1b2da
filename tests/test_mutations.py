"""Tests for the changes that `scripts/mutate.py` makes."""

import ast

import pytest

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
