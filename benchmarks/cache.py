"""Simulate a provider's prompt cache: its hits and the cost by token budget and by the share that one trim frees.

    .venv/demo/bin/python -m benchmarks.cache            (needs the openai package; writes docs/cache.svg)

The conversation is the one of `benchmarks.window`: the same system prompt, 295 tokens per turn, and two requests in a
turn with a tool call, the second of which has the result. The requests come from the real window and its real encoding
for Chat Completions. Only turns after every window is full are counted: while a window fills up, nothing is trimmed and
every request hits the cache. A window of 4,000 tokens holds twelve exchanges, and every fourth of them has most of the
tokens. Shares from 15 to 30 % therefore mostly trim to the same exchange, and the curve has a step there.

The simulated cache holds exactly the last request of this conversation. In the next request, the leading messages with
identical bytes are cached; a message that matches only in part counts as uncached. A cached token costs a tenth of an
uncached one. The simulation has no minimum length (OpenAI's is 1,024 tokens, in steps of 128), no expiry, no servers
that have not seen the conversation, and no price for cache writes or answers. Tool schemas, which would add to the
cached prefix, are left out. A token is four characters, for the budget and for the price.

The cost is compared with an agent that removes single messages, first in, first out, as most agents do. The retained
history is compared with a window that removes whole exchanges one at a time and has the same tool results; it is the
mean number of tokens of a request without the system prompt. A stub is shorter than the tool result that it replaces,
so the number of exchanges in a request shows how much more the window then holds.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
import json
from pathlib import Path
from typing import Any

from benchmarks import ours
from benchmarks.cache_curve import Curve, draw_curves
from benchmarks.reference import ChatMessage, MessageFifo, count_chat_tokens
from benchmarks.workload import SYSTEM_TOKENS, TOKENS_PER_TURN, Turn, build_conversation, build_system_prompt

TOKEN_BUDGETS = (4_000, 8_000, 16_000, 32_000)
TRIM_SHARES = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.75)

_CACHED_TOKEN_PRICE = 0.1
# A window is full after this many times the number of turns that fit its budget, even if it keeps stubs.
_FILL_FACTOR = 2.2
_MEASURED_TURNS = 400
# A small window sees only a few exchanges at a time, so it needs more conversations for equally precise results.
_SEEDS_BY_BUDGET = {4_000: (1, 2, 3, 4), 8_000: (1, 2)}
_DEFAULT_SHARE = 0.25
_PICTURE_FILE = Path(__file__).parent.parent / "docs" / "cache.svg"

# The goals at the default share: the minimum cached share of the input, the maximum cost relative to removing single
# messages, and the minimum share of the history that is retained.
_GOALS_BY_BUDGET = {4_000: (0.80, 0.40), 8_000: (0.87, 0.30)}
_RETAINED_GOAL = 0.85

_COLOUR_BY_BUDGET = {4_000: "#cf222e", 8_000: "#9a6700", 16_000: "#1a7f37", 32_000: "#0969da"}

# How tool results are treated: for each treatment, the simulated shares and the window's policy.
_KEEP_ALL, _STUB_ALL, _KEEP_NEWEST = "results kept", "results stubbed", "newest 3 results kept"
_POLICY_BY_TREATMENT: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {_KEEP_ALL: (TRIM_SHARES, {})}
if {"tool_results", "max_tool_turns"} <= ours.POLICY_FIELD_NAMES:
    _POLICY_BY_TREATMENT = {
        _KEEP_ALL: (TRIM_SHARES, {"tool_results": "keep"}),
        _STUB_ALL: ((0.0, _DEFAULT_SHARE), {"tool_results": "stub"}),
        _KEEP_NEWEST: ((0.0, _DEFAULT_SHARE), {"tool_results": "stub", "max_tool_turns": 3}),
    }

_encode_json = json.JSONEncoder(ensure_ascii=False).encode

type Request = Sequence[ChatMessage]


@dataclass(slots=True)
class Bill:
    """The totals of a conversation's requests: tokens, cached tokens, and the cost in uncached tokens."""

    request_count: int = 0
    token_count: int = 0
    cached_tokens: int = 0
    exchange_count: int = 0

    @property
    def cached_share(self) -> float:
        """The share of the input that was cached."""
        return self.cached_tokens / self.token_count

    @property
    def mean_cost(self) -> float:
        """The mean cost of a request, in uncached tokens."""
        return (self.token_count - (1 - _CACHED_TOKEN_PRICE) * self.cached_tokens) / self.request_count

    @property
    def mean_history_tokens(self) -> float:
        """The mean number of tokens of a request without the system prompt."""
        return self.token_count / self.request_count - SYSTEM_TOKENS


def add_requests(total: Bill, requests: Iterable[tuple[int, Request]], from_turn: int) -> None:
    """Add a conversation's requests to `total`, counting only turns from `from_turn` on.

    Each request is paired with the number of its turn.
    """
    last: list[bytes] = []
    for number, request in requests:
        written = [_encode_json(message).encode() for message in request]
        if number >= from_turn:
            tokens = [count_chat_tokens(message) for message in request]
            total.request_count += 1
            total.token_count += sum(tokens)
            total.cached_tokens += sum(tokens[: count_common_messages(last, written)])
            total.exchange_count += sum(message["role"] == "user" for message in request)
        last = written


def count_common_messages(last: Sequence[bytes], current: Sequence[bytes]) -> int:
    """Return the number of leading messages, as bytes, that a request shares with the previous one."""
    pairs = enumerate(zip(last, current, strict=False))
    return next((index for index, (before, now) in pairs if before != now), min(len(last), len(current)))


def iter_window_requests(
    turns: Sequence[Turn], history_tokens: int, share: float, **policy: Any
) -> Iterator[tuple[int, Request]]:
    """Yield each request that a window makes for a conversation, paired with the number of its turn."""
    window = ours.create_window(build_system_prompt(), history_tokens, share, **policy)
    for number, turn in enumerate(turns):
        window.open(turn[0].text)
        yield number, ours.encode_chat_messages(window.messages())
        for said in turn[1:]:
            window.add(ours.to_message(said))
            if said.role == "tool":
                yield number, ours.encode_chat_messages(window.messages())
        window.close()


def iter_fifo_requests(turns: Sequence[Turn], budget: int) -> Iterator[tuple[int, Request]]:
    """Yield each request of an agent that removes single messages, paired with the number of its turn."""
    window = MessageFifo(build_system_prompt(), budget)
    for number, turn in enumerate(turns):
        for said in turn:
            window.append(said)
            if said.role != "assistant":
                yield number, window.messages()


@dataclass(frozen=True, slots=True)
class CacheResult:
    """One row of the table: shares between 0 and 1, and the mean number of exchanges in a request."""

    treatment: str
    share: float
    cached_share: float
    relative_cost: float
    retained_share: float
    mean_exchanges: float


def simulate_budget(budget: int) -> list[CacheResult]:
    """Return the rows for a budget: each share with full tool results, then the default share with other treatments."""
    single = Bill()
    totals = {(results, share): Bill() for results, (shares, _) in _POLICY_BY_TREATMENT.items() for share in shares}
    from_turn = round(_FILL_FACTOR * budget / TOKENS_PER_TURN)
    for seed in _SEEDS_BY_BUDGET.get(budget, (1,)):
        turns = build_conversation(from_turn + _MEASURED_TURNS, seed)
        add_requests(single, iter_fifo_requests(turns, budget), from_turn)
        for (results, share), total in totals.items():
            requests = iter_window_requests(turns, budget - SYSTEM_TOKENS, share, **_POLICY_BY_TREATMENT[results][1])
            add_requests(total, requests, from_turn)
    return [
        _build_result(results, share, total, single, totals[results, 0.0]) for (results, share), total in totals.items()
    ]


def _build_result(results: str, share: float, bill: Bill, single: Bill, atomic: Bill) -> CacheResult:
    return CacheResult(
        treatment=results,
        share=share,
        cached_share=bill.cached_share,
        relative_cost=bill.mean_cost / single.mean_cost,
        retained_share=bill.mean_history_tokens / atomic.mean_history_tokens,
        mean_exchanges=bill.exchange_count / bill.request_count,
    )


def _print_table(budget: int, table: Sequence[CacheResult]) -> None:
    print(f"Budget {budget:,} tokens, of which {SYSTEM_TOKENS} are the system prompt's (percent)")
    print(f"  {'share':<30}{'cached':>9}{'cost':>9}{'retained':>10}{'exchanges':>11}")
    for figures in table:
        shares = f"{figures.cached_share:>9.1%}{figures.relative_cost:>9.1%}{figures.retained_share:>10.1%}"
        print(f"  {figures.share:<7.1%}{figures.treatment:<23}{shares}{figures.mean_exchanges:>11.1f}")
    print(flush=True)


def _print_goals(budget: int, figures: CacheResult) -> None:
    least_hit, most_cost = _GOALS_BY_BUDGET[budget]
    for goal, value, met in (
        (f"cached, at least {least_hit:.0%}", figures.cached_share, figures.cached_share >= least_hit),
        (f"cost, at most {most_cost:.0%}", figures.relative_cost, figures.relative_cost <= most_cost),
        (f"retained, at least {_RETAINED_GOAL:.0%}", figures.retained_share, figures.retained_share >= _RETAINED_GOAL),
    ):
        name = f"{budget:,} tokens, {figures.treatment}: {goal}"
        print(f"  {name:<66}{value:>8.1%}  {'met' if met else 'MISSED'}")


def _iter_curves(tables: dict[int, list[CacheResult]]) -> Iterator[Curve]:
    for budget, figures_of_all in tables.items():
        table = [figures for figures in figures_of_all if figures.treatment == _KEEP_ALL]
        cost = [(figures.share, figures.relative_cost) for figures in table]
        retained = [(figures.share, figures.retained_share) for figures in table]
        yield Curve(f"cost, {budget:,} tokens", _COLOUR_BY_BUDGET[budget], cost)
        yield Curve(
            "history kept (dashed)" if budget == max(tables) else "",
            _COLOUR_BY_BUDGET[budget],
            retained,
            is_dashed=True,
        )


def main() -> None:
    """Run the simulation, print the tables, and draw the picture."""
    parser = argparse.ArgumentParser(description="Simulate a provider's prompt cache on the window's requests.")
    parser.add_argument("--no-picture", action="store_true", help="leave docs/cache.svg as it is")
    arguments = parser.parse_args()
    tables: dict[int, list[CacheResult]] = {}
    for budget in TOKEN_BUDGETS:
        tables[budget] = simulate_budget(budget)
        _print_table(budget, tables[budget])
    print(f"Goals at a share of {_DEFAULT_SHARE:.0%}")
    for budget in _GOALS_BY_BUDGET:
        for figures in tables[budget]:
            if figures.share == _DEFAULT_SHARE and figures.treatment != _KEEP_NEWEST:
                _print_goals(budget, figures)
    if not arguments.no_picture:
        title = "What a request costs with a prompt cache, and how much history it has"
        below = (
            "part of the history budget that one trim frees",
            "100 %: what it costs to let single messages go, and the history that letting single exchanges go keeps",
        )
        _PICTURE_FILE.write_text(
            draw_curves(title, below, tuple(_iter_curves(tables)), _DEFAULT_SHARE), encoding="utf-8"
        )
        print("\nDrawn: docs/cache.svg")


if __name__ == "__main__":
    main()
