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
from benchmarks.reference import ReferenceWindow
from benchmarks.workload import SYSTEM_TOKENS, TOKENS_PER_TURN, Turn

CONVERSATION_LENGTHS = (100, 1_000, 10_000)
TRIM_SHARE = 0.25

_BLOCK_TURNS = 10
_MAX_RUNS = 3
_PURE_SAMPLES = 20
_WARM_UP_TURNS = 20
_UNLIMITED_TOKENS = 1_000_000_000


class PlainContender:
    """The reference in plain Python, as a contender."""

    def __init__(self, system: str, budget: int) -> None:
        self._window = ReferenceWindow(system, budget, TRIM_SHARE)

    def append_turn(self, turn: Turn) -> None:
        """Append the messages of a turn."""
        for said in turn:
            self._window.append(said)

    def get_messages(self) -> Sequence[object]:
        """Return the messages to send now."""
        return self._window.messages()


type ContenderFactory = Callable[[str, int], Contender]


@dataclass(slots=True)
class MeasuredRun:
    """Times in nanoseconds, by the number of the turn, for the contender and for the reference."""

    contender_times: dict[int, int] = field(default_factory=dict)
    reference_times: dict[int, int] = field(default_factory=dict)
    is_finished: bool = False

    def get_full_times(self, budget: int) -> list[int]:
        """Return the times of all turns after the window was full, or of all turns if it never was."""
        return _select_full_times(self.contender_times, budget)

    def get_reference_times(self, budget: int) -> list[int]:
        """Return the reference's times for the same turns."""
        return _select_full_times(self.reference_times, budget)

    def calculate_tail_median(self, length: int) -> float | None:
        """Return the median time of the last turns up to turn `length`, in microseconds; None if it was not reached."""
        if max(self.contender_times, default=0) < length:
            return None
        from_turn = length - max(50, length // 10)
        return median(took for number, took in self.contender_times.items() if from_turn < number <= length) / 1e3


@dataclass(frozen=True, slots=True)
class TimingResult:
    """The best run: microseconds per turn once the window is full, and by the length of the conversation.

    `ratio` is relative to the reference's median in the same run. `turn_count` is the number of turns that were reached
    before the time limit.
    """

    median: float
    p99: float
    ratio: float
    tail_medians: tuple[float | None, ...]
    turn_count: int


def measure_contender(
    make: ContenderFactory, system: str, budget: int, conversation: Sequence[Turn], *, pure: bool, seconds: float
) -> TimingResult:
    """Measure a contender in up to three runs, as many as fit into `seconds`; the first is cut off at that limit."""
    _warm_up(make(system, budget), conversation)
    began = monotonic()
    runs: list[MeasuredRun] = []
    while len(runs) < _MAX_RUNS and (not runs or 2 * (monotonic() - began) < seconds):
        run = _run_once(
            make(system, budget), PlainContender(system, budget), conversation, pure=pure, until=began + seconds
        )
        if run.is_finished or not runs:
            runs.append(run)
    best = min(runs, key=lambda run: median(run.get_full_times(budget)))
    took = best.get_full_times(budget)
    return TimingResult(
        median=median(took) / 1e3,
        p99=quantiles(took, n=100)[-1] / 1e3,
        ratio=median(took) / median(best.get_reference_times(budget)),
        tail_medians=tuple(
            _find_minimum(run.calculate_tail_median(length) for run in runs) for length in CONVERSATION_LENGTHS
        ),
        turn_count=max(best.contender_times),
    )


def _warm_up(contender: Contender, conversation: Sequence[Turn]) -> None:
    for turn in conversation[:_WARM_UP_TURNS]:
        contender.append_turn(turn)
        contender.get_messages()


def _run_once(
    contender: Contender, reference: PlainContender, conversation: Sequence[Turn], *, pure: bool, until: float
) -> MeasuredRun:
    run = MeasuredRun()
    gc.collect()
    for start in range(0, len(conversation), _BLOCK_TURNS):
        numbers = range(start + 1, min(start + _BLOCK_TURNS, len(conversation)) + 1)
        sides = [
            partial(_take_turns, contender, conversation, numbers, run.contender_times, pure=pure),
            partial(_take_turns, reference, conversation, numbers, run.reference_times, pure=False),
        ]
        for take in sides if start % (2 * _BLOCK_TURNS) else reversed(sides):
            take()
        if run.contender_times and monotonic() > until:
            return run
    run.is_finished = True
    return run


def _take_turns(
    contender: Contender, conversation: Sequence[Turn], numbers: Iterable[int], times: dict[int, int], *, pure: bool
) -> None:
    """Take these turns and record the time of each; for a pure contender, only those of the samples."""
    for number in numbers:
        turn = conversation[number - 1]
        if pure and not _is_sample(number):
            contender.append_turn(turn)
            continue
        began = perf_counter_ns()
        contender.append_turn(turn)
        contender.get_messages()
        times[number] = perf_counter_ns() - began


def _is_sample(number: int) -> bool:
    return any(length - _PURE_SAMPLES < number <= length for length in CONVERSATION_LENGTHS)


def _select_full_times(times: dict[int, int], budget: int) -> list[int]:
    full = 1.2 * (budget - SYSTEM_TOKENS) / TOKENS_PER_TURN
    return [took for number, took in times.items() if number > full] or list(times.values())


def _find_minimum(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def measure_bytes_per_message(make: ContenderFactory, system: str, conversation: Sequence[Turn]) -> float:
    """Return the bytes that a message takes in the window, without its text, which the workload also references."""
    contender = make(system, _UNLIMITED_TOKENS)
    contender.append_turn(conversation[0])
    contender.get_messages()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for turn in conversation[1:]:
        contender.append_turn(turn)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / sum(map(len, conversation[1:]))
