"""Tests for the script that checks the English in README, docs, interface texts and docstrings."""

import json

import pytest

from scripts import check_prose

from .repository_files import flat


@pytest.fixture(scope="module")
def linter():
    """Return the checker, which takes a second to create."""
    return check_prose.create_linter()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("The window is to smal.", "SpellCheck"),
        ("It reads, writes and deletes.", "OxfordComma"),
        ("This is an test.", "AnA"),
        (f"It says{' one word and then' * 20} the end.", "LongSentences"),
    ],
)
def test_a_mistake_is_found(linter, text: str, rule: str) -> None:
    assert rule in {finding.rule for finding in check_prose.iter_findings(linter, "text", text)}


@pytest.mark.parametrize("text", ['Say "forget that ..." to `HassTrunOn`.', "## Who answers", "llama.cpp needs 7 MB."])
def test_what_is_right_is_not_found(linter, text: str) -> None:
    assert list(check_prose.iter_findings(linter, "text", text)) == []


def test_a_finding_names_its_line(linter) -> None:
    (found,) = check_prose.iter_findings(linter, "page", "It is right.\n\nIt is wrnog.")

    assert (found.location, found.text) == ("page:3", "wrnog")


def test_every_interface_text_is_read() -> None:
    texts = json.loads(check_prose.TRANSLATIONS_FILE.read_text(encoding="utf-8"))

    assert len(list(check_prose.iter_interface_texts(texts))) == len(list(flat(texts)))


@pytest.mark.parametrize(
    "code",
    [
        '"""What is sent."""',
        'def sent():\n    """Return what is sent."""',
        'class Sent:\n    """How it was sent."""',
        'class Sent:\n    async def all(self):\n        """Yield who is there."""',
    ],
)
def test_docstring_without_a_noun_is_found(code: str) -> None:
    assert [finding.rule for finding in check_prose.iter_headless_docstrings("module", code)] == ["HeadlessDocstring"]


@pytest.mark.parametrize(
    "code",
    ['"""Requests to a model."""', 'def sent():\n    """Return the request, and what is left of it."""', "x = 1"],
)
def test_docstring_that_names_a_noun_is_right(code: str) -> None:
    assert list(check_prose.iter_headless_docstrings("module", code)) == []


@pytest.mark.parametrize(
    "code",
    ["x = 1  # what is sent", 'def sent():\n    """Return the request of who asked."""', '"""Say whatever it was."""'],
)
def test_clause_without_a_noun_is_found(code: str) -> None:
    assert [finding.rule for finding in check_prose.iter_headless_clauses("module", code)] == ["HeadlessClause"]


@pytest.mark.parametrize(
    "code", ['x = "what is sent"', '"""Answers to "what is my name?"."""', "# by how much, and who asked"]
)
def test_clause_in_an_example_is_right(code: str) -> None:
    assert list(check_prose.iter_headless_clauses("module", code)) == []


def test_folder_may_have_some_headless_clauses() -> None:
    few = "# what is sent" + " and a noun" * 500
    many = "# what is sent"

    found = check_prose.iter_excess_clauses([("tests/a.py", few), ("custom_components/a.py", few), ("demo/a.py", many)])

    assert [finding.location for finding in found] == ["demo/a.py:1"]
