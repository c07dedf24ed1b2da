"""Tests for the list of the slowest tests at the end of `scripts/test`."""

from pathlib import Path
import subprocess
import sys

import pytest

from scripts.slowest_tests import SHOWN_TESTS, StageTime, read_times

from .repository_files import REPOSITORY

SUITE = """
<testsuites><testsuite>
  <testcase classname="tests.test_{stage}" file="tests/test_{stage}.py" name="test_one" time="{seconds}"/>
  <testcase classname="tests.test_{stage}" file="tests/test_{stage}.py" name="test_quick[a-1]" time="0.01"/>
</testsuite></testsuites>
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a folder with the files of two stages."""
    for stage, seconds in (("unit", 2.5), ("e2e", 30)):
        (tmp_path / f"{stage}.xml").write_text(SUITE.format(stage=stage, seconds=seconds))
    return tmp_path


def test_times_of_all_stages_are_read(results: Path) -> None:
    assert sorted(read_times(results), reverse=True) == [
        StageTime(30, "e2e", "tests/test_e2e.py::test_one"),
        StageTime(2.5, "unit", "tests/test_unit.py::test_one"),
        StageTime(0.01, "unit", "tests/test_unit.py::test_quick[a-1]"),
        StageTime(0.01, "e2e", "tests/test_e2e.py::test_quick[a-1]"),
    ]


def test_slowest_test_comes_first_and_only_a_few_are_shown(results: Path) -> None:
    many = "".join(f'<testcase file="f" name="test_{number}" time="1"/>' for number in range(20))
    (results / "many.xml").write_text(f"<testsuites>{many}</testsuites>")
    command = [sys.executable, "scripts/slowest_tests.py", str(results)]

    lines = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()

    assert lines[1].split() == ["30.0", "s", "e2e", "tests/test_e2e.py::test_one"]
    assert len(lines) == 1 + SHOWN_TESTS


def test_stage_without_tests_shows_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/slowest_tests.py", str(tmp_path)]

    assert subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout == ""
