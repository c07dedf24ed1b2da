"""The cost of the window per turn, compared in one process with plain Python and with libraries for the same job.

    scripts/setup peers
    .venv/peers/bin/python -m benchmarks.window            (--quick: under a minute)

This works with any Python 3.14. Libraries that are not installed are skipped and reported as such.

A turn appends all of its messages (built from plain text), enforces the token budget, and builds the list of messages
to send once, in the library's own format. Encoding for a provider is not measured. Every contender gets the same
conversation and counts four characters as one token. The budget covers everything that is sent, including the system
prompt. Two libraries run their own event loop, which adds about 20 microseconds to their times. Ratios are more
reliable than microseconds.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain, cycle, repeat
import logging
import os
import platform
from statistics import median
from time import perf_counter_ns
from typing import override
import warnings

from benchmarks import ours
from benchmarks.measure import (
    CONVERSATION_LENGTHS,
    TRIM_SHARE,
    ContenderFactory,
    PlainContender,
    TimingResult,
    measure_bytes_per_message,
    measure_contender,
)
from benchmarks.peers import PEER_LIBRARIES, PeerLibrary
from benchmarks.reference import ReferenceWindow, find_defects
from benchmarks.workload import SYSTEM_TOKENS, Turn, build_conversation, build_system_prompt

_TOKEN_BUDGETS = (4_000, 100_000)
_MEMORY_TURNS = 200
_ALL_FEATURES_NAME = "ours, all features on"

# The goals: the limits for the time relative to the reference, the growth of the time, and the bytes per message.
_MAX_RATIO, _MAX_GROWTH, _MAX_MESSAGE_BYTES = 4.0, 1.2, 500.0
_GROWTH_START_BY_BUDGET = {4_000: 100, 100_000: 1_000}


class DefaultWindow:
    """The window with its default policy."""

    def __init__(self, system: str, budget: int) -> None:
        self._window = ours.create_window(system, budget - SYSTEM_TOKENS, TRIM_SHARE)

    def append_turn(self, turn: Turn) -> None:
        """Append the messages of a turn."""
        window = self._window
        window.open(turn[0].text)
        for said in turn[1:]:
            window.add(ours.to_message(said))
        window.close()

    def get_messages(self) -> Sequence[object]:
        """Return the messages to send now."""
        return self._window.messages()


class FullFeaturedWindow(DefaultWindow):
    """The window with tags on every exchange, two of them protected, one in ten ephemeral, and stubbed tool results."""

    @override
    def __init__(self, system: str, budget: int) -> None:
        self._window = ours.create_window(system, budget - SYSTEM_TOKENS, TRIM_SHARE)
        self._tags = _iter_tags()

    @override
    def append_turn(self, turn: Turn) -> None:
        window = self._window
        window.open(turn[0].text)
        for said in turn[1:]:
            window.add(ours.to_message(said))
        window.add_tags(*next(self._tags))
        window.close()


def _iter_tags() -> Iterator[tuple[str, ...]]:
    """Return an endless iterator over the tags of each turn."""
    ordinary = ("route:model", "context:lights")
    protected, ephemeral = (*ordinary, "important"), (*ordinary, "ephemeral")
    in_ten = [*repeat(ordinary, 9), ephemeral]
    first_ten = [ordinary, ordinary, protected, ordinary, ordinary, protected, *in_ten[6:]]
    return chain(first_ten, cycle(in_ten))


class FullWindowWithStats(FullFeaturedWindow):
    """The window with all features, and with its statistics read after every turn, as the sensors do."""

    @override
    def get_messages(self) -> Sequence[object]:
        self._window.stats()
        return super().get_messages()


_OWN_CONTENDERS: tuple[tuple[str, ContenderFactory], ...] = (
    ("plain Python reference", PlainContender),
    ("ours", DefaultWindow),
    (_ALL_FEATURES_NAME, FullFeaturedWindow),
    ("ours, all features on, and figures read", FullWindowWithStats),
)


def _check_reference(turns: Sequence[Turn]) -> None:
    """Exit if any request of the reference is invalid or exceeds its budget."""
    for budget in _TOKEN_BUDGETS:
        window = ReferenceWindow(build_system_prompt(), budget, TRIM_SHARE)
        for turn in turns:
            for said in turn:
                window.append(said)
            if found := find_defects(window.messages(), turn[-1], budget):
                raise SystemExit(f"the reference is wrong at {budget} tokens: {found}")
    print(f"Every request of the reference is valid and within its budget ({len(turns):,} turns, each budget).\n")


def _us(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if value < 1_000 else f"{value:,.0f}"


def _print_row(name: str, keeps: str, result: TimingResult) -> None:
    tails = "".join(f"{_us(tail):>10}" for tail in result.tail_medians)
    stopped = "" if result.turn_count == CONVERSATION_LENGTHS[-1] else f"  stopped at turn {result.turn_count:,}"
    figures = f"{_us(result.median):>10}{_us(result.p99):>10}{result.ratio:>9,.1f}"
    print(f"  {name:<46}{keeps:<9}{figures}{tails}{stopped}", flush=True)


def _measure_times(
    peers: Sequence[PeerLibrary], turns: Sequence[Turn], seconds: float
) -> dict[tuple[int, str], TimingResult]:
    results: dict[tuple[int, str], TimingResult] = {}
    system = build_system_prompt()
    for budget in _TOKEN_BUDGETS:
        lengths = "".join(f"{f'N={length:,}':>10}" for length in CONVERSATION_LENGTHS)
        print(f"Microseconds per turn, budget {budget:,} tokens (once full: median, p99, ratio; then by length N)")
        print(f"  {'':<46}{'keeps':<9}{'median':>10}{'p99':>10}{'ratio':>9}{lengths}")
        for name, make in _OWN_CONTENDERS:
            result = measure_contender(make, system, budget, turns, pure=False, seconds=seconds)
            _print_row(name, "tokens", result)
            results[budget, name] = result
        for peer in peers:
            result = measure_contender(peer.create_contender, system, budget, turns, pure=peer.is_pure, seconds=seconds)
            _print_row(peer.name, peer.budget_unit, result)
            results[budget, peer.name] = result
        print()
    return results


def _measure_memory(peers: Sequence[PeerLibrary], turns: Sequence[Turn]) -> dict[str, float]:
    print("Bytes per message that is kept, besides its text")
    contenders = [
        *_OWN_CONTENDERS[:3],
        *((peer.name, peer.create_contender) for peer in peers if not peer.uses_database),
    ]
    weights = {name: measure_bytes_per_message(make, build_system_prompt(), turns) for name, make in contenders}
    for name, weight in weights.items():
        print(f"  {name:<46}{weight:>10,.0f}")
    for peer in peers:
        if peer.uses_database:
            print(f"  {peer.name:<46}{'-':>10}  kept in SQLite's own memory, which Python does not trace")
    print()
    return weights


def _print_encoding(turns: Sequence[Turn]) -> None:
    """Print the time that encoding adds to the window's own time before a request is sent."""
    for budget in _TOKEN_BUDGETS:
        window = ours.create_window(build_system_prompt(), budget - SYSTEM_TOKENS, TRIM_SHARE)
        for turn in turns:
            window.add_exchange([ours.to_question(turn[0]), *map(ours.to_message, turn[1:])])
        messages, taken = window.messages(), []
        for _ in range(50):
            began = perf_counter_ns()
            ours.encode_chat_messages(messages)
            taken.append(perf_counter_ns() - began)
        print(f"Encoding a request of {len(messages)} messages for Chat Completions: {_us(median(taken) / 1e3)} us")
    print()


def _print_goal(goal: str, value: float, most: float, *, unit: str = "") -> None:
    verdict = "met" if value <= most else "MISSED"
    print(f"  {goal:<70}{value:>9,.2f}{unit}  at most {most:,.2f}{unit}: {verdict}")


def _print_goals(
    peers: Sequence[PeerLibrary], results: dict[tuple[int, str], TimingResult], weights: dict[str, float]
) -> None:
    print("Goals")
    for budget in _TOKEN_BUDGETS:
        all_on = results[budget, _ALL_FEATURES_NAME]
        _print_goal(f"all features on, ratio to the reference at {budget:,}", all_on.ratio, _MAX_RATIO)
        begin = all_on.tail_medians[CONVERSATION_LENGTHS.index(_GROWTH_START_BY_BUDGET[budget])]
        end = all_on.tail_medians[-1]
        if begin and end:
            _print_goal(
                f"N = 10,000 to N = {_GROWTH_START_BY_BUDGET[budget]:,} at {budget:,}", end / begin, _MAX_GROWTH
            )
        keepers = {peer.name: results[budget, peer.name].median for peer in peers if peer.budget_unit == "tokens"}
        if keepers:
            fastest = min(keepers, key=keepers.__getitem__)
            _print_goal(f"microseconds at {budget:,} ({fastest})", all_on.median, keepers[fastest])
    _print_goal("bytes per message, all features on", weights[_ALL_FEATURES_NAME], _MAX_MESSAGE_BYTES)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="Measure the window side by side with other libraries.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time for each library")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    peers = [peer for peer in PEER_LIBRARIES if peer.version]
    for package, version in {peer.package: peer.version for peer in PEER_LIBRARIES}.items():
        print(f"  {package} {version or 'is not installed: left out (scripts/setup peers)'}")
    turns = build_conversation(CONVERSATION_LENGTHS[-1])
    _check_reference(turns[:2_000])
    results = _measure_times(peers, turns, seconds=1 if arguments.quick else 12)
    weights = _measure_memory(peers, turns[:_MEMORY_TURNS])
    if ours.can_encode():
        _print_encoding(turns[:1_000])
    _print_goals(peers, results, weights)


if __name__ == "__main__":
    main()
