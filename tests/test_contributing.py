"""Tests for the walks through the code in CONTRIBUTING.md: short, with existing functions, each leading to the next.

A function leads to the next one if it, or a helper in the same module, uses that function's name, or if both use the
name of the value that the walk gives between them.
"""

import ast
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
import re

import pytest

from .repository_files import PACKAGE, REPOSITORY

MAX_FUNCTIONS = 8
MAX_MODULES = 5

_LINE = re.compile(r"    (?P<module>[\w/]+\.py): (?P<name>[\w.]+)(?: -> (?P<left>\w+))?")


@dataclass(frozen=True)
class WalkStep:
    """A function in a walk. `left` is the value through which it leads to the next one, if it does not call that."""

    module: str
    name: str
    left: str | None

    def __str__(self) -> str:
        return f"{self.module}: {self.name}"

    @property
    def called(self) -> str:
        """The name by which the function is called."""
        return self.name.rpartition(".")[2]


def steps(block: str) -> list[WalkStep]:
    """Return the steps of a walk, or no steps if the block is not a walk."""
    lines = [_LINE.fullmatch(line) for line in block.splitlines()]
    found = [WalkStep(line["module"], line["name"], line["left"]) for line in lines if line]
    return found if len(found) == len(lines) else []


TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text()
BLOCKS = TEXT.split("\n\n")
WALKS = [walk for block in BLOCKS if (walk := steps(block))]
PAIRS = [pair for walk in WALKS for pair in pairwise(walk)]


@cache
def functions(module: str) -> dict[str, ast.AST]:
    """Return the functions of a module and the methods of its classes, by their qualified names."""
    tree = ast.parse((PACKAGE / module).read_text())
    scopes: list[tuple[str, ast.Module | ast.ClassDef]] = [
        ("", tree),
        *((f"{node.name}.", node) for node in tree.body if isinstance(node, ast.ClassDef)),
    ]
    return {
        f"{prefix}{node.name}": node
        for prefix, scope in scopes
        for node in scope.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def named_in(node: ast.AST) -> set[str]:
    """Return the names that a function uses, apart from those in its docstring."""
    kinds = (ast.Name, ast.Attribute, ast.arg, ast.keyword)
    used = [each for each in ast.walk(node) if isinstance(each, kinds)]
    return {str(value) for each in used for field, value in ast.iter_fields(each) if field in {"id", "attr", "arg"}}


def names(step: WalkStep) -> set[str]:
    """Return the names that a function and its helpers in the same module use."""
    known = functions(step.module)
    found, looked_at = named_in(known[step.name]), {step.name}
    while helpers := {name for name in known if name.rpartition(".")[2] in found} - looked_at:
        looked_at |= helpers
        found = found.union(*(named_in(known[name]) for name in helpers))
    return found


def test_each_subject_starts_in_a_file_that_is_there(subtests: pytest.Subtests) -> None:
    rows = TEXT.partition("## Where to start")[2].partition("\n## ")[0]
    index = re.findall(r"^\| (.+?) \| (`.+)\|$", rows, re.MULTILINE)

    assert len(index) > 20
    for subject, places in index:
        with subtests.test(subject=subject):
            assert [each for each in re.findall("`(.+?)`", places) if not list(PACKAGE.glob(each))] == []


def test_there_are_four_walks() -> None:
    assert len(WALKS) == 4


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: str(walk[0]))
def test_walk_is_short(walk: list[WalkStep]) -> None:
    assert len(set(walk)) == len(walk) <= MAX_FUNCTIONS
    assert len({step.module for step in walk}) <= MAX_MODULES


def test_function_on_a_walk_is_there(subtests: pytest.Subtests) -> None:
    for step in chain.from_iterable(WALKS):
        with subtests.test(step=str(step)):
            assert step.name in functions(step.module)


def test_function_on_a_walk_leads_to_the_next_one(subtests: pytest.Subtests) -> None:
    for step, following in PAIRS:
        with subtests.test(step=str(step), following=str(following)):
            handed_on = step.left or following.called

            assert handed_on in names(step)
            assert handed_on in names(following) | {following.called}
