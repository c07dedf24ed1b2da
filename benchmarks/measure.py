"""Measure the time per turn of the window or another library next to the reference, and the memory per message.

A contender and the reference run alternately in one process, in blocks of turns, and swap their order in every other
block. Both are thus affected equally by noise, cold caches, and the garbage collector, which stays enabled.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
import gc
from statistics import median, quantiles
from time import monotonic, perf_counter_ns
import tracemalloc

from benchmarks.peers import Contender
from benchmarks.reference import Reference
from benchmarks.workload import SYSTEM_TOKENS, TURN_TOKENS, Turn

LENGTHS = (100, 1_000, 10_000)
SHARE = 0.25

_BLOCK = 10
_REPEATS = 3
_SAMPLES_OF_PURE = 20
_WARM_UP = 20
_HUGE = 1_000_000_000


class Plain:
    """The reference in plain Python, as a contender."""

    def __init__(self, system: str, budget: int) -> None:
        self._window = Reference(system, budget, SHARE)

    def append(self, turn: Turn) -> None:
        """Append the messages of a turn."""
        for said in turn:
            self._window.append(said)

    def view(self) -> Sequence[object]:
        """Return the messages to send now."""
        return self._window.messages()


type Make = Callable[[str, int], Contender]


@dataclass(slots=True)
class Run:
    """Times in nanoseconds, by the number of the turn, for the contender and for the reference."""

    taken: dict[int, int] = field(default_factory=dict)
    reference: dict[int, int] = field(default_factory=dict)
    finished: bool = False

    def full(self, budget: int) -> list[int]:
        """Return the times of all turns after the window was full, or of all turns if it never was."""
        return _since(self.taken, budget)

    def reference_full(self, budget: int) -> list[int]:
        """Return the reference's times for the same turns."""
        return _since(self.reference, budget)

    def tail(self, length: int) -> float | None:
        """Return the median time of the last turns up to turn `length`, in microseconds; None if it was not reached."""
        if max(self.taken, default=0) < length:
            return None
        from_turn = length - max(50, length // 10)
        return median(took for number, took in self.taken.items() if from_turn < number <= length) / 1e3


@dataclass(frozen=True, slots=True)
class Result:
    """The best run: microseconds per turn once the window is full, and by the length of the conversation.

    `ratio` is relative to the reference's median in the same run. `turns` is the number of turns that were reached
    before the time limit.
    """

    median: float
    p99: float
    ratio: float
    tails: tuple[float | None, ...]
    turns: int


def measure(
    make: Make, system: str, budget: int, conversation: Sequence[Turn], *, pure: bool, seconds: float
) -> Result:
    """Measure a contender in up to three runs, as many as fit into `seconds`; the first is cut off at that limit."""
    _warm_up(make(system, budget), conversation)
    began = monotonic()
    runs: list[Run] = []
    while len(runs) < _REPEATS and (not runs or 2 * (monotonic() - began) < seconds):
        run = _run(make(system, budget), Plain(system, budget), conversation, pure=pure, until=began + seconds)
        if run.finished or not runs:
            runs.append(run)
    best = min(runs, key=lambda run: median(run.full(budget)))
    took = best.full(budget)
    return Result(
        median=median(took) / 1e3,
        p99=quantiles(took, n=100)[-1] / 1e3,
        ratio=median(took) / median(best.reference_full(budget)),
        tails=tuple(_least(run.tail(length) for run in runs) for length in LENGTHS),
        turns=max(best.taken),
    )


def _warm_up(contender: Contender, conversation: Sequence[Turn]) -> None:
    for turn in conversation[:_WARM_UP]:
        contender.append(turn)
        contender.view()


def _run(contender: Contender, reference: Plain, conversation: Sequence[Turn], *, pure: bool, until: float) -> Run:
    run = Run()
    gc.collect()
    for start in range(0, len(conversation), _BLOCK):
        numbers = range(start + 1, min(start + _BLOCK, len(conversation)) + 1)
        sides = [
            partial(_take, contender, conversation, numbers, run.taken, pure=pure),
            partial(_take, reference, conversation, numbers, run.reference, pure=False),
        ]
        for take in sides if start % (2 * _BLOCK) else reversed(sides):
            take()
        if monotonic() > until:
            return run
    run.finished = True
    return run


def _take(
    contender: Contender, conversation: Sequence[Turn], numbers: Iterable[int], taken: dict[int, int], *, pure: bool
) -> None:
    """Take these turns and record the time of each; for a pure contender, only those of the samples."""
    for number in numbers:
        turn = conversation[number - 1]
        if pure and not _is_sample(number):
            contender.append(turn)
            continue
        began = perf_counter_ns()
        contender.append(turn)
        contender.view()
        taken[number] = perf_counter_ns() - began


def _is_sample(number: int) -> bool:
    return any(length - _SAMPLES_OF_PURE < number <= length for length in LENGTHS)


def _since(taken: dict[int, int], budget: int) -> list[int]:
    full = 1.2 * (budget - SYSTEM_TOKENS) / TURN_TOKENS
    return [took for number, took in taken.items() if number > full] or list(taken.values())


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def bytes_per_message(make: Make, system: str, conversation: Sequence[Turn]) -> float:
    """Return the bytes that a message takes in the window, without its text, which the workload also references."""
    contender = make(system, _HUGE)
    contender.append(conversation[0])
    contender.view()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for turn in conversation[1:]:
        contender.append(turn)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / sum(map(len, conversation[1:]))
