"""The cost of storing conversations on disk: the bytes written in a day, set-up with many of them, and their next turn.

    .venv/demo/bin/python -m benchmarks.store                 (--quick, --sentences, --remembered, --rounds)
    .venv/demo/bin/python -m benchmarks.store --beside DIR    the same in another checkout, with the ratio to it

Everything goes through Home Assistant: a config entry, sentences, the action "import_conversation", a stop and a start.
This code does not depend on the way conversations are stored, so the same files can measure any commit: each part of
`benchmarks.store_parts` runs in its own process, in the folder of the checkout, and the scripted model in another one.

1. Bytes. A day of 200 sentences in a conversation whose window is full at the beginning, with memory and with the
default record of turns. After each sentence, the benchmark waits until nothing has been written for half a second. It
then moves the event loop's clock forward by the five minutes to the next sentence, which ends all delays between
writes, and waits again for half a second without writes. If another thread delays a write for longer, the write is
counted later, or not at all after the last sentence. Memory is empty at the beginning, or holds the turns of
`--remembered`.

The bytes are those of "wchar" in /proc/self/io. It counts the bytes that the process passes to write() and similar
calls, even if they never reach the disk. It does not count sockets (asyncio uses send()) or SQLite's shared memory,
which is mapped.

A file that is replaced atomically is counted by its size when it is renamed: files of Home Assistant itself are
subtracted, files of the integration are its JSON, and the rest is SQLite. The sum matches strace exactly.

2. Set-up. 100 conversations of 200 exchanges are imported, and Home Assistant stops. A new process, which has already
loaded all modules by setting up another home, sets up the account. Memory is the growth of the resident set, and its
peak.

3. The first turn after that in some of these conversations, compared to the next turn in the same conversation, whose
window is then in memory. Nothing is written during these measurements. On a busy machine, a single difference is off by
ten milliseconds, and the median of sixty by two; CPU time of all threads, which excludes the disk, is more stable.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
import json
import os
from pathlib import Path
import shutil
from statistics import median
import subprocess
import sys
import tempfile
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
WINDOW_TOKENS = (4_000, 100_000)

# The number of conversations in which the first turn after a start is measured.
_MEASURED_TURNS = 20
_PARTS_SCRIPT = Path(__file__).with_name("store_parts.py")
# The maximum for this checkout: relative to the other one, or in milliseconds for the first turn.
_GOAL_BY_MEASUREMENT = {
    "bytes 4,000": 0.5,
    "bytes 100,000": 0.1,
    "set-up s": 0.5,
    "set-up MB": 0.5,
    "first turn ms": 5.0,
}

type ValueByMeasurement = dict[str, float]


def _run_part(side: Path, name: str, **arguments: Any) -> Any:
    """Return the measurements of a part, which runs in its own process in the folder of a checkout."""
    command = (sys.executable, "-P", str(_PARTS_SCRIPT), name, json.dumps(arguments))
    environment = {**os.environ, "PYTHONPATH": str(side), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=side, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _measure_days(sides: Sequence[Path], sentences: int, remembered: int) -> list[ValueByMeasurement]:
    """Return the megabytes that each checkout writes; all days run in parallel, because no time is measured."""
    with ThreadPoolExecutor() as threads:
        days = {
            (side, tokens): threads.submit(
                _run_part, side, "day", tokens=tokens, sentences=sentences, remembered=remembered
            )
            for tokens in WINDOW_TOKENS
            for side in sides
        }
    return [
        {
            f"{name} {tokens:,}": figure / 1e6
            for tokens in WINDOW_TOKENS
            for name, figure in days[side, tokens].result().items()
        }
        for side in sides
    ]


def _measure_starts(sides: Sequence[Path], rounds: int, turns: int, **size: int) -> list[ValueByMeasurement]:
    """Return the medians of each checkout; the checkouts take turns in every round."""
    measured: list[list[dict[str, Any]]] = [[] for _ in sides]
    with tempfile.TemporaryDirectory() as folder:
        homes = [Path(folder) / str(at) for at, _ in enumerate(sides)]
        for side, home in zip(sides, homes, strict=True):
            home.mkdir()
            _run_part(side, "make", folder=str(home), **size)
        for _ in range(rounds):
            for at, side in enumerate(sides):
                used = shutil.copytree(homes[at], Path(folder) / "used")
                measured[at].append(_run_part(side, "start", folder=str(used), turns=turns, **size))
                shutil.rmtree(used)
    return [calculate_medians(each) for each in measured]


def calculate_medians(rounds: Sequence[Mapping[str, Any]]) -> ValueByMeasurement:
    """Return the median of each measurement over all rounds; all values of a list count."""
    figures: dict[str, list[float]] = {name: [] for name in rounds[0]}
    for each in rounds:
        for name, value in each.items():
            figures[name] += value if isinstance(value, list) else [value]
    return {name: median(values) for name, values in figures.items()}


def format_rows(sides: Sequence[ValueByMeasurement]) -> Iterator[str]:
    """Yield the rows of the table; for two checkouts, with their ratio and whether the goals are met."""
    for name, new in sides[0].items():
        line = f"  {name:<20}" + "".join(f"{side[name]:>12.3f}" for side in sides)
        if len(sides) > 1:
            old = sides[1][name]
            ratio = new / old if old else float("nan")
            line += f"{ratio:>10.3f}{_format_goal(name, new, ratio)}"
        yield line


def _format_goal(name: str, new: float, ratio: float) -> str:
    if name not in _GOAL_BY_MEASUREMENT:
        return ""
    most, value = _GOAL_BY_MEASUREMENT[name], new if name == "first turn ms" else ratio
    return f"   at most {most:g}: {'met' if value <= most else 'MISSED'}"


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, metavar="DIR", help="another checkout")
    parser.add_argument("--quick", action="store_true", help="20 sentences, 30 conversations, one round")
    parser.add_argument("--sentences", type=int, default=200, help="of the day")
    parser.add_argument("--remembered", type=int, default=0, metavar="TURNS", help="in memory when the day begins")
    parser.add_argument("--rounds", type=int, default=3, help="starts of each side")
    asked = parser.parse_args()
    sides = [REPOSITORY, *([asked.beside.resolve()] if asked.beside else [])]
    sentences, stored, rounds = (20, 30, 1) if asked.quick else (asked.sentences, 300, asked.rounds)
    days = _measure_days(sides, sentences, asked.remembered)
    starts = _measure_starts(sides, rounds, turns=_MEASURED_TURNS, conversations=stored, exchanges=200)
    print(f"A day of {sentences} sentences (MB), then a start with {stored} conversations of 200 exchanges")
    print(f"  {'':<20}" + "".join(f"{name:>12}" for name in ("here", "beside")[: len(sides)]))
    for row in format_rows([{**day, **start} for day, start in zip(days, starts, strict=True)]):
        print(row)


if __name__ == "__main__":
    main()
