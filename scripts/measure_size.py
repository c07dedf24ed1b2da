"""Print the size of the integration and of its walks beside the baseline, which is the size of the last release.

    .venv/test/bin/python -m scripts.measure_size            ends with 1 if a size has grown by more than 5 %
    .venv/test/bin/python -m scripts.measure_size --write    also makes these sizes the baseline

Sizes are the lines of Python, the modules, the modules of the fullest folder, and for each sentence that
`tests/integration/test_walks.py` traces, the functions and modules that it passes and its changes of module. Tests
compare the same sizes with the baseline.
"""

import argparse
from collections import Counter
from collections.abc import Mapping
import json
from pathlib import Path
import subprocess
import sys
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "custom_components" / "windowed_conversation"
BASELINE_PATH = REPOSITORY / "tests" / "sizes.json"
_WALK_TESTS = "tests/integration/test_walks.py"

_TOLERATED_PERCENT = 5
_ADVICE = (
    "Make it smaller, or change the baseline in a commit that says why: "
    "`.venv/test/bin/python -m scripts.measure_size --write`"
)
_PASSED_EXIT_CODE, _FAILED_EXIT_CODE = 0, 1


def measure_package() -> dict[str, int]:
    """Return the sizes of the integration's Python code, by name."""
    modules = list(PACKAGE.rglob("*.py"))
    return {
        "lines": sum(len(path.read_text("utf-8").splitlines()) for path in modules),
        "modules": len(modules),
        "modules of the fullest folder": max(Counter(path.parent for path in modules).values()),
    }


def measure_walks() -> dict[str, int]:
    """Run the tests of the walks and return the sizes that they recorded as properties in pytest's report.

    Exits if a test failed before it recorded its sizes.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        # the newer form of the report has no properties of tests
        options = ("-q", "-o", "junit_family=xunit1", f"--junit-xml={report}")
        command = (sys.executable, "-m", "pytest", _WALK_TESTS, *options)
        run = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode not in {_PASSED_EXIT_CODE, _FAILED_EXIT_CODE}:
            sys.exit(run.stdout)
        cases = list(ET.parse(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    if any(case.find("properties") is None for case in failed):
        sys.exit(run.stdout)
    properties = [each.attrib for case in cases for each in case.iter("property")]
    return {each["name"]: int(each["value"]) for each in properties}


def read_baseline() -> dict[str, int]:
    """Return the sizes of the last release, by name."""
    baseline: dict[str, int] = json.loads(BASELINE_PATH.read_text("utf-8"))
    return baseline


def find_growth(sizes: Mapping[str, int], baseline: Mapping[str, int]) -> list[str]:
    """Return a message for each size that is more than 5 % above the baseline, or that the baseline does not have."""
    grown = []
    for name, size in sizes.items():
        if name not in baseline:
            grown.append(f"{name}: {size:,}, not in the baseline. {_ADVICE}")
        elif size * 100 > baseline[name] * (100 + _TOLERATED_PERCENT):
            grown.append(f"{name}: {size:,}, more than {_TOLERATED_PERCENT} % above {baseline[name]:,}. {_ADVICE}")
    return grown


def _format_row(name: str, size: int, before: int | None) -> str:
    if before is None:
        return f"{name:<40}{size:>8,}{'-':>10}"
    return f"{name:<40}{size:>8,}{before:>10,}{100 * (size - before) / before:>+9.1f} %"


def main() -> int:
    """Measure, print the table, write the baseline if asked to, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="make these sizes the baseline")
    arguments = parser.parse_args()
    sizes = {**measure_package(), **measure_walks()}
    baseline = read_baseline()
    print(f"{'size':<40}{'now':>8}{'baseline':>10}{'growth':>11}")
    for name, size in sizes.items():
        print(_format_row(name, size, baseline.get(name)))
    if arguments.write:
        BASELINE_PATH.write_text(json.dumps(sizes, indent=2) + "\n", "utf-8")
        return 0
    grown = find_growth(sizes, baseline)
    for message in grown:
        print(message)
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())
