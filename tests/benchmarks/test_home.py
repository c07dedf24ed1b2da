"""Tests that an agent with states answers questions in one request, with the twenty sentences of `--quick`."""

from pathlib import Path
import re
import subprocess
import sys

import pytest

_REPOSITORY = Path(__file__).parent.parent.parent
_ROW = re.compile(r"^  (?P<name>core's agent|ours, states off|ours, states on) +(?P<right>\d+)/(?P<questions>\d+)"
                  r" +(?P<in_one>\d+)% +(?P<requests>\d+) .* (?P<stale>\d+)$", re.MULTILINE)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--obey",)], ids=["as usual", "obedient model"])
def test_states_answer_questions_in_one_request_and_are_never_stale(options: tuple[str, ...]) -> None:
    command = (sys.executable, "-m", "benchmarks.home", "--quick", *options)
    done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, timeout=600, check=True)
    core, off, on = (match.groupdict() for match in _ROW.finditer(done.stdout))

    assert {each["right"] for each in (core, off, on)} == {on["questions"]}
    assert (core["in_one"], off["in_one"]) == ("0", "0")
    assert int(on["in_one"]) >= 80
    assert int(on["requests"]) <= 0.7 * int(core["requests"])
    assert on["stale"] == "0"
