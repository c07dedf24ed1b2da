"""Change lines of modules one at a time, and print which changes the tests of these modules do not notice.

    .venv/test/bin/python -m scripts.mutate turn/routing.py window/policy.py    (60 lines, two at a time)
    .venv/test/bin/python -m scripts.mutate turn/routing.py --lines 31 40       (these lines alone)

Paths are relative to the integration. The tests of a module are those that have its name or import it; in a folder that
knows no Home Assistant, all others of the folder follow. Tests that are marked as long are left out. After `--minutes`,
no further change is tried. Only copies of the repository are changed, never the repository itself. Each seed selects a
different but reproducible set of lines. Ends with 1 if less than 95 % of the changes are caught; a test that hangs
counts as having caught a change.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
import itertools
import os
from pathlib import Path
from queue import SimpleQueue
from random import Random
import re
import shutil
import signal
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import monotonic

from scripts.mutations import Mutation, iter_mutations

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE_PATH = Path("custom_components/windowed_conversation")
# Folders whose tests run without Home Assistant, which saves most of the time.
_PURE_FOLDERS = ("home/core", "memory/core", "memory/turn", "providers", "record", "store", "turn", "window")
_PURE_OPTIONS = ("-p", "no:homeassistant", "-p", "tests.without_home_assistant")
_MIN_CAUGHT_SHARE = 0.95
# Exit codes of pytest: 0 if all tests passed, 1 if some failed, 2 and 4 if a test or a conftest.py cannot be imported.
_PASSED_EXIT_CODE, _FAILED_EXIT_CODES = 0, {1, 2, 4}
# Files with Home Assistant take seconds each.
_MAX_TEST_FILES = 12
# In seconds, long before the repository was.
_times = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one line in a module; `path` is relative to the package."""

    path: Path
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.path}:{self.mutation.line}  {self.mutation.before}  ->  {self.mutation.after}"

    def write_to(self, copy: Path) -> None:
        """Write the changed module to a copy of the repository.

        Its time is that of no other change, because two changes within the same second would share cached bytecode.
        """
        module = copy / PACKAGE_PATH / self.path
        module.write_text(self.mutation.source)
        os.utime(module, (0, next(_times)))


def create_mutants(paths: list[Path], seed: int) -> list[Mutant]:
    """Return one randomly selected change for each line of the modules that can be changed."""
    mutants = []
    for path in paths:
        by_line: dict[int, list[Mutation]] = {}
        for mutation in iter_mutations((REPOSITORY / PACKAGE_PATH / path).read_text()):
            by_line.setdefault(mutation.line, []).append(mutation)
        mutants += [Mutant(path, Random(f"{seed}:{path}:{line}").choice(found)) for line, found in by_line.items()]
    return mutants


def select_mutants(mutants: list[Mutant], seed: int, count: int, lines: list[int]) -> list[Mutant]:
    """Return the mutants of these lines, or else `count` random mutants."""
    if lines:
        return [mutant for mutant in mutants if mutant.mutation.line in lines]
    return Random(seed).sample(mutants, min(count, len(mutants)))


def find_tests(path: Path) -> list[str]:
    """Return the test files of a module, those most likely to notice a change first.

    A file with the module's name comes first, then those that import it. For a folder that knows no Home Assistant, all
    its other files follow, because they are quick. Of the others there are at most twelve files, those in the module's
    folder first, or all of that folder if none imports the module.
    """
    folder = REPOSITORY / "tests" / path.parts[0]
    is_pure = any(map(path.is_relative_to, _PURE_FOLDERS))
    everywhere = folder if is_pure else REPOSITORY / "tests"
    files = [each for each in sorted(everywhere.rglob("test_*.py")) if "e2e" not in each.parts]
    module = re.compile(rf"[. ]{path.stem} import |import (?:.*, )?{path.stem}\b")
    own = [each for each in files if each.stem == f"test_{path.stem}"]
    importing = [each for each in files if module.search(each.read_text()) and each not in own]
    importing.sort(key=lambda each: not each.is_relative_to(folder))
    near = [each for each in files if each.is_relative_to(folder) and each not in own + importing]
    found = own + importing + near if is_pure else (own + importing)[:_MAX_TEST_FILES] or near
    return [str(file.relative_to(REPOSITORY)) for file in found]


def run_tests(copy: Path, path: Path, limit: float | None) -> int | None:
    """Return pytest's exit code, or None if it did not end within the time limit."""
    shutil.rmtree(copy / ".hypothesis", ignore_errors=True)
    options = ("-qx", "-m", "not long", "-p", "no:cacheprovider", "-p", "tests.no_shrinking", "--hypothesis-seed=0")
    pure_options = _PURE_OPTIONS if any(map(path.is_relative_to, _PURE_FOLDERS)) else ()
    child = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *pure_options, "-o", "timeout=120", *find_tests(path)],
        cwd=copy,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return child.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def is_caught(mutant: Mutant, copy: Path, limit: float) -> bool:
    """Return whether the tests notice a mutant. The copy of the repository is restored afterwards."""
    mutant.write_to(copy)
    try:
        code = run_tests(copy, mutant.path, limit)
    finally:
        shutil.copy2(REPOSITORY / PACKAGE_PATH / mutant.path, copy / PACKAGE_PATH / mutant.path)
    if code not in {None, _PASSED_EXIT_CODE, *_FAILED_EXIT_CODES}:
        raise SystemExit(f"pytest ended with {code} at {mutant}")
    return code != _PASSED_EXIT_CODE


@contextmanager
def make_repository_copies(count: int) -> Iterator[SimpleQueue[Path]]:
    """Yield a queue of copies of the repository, with tracked files and new files that are not ignored."""
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    files = subprocess.run(listed, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.split("\0")
    queue: SimpleQueue[Path] = SimpleQueue()
    with TemporaryDirectory(prefix="mutants-") as folder:
        for number in range(count):
            copy = Path(folder, str(number))
            for file in filter(lambda name: (REPOSITORY / name).is_file(), files):
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / file, copy / file)
            queue.put(copy)
        yield queue


def try_mutants(mutants: list[Mutant], jobs: int, minutes: float) -> dict[Mutant, bool]:
    """Return whether the tests notice each mutant, without those that there was no time for.

    Each result is printed as soon as it is available. Exits if the tests of a module fail without any change.
    """
    ends_at = monotonic() + 60 * minutes
    caught: dict[Mutant, bool] = {}
    with make_repository_copies(jobs) as free, ThreadPoolExecutor(jobs) as pool:

        def measure(path: Path) -> float:
            copy, began = free.get(), monotonic()
            try:
                if run_tests(copy, path, None) != _PASSED_EXIT_CODE:
                    raise SystemExit(f"the tests of {path} fail without any change")
            finally:
                free.put(copy)
            return 30 + 4 * (monotonic() - began)

        # modules of one folder may have the same tests, in another order
        path_by_tests = {frozenset(find_tests(mutant.path)): mutant.path for mutant in mutants}
        limits = dict(zip(path_by_tests, pool.map(measure, path_by_tests.values()), strict=True))

        def try_mutant(mutant: Mutant) -> None:
            if monotonic() > ends_at:
                return
            copy, began = free.get(), monotonic()
            try:
                caught[mutant] = is_caught(mutant, copy, limits[frozenset(find_tests(mutant.path))])
            finally:
                free.put(copy)
            result = "caught" if caught[mutant] else "SURVIVED"
            print(f"{result:9}{monotonic() - began:4.0f} s  {mutant}", flush=True)

        list(pool.map(try_mutant, mutants))
    return caught


def main() -> None:
    """Parse the arguments, try the mutants and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", type=Path, metavar="MODULE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=18)
    parser.add_argument("--lines", type=int, nargs="+", default=[])
    parser.add_argument("--list", action="store_true", help="say what would be changed, and run nothing")
    options = parser.parse_args()
    mutants = select_mutants(create_mutants(options.modules, options.seed), options.seed, options.count, options.lines)
    if options.list or not mutants:
        print(*mutants, sep="\n")
        return
    caught = try_mutants(mutants, options.jobs, options.minutes)
    survivors = [mutant for mutant, is_noticed in caught.items() if not is_noticed]
    print(f"\n{len(caught) - len(survivors)} of {len(caught)} caught, {len(mutants) - len(caught)} not tried.")
    print("Survivors:", *survivors, sep="\n")
    sys.exit(len(survivors) > (1 - _MIN_CAUGHT_SHARE) * len(caught))


if __name__ == "__main__":
    main()
