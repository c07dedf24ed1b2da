"""Change lines of `turn/` and `window/` one at a time, and print which changes the tests of both do not notice.

    .venv/test/bin/python -m scripts.mutate                          (60 lines, two at a time: about half an hour)
    .venv/test/bin/python -m scripts.mutate --only turn/routing.py:31  (these lines alone, after a test was written)

Only copies of the repository are changed, never the repository itself. Each seed selects a different but reproducible
set of lines. Ends with 1 if less than 95 % of the changes are caught; a test that hangs counts as having caught a
change.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
import os
from pathlib import Path
from queue import SimpleQueue
from random import Random
import shutil
import signal
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import monotonic

from scripts.mutations import Mutation, iter_mutations

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE_PATH = Path("custom_components/windowed_conversation")
MUTATED_FOLDERS = ("turn", "window")
_MIN_CAUGHT_SHARE = 0.95
# Exit codes of pytest: 0 if all tests passed, 1 if some failed, 2 and 4 if a test or a conftest.py cannot be imported.
_PASSED_EXIT_CODE, _FAILED_EXIT_CODES = 0, {1, 2, 4}
# Slow tests, which run only after all others have passed.
_SLOW_TESTS = ("test_random_histories.py", "test_work.py", "test_page.py", "test_standalone.py")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one line in a module; `path` is relative to the package."""

    path: Path
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.path}:{self.mutation.line}  {self.mutation.before}  ->  {self.mutation.after}"

    def write_to(self, copy: Path) -> None:
        """Write the changed module to a copy of the repository."""
        (copy / PACKAGE_PATH / self.path).write_text(self.mutation.source)


def create_mutants(seed: int) -> list[Mutant]:
    """Return one randomly selected change for each line that can be changed."""
    mutants = []
    for module in sorted(
        path for folder in MUTATED_FOLDERS for path in (REPOSITORY / PACKAGE_PATH / folder).rglob("*.py")
    ):
        path = module.relative_to(REPOSITORY / PACKAGE_PATH)
        by_line: dict[int, list[Mutation]] = {}
        for mutation in iter_mutations(module.read_text()):
            by_line.setdefault(mutation.line, []).append(mutation)
        mutants += [Mutant(path, Random(f"{seed}:{path}:{line}").choice(found)) for line, found in by_line.items()]
    return mutants


def select_mutants(mutants: list[Mutant], seed: int, count: int, only: list[str]) -> list[Mutant]:
    """Return the mutants of the lines in `only`, or else `count` random mutants."""
    if only:
        return [mutant for mutant in mutants if f"{mutant.path}:{mutant.mutation.line}" in only]
    return Random(seed).sample(mutants, min(count, len(mutants)))


def order_tests(path: Path) -> list[str]:
    """Return the test files, those most likely to notice a change of this module first."""
    tests = [file for folder in MUTATED_FOLDERS for file in (REPOSITORY / "tests" / folder).rglob("test_*.py")]
    folder = REPOSITORY / PACKAGE_PATH / path.parts[0]
    importers = [each for each in folder.rglob("*.py") if f".{path.stem} import" in each.read_text()]
    above = {f".{path.parts[0]}.{each.stem} import" for each in importers}

    def rank_test(file: Path) -> tuple[bool, bool, bool, bool, bool, str]:
        text, is_near = file.read_text(), path.parts[0] == file.relative_to(REPOSITORY / "tests").parts[0]
        imports_it, imports_above = f".{path.stem} import" in text, any(each in text for each in above)
        is_its_own = file.stem == f"test_{path.stem}"
        return file.name in _SLOW_TESTS, not is_its_own, not imports_it, not imports_above, not is_near, str(file)

    return [str(file.relative_to(REPOSITORY)) for file in sorted(tests, key=rank_test)]


def run_tests(copy: Path, path: Path, limit: float | None) -> int | None:
    """Return pytest's exit code, or None if it did not end within the time limit."""
    shutil.rmtree(copy / ".hypothesis", ignore_errors=True)
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "tests.no_shrinking", "--hypothesis-seed=0")
    child = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, "-o", "timeout=120", *order_tests(path)],
        cwd=copy,
        # Two changes of a module within the same second would otherwise share cached bytecode.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
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
        shutil.copy(REPOSITORY / PACKAGE_PATH / mutant.path, copy / PACKAGE_PATH / mutant.path)
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


def find_survivors(mutants: list[Mutant], jobs: int) -> list[Mutant]:
    """Return the mutants that no test notices, and print each result as soon as it is available."""
    with make_repository_copies(jobs) as free, ThreadPoolExecutor(jobs) as pool:
        copy = free.get()
        began = monotonic()
        if run_tests(copy, mutants[0].path, None) != _PASSED_EXIT_CODE:
            raise SystemExit("the tests fail without any change")
        limit = 120 + 4 * (monotonic() - began)
        free.put(copy)

        def try_mutant(mutant: Mutant) -> bool:
            copy, began = free.get(), monotonic()
            try:
                caught = is_caught(mutant, copy, limit)
            finally:
                free.put(copy)
            print(f"{'caught' if caught else 'SURVIVED':9}{monotonic() - began:4.0f} s  {mutant}", flush=True)
            return caught

        return [mutant for mutant, caught in zip(mutants, pool.map(try_mutant, mutants), strict=True) if not caught]


def main() -> None:
    """Parse the arguments, try the mutants and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[], metavar="PATH:LINE")
    parser.add_argument("--list", action="store_true", help="say what would be changed, and run nothing")
    options = parser.parse_args()
    mutants = select_mutants(create_mutants(options.seed), options.seed, options.count, options.only)
    if options.list or not mutants:
        print(*mutants, sep="\n")
        return
    left = find_survivors(mutants, options.jobs)
    caught = len(mutants) - len(left)
    print(f"\n{caught} of {len(mutants)} caught ({caught / len(mutants):.0%}), seed {options.seed}. Survivors:")
    print(*left, sep="\n")
    sys.exit(caught < _MIN_CAUGHT_SHARE * len(mutants))


if __name__ == "__main__":
    main()
