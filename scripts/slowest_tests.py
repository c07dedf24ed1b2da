"""Print the ten slowest tests of a run of `scripts/test`, in seconds with their fixtures.

The argument is the folder with pytest's JUnit files, which `scripts/test` passes.
"""

from collections.abc import Iterator
from pathlib import Path
import sys
from typing import NamedTuple
from xml.etree import ElementTree as ET

SHOWN_TESTS = 10


class StageTime(NamedTuple):
    """The seconds that a test took in a stage."""

    seconds: float
    stage: str
    test: str

    def __str__(self) -> str:
        return f"{self.seconds:7.1f} s  {self.stage:12} {self.test}"


def read_times(folder: Path) -> Iterator[StageTime]:
    """Yield the time of each test. The name of a file is that of its stage."""
    for file in folder.glob("*.xml"):
        for case in ET.parse(file).iter("testcase"):
            test = f"{case.get('file', '')}::{case.get('name', '')}"
            yield StageTime(float(case.get("time", 0)), file.stem, test)


def main() -> None:
    """Print the tests, the slowest one first."""
    times = sorted(read_times(Path(sys.argv[1])), reverse=True)
    if times:
        print("The slowest tests:")
        print(*times[:SHOWN_TESTS], sep="\n")


if __name__ == "__main__":
    main()
