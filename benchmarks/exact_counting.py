"""The cost of counting tokens exactly: of loading the vocabulary, and of counting, compared to the estimate.

    .venv/demo/bin/python -m benchmarks.exact_counting

Each of four processes, in which Home Assistant is imported, loads the vocabulary once in a thread, as Home Assistant's
executor does. "blocked" is the longest delay of a task of the event loop meanwhile, "memory" the growth of the resident
set. Then the process counts the texts of `counting_texts.json`, cut to 200 characters, and a text of 100,000 random
letters, alternately exactly and by the estimate. Each figure is the best of all processes; all but "blocked" and
"memory" are CPU times.
"""

import asyncio
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from itertools import chain
import json
from pathlib import Path
import random
import string
from time import perf_counter, process_time
from typing import NamedTuple

from custom_components.windowed_conversation.bridge.calibration import load_exact_counter
from custom_components.windowed_conversation.window.tokens import EstimatedCounter, TokenCounter

_TEXTS_FILE = Path(__file__).with_name("counting_texts.json")
_PROCESSES, _ROUNDS = 4, 5
_CHARS, _LETTERS = 200, 100_000
_TICK_SECONDS = 0.001


class _Costs(NamedTuple):
    """Milliseconds and megabytes of loading, and milliseconds of 1,000 short texts and of random letters."""

    blocked: float
    load: float
    megabytes: float
    exact_texts: float
    estimated_texts: float
    exact_letters: float
    estimated_letters: float


def _read_resident_megabytes() -> float:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1e3


async def _measure_load() -> tuple[float, float, float]:
    """Return the longest delay of the event loop and the CPU time, both in milliseconds, and the megabytes."""
    before, began = _read_resident_megabytes(), process_time()
    loading = asyncio.create_task(asyncio.to_thread(load_exact_counter))
    longest = 0.0
    while not loading.done():
        slept = perf_counter()
        await asyncio.sleep(_TICK_SECONDS)
        longest = max(longest, perf_counter() - slept - _TICK_SECONDS)
    if loading.result() is None:
        raise SystemExit("the vocabulary cannot be used")
    return longest * 1e3, (process_time() - began) * 1e3, _read_resident_megabytes() - before


def _build_texts() -> list[str]:
    """Return 1,000 texts of 200 characters, in many languages."""
    languages = json.loads(_TEXTS_FILE.read_text("utf-8")).values()
    text = " ".join(chain.from_iterable(chain.from_iterable(languages)))
    chance = random.Random(5)
    return [text[at : at + _CHARS] for at in (chance.randrange(len(text) - _CHARS) for _ in range(1_000))]


def _measure_count(counter: TokenCounter, texts: list[str]) -> float:
    """Return the milliseconds in which the texts are counted."""
    began = process_time()
    for text in texts:
        counter.count(text)
    return (process_time() - began) * 1e3


def _measure_process() -> _Costs:
    load = asyncio.run(_measure_load())
    exact = load_exact_counter()
    assert exact is not None
    letters = ["".join(random.Random(7).choices(string.ascii_letters, k=_LETTERS))]
    counts = [
        partial(_measure_count, counter, texts)
        for texts in (_build_texts(), letters)
        for counter in (exact, EstimatedCounter())
    ]
    rounds = [[count() for count in counts] for _ in range(_ROUNDS)]
    return _Costs(*load, *map(min, zip(*rounds, strict=True)))


def main() -> None:
    """Run the benchmark and print the results."""
    measured: list[_Costs] = []
    for _ in range(_PROCESSES):
        # The vocabulary is loaded only once in a process.
        with ProcessPoolExecutor(1) as process:
            measured.append(process.submit(_measure_process).result())
    best = _Costs(*map(min, zip(*measured, strict=True)))
    print(f"tiktoken {version('tiktoken')}, best of {_PROCESSES} processes\n")
    print(f"loading: {best.load:.0f} ms, blocked {best.blocked:.0f} ms, memory {best.megabytes:.0f} MB")
    print(f"{'':<34}{'exact':>10}{'estimate':>10}{'ratio':>8}")
    for name, exact, estimate in (
        (f"1,000 texts of {_CHARS} characters", best.exact_texts, best.estimated_texts),
        (f"{_LETTERS:,} random letters", best.exact_letters, best.estimated_letters),
    ):
        print(f"{name:<34}{exact:>7.1f} ms{estimate:>7.1f} ms{exact / estimate:>8.2f}")


if __name__ == "__main__":
    main()
