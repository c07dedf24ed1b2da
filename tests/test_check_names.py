"""Tests for `scripts/check_names.py`."""

import pytest

from scripts.check_names import iter_wrong_names

MODULE = '''
"""One module of several."""

from dataclasses import dataclass
import json
import sqlite3

from .record import Turn, read_turn

_MAX_TURNS = 3


@dataclass(slots=True)
class Base:
    """A base."""

    size: int


class Window(Base):
    """A window."""

    text: str = ""

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._start(limit)

    @property
    def is_full(self) -> bool:
        """Whether it is full."""
        number = self.count
        return number > _MAX_TURNS

    def _start(self, most: int) -> None:
        """Start."""
        read_turn(kind="new", at=self.count)


def list_turns(turn: Turn, amount: int) -> list[object]:
    """List turns."""
    row = turn.connection.execute("SELECT id, said FROM turns WHERE begun > ?")
    # loop
    return [row, amount, turn.kind]
'''
RECORD = '''
"""Another module."""


class Turn:
    """A turn."""

    kind: str
    connection: object

    def close(self) -> None:
        """Close it."""


def read_turn(**fields: object) -> None:
    """Read a turn."""
    fields["elsewhere"] = fields.pop("later")


def write_turn(amount: int) -> None:
    """Write a turn."""
'''
FOLDER = "custom_components/integration/"


def find_names(prose: str, replacement: str, path: str = f"{FOLDER}window.py") -> list[str]:
    """Return the names that are refused after a docstring or comment of the module is replaced."""
    code = MODULE.lstrip()
    assert code.count(prose) == 1
    sources = [(path, code.replace(prose, replacement)), (f"{FOLDER}record.py", RECORD.lstrip())]
    return [found.name for found in iter_wrong_names(sources)]


@pytest.mark.parametrize(
    ("prose", "lie"),
    [
        pytest.param("List turns.", "List at most `number` turns.", id="parameter that was renamed"),
        pytest.param("Start.", "Start, see `close`.", id="method of another class"),
        pytest.param("A window.", "A window. `kind` is its kind.", id="field of another class"),
        pytest.param("List turns.", "List turns by their `begun_at`.", id="attribute that does not exist"),
        pytest.param("List turns.", "List turns by their `kind`.", id="attribute of another value"),
        pytest.param("Start.", "Start a turn of this `kind`.", id="keyword of another function"),
        pytest.param("List turns.", "List turns by `later`.", id="string of another module"),
        pytest.param("List turns.", "List turns, see `write_turn`.", id="function that is not imported"),
        pytest.param("List turns.", "List turns, see `list_windows`.", id="function that was renamed"),
        pytest.param("A window.", "A window of turns, see `Turn.abort`.", id="method that a class lost"),
        pytest.param("Start.", "Start with `Window.limit`.", id="argument of a constructor as a field"),
        pytest.param("List turns.", "List turns until `turn.size`.", id="attribute of a parameter's class"),
        pytest.param("# loop", "# all of `rows`", id="comment"),
        pytest.param("One module of several.", "One module, see `start`.", id="docstring of a module"),
        pytest.param("One module of several.", "One module, see `records.Turn`.", id="module that does not exist"),
        pytest.param("Whether it is full.", "Whether `total` is too high.", id="local of a property"),
        pytest.param("Whether it is full.", "Whether it has reached `limit`.", id="argument of another method"),
        pytest.param("A window.", "A window. `number` counts its turns.", id="local of a method as a field"),
        pytest.param("Start.", "Start, as `Finished` says.", id="class that was renamed"),
        pytest.param("List turns.", "List turns, see `read_turns(turn)`.", id="call of no function"),
        pytest.param("List turns.", "List turns with `amounts=3`.", id="keyword argument"),
        pytest.param("List turns.", "List turns, see `json.JSONError`.", id="class that a library lost"),
        pytest.param("List turns.", "List turns, see `window/exchanges.py`.", id="file that does not exist"),
    ],
)
def test_name_that_names_nothing_is_refused(prose: str, lie: str) -> None:
    (name,) = find_names(prose, lie)

    assert f"`{name}`" in lie or f"`{name}(" in lie or f"`{name}=" in lie


@pytest.mark.parametrize(
    ("prose", "truth"),
    [
        pytest.param("List turns.", "List `amount` turns.", id="parameter"),
        pytest.param("List turns.", "List `turn` by `turn.kind` and `row`.", id="attribute and local"),
        pytest.param("List turns.", "List the `said` of `turns`.", id="SQL"),
        pytest.param("List turns.", "List `_MAX_TURNS` by `read_turn`.", id="names of the module"),
        pytest.param("List turns.", "List turns, see `Turn.close` and `record.write_turn`.", id="dotted names"),
        pytest.param("List turns.", "Raises `sqlite3.Error` and `ValueError`.", id="errors of Python"),
        pytest.param("List turns.", "See `pytest.mark` and `custom_components/`.", id="package and folder"),
        pytest.param("List turns.", "See `read_turn(turn)`, `amount=3`, and `GET /turns`.", id="calls and commands"),
        pytest.param("A window.", "A window. `size`, `text`, `count`, and `is_full`.", id="members of a class"),
        pytest.param("A window.", "A window for up to `limit` turns.", id="argument of the constructor"),
        pytest.param("Start.", "Start a `new` window, with `most` turns and its `size`.", id="string and member"),
        pytest.param("# loop", "# each `row`\n    # of the\n    # `amount`", id="comment"),
        pytest.param("_MAX_TURNS = 3", "# `_MAX_TURNS` of `Window`\n_MAX_TURNS = 3", id="comment on a constant"),
        pytest.param("@dataclass", "# `size` of a `dataclass`\n@dataclass", id="comment on a class"),
        pytest.param("One module of several.", "Beside `record`, with `Window`.", id="module beside a module"),
    ],
)
def test_name_that_exists_is_accepted(prose: str, truth: str) -> None:
    assert find_names(prose, truth) == []


def test_refused_name_has_its_line() -> None:
    docstring = 'def start(turn):\n    """Start.\n\n    Return `turn` and\n    `turns`.\n    """\n'
    comment = "# This is\n# a `window\n# of turns`, `windows`\n"

    found = list(iter_wrong_names([("scripts/a.py", docstring + comment)]))

    assert [(each.line, each.name) for each in found] == [(5, "turns"), (9, "windows")]


def test_integration_does_not_name_what_only_tests_have() -> None:
    tests = ("tests/a.py", "class Stub:\n    pass\n")
    code = '"""Answers of a `Stub`."""\n'

    assert [each.name for each in iter_wrong_names([tests, (f"{FOLDER}a.py", code)])] == ["Stub"]
    assert list(iter_wrong_names([tests, ("demo/a.py", code)])) == []


def test_class_docstring_with_many_fields_is_refused() -> None:
    names = ["text", "size", "kind", "begun"]
    fields = "".join(f"    {name}: str\n" for name in names)

    def list_findings(*named: str) -> list[str]:
        docstring = " ".join(f"`{name}`" for name in named)
        code = f'class Turn:\n    """A turn. {docstring}"""\n\n{fields}\n    def close(self):\n        self.end = ""\n'
        return [each.name for each in iter_wrong_names([("scripts/a.py", code)])]

    assert list_findings(*names[:3], "close") == []
    assert list_findings(*names) == ["Turn explains 4 fields in its docstring"]
    assert list_findings(*names[:3], "end") == ["Turn explains 4 fields in its docstring"]
