"""A provider's prompt cache with the window, simulated: hits and cost by budget and by the share that a trim frees.

    .venv/demo/bin/python -m benchmarks.cache            (needs the openai package; writes docs/cache.svg)

The conversation is the one of `benchmarks.window`: the same system prompt, 295 tokens a turn, and two requests in a
turn that calls a tool, the second with the result. Requests come from the real window and its real encoding for Chat
Completions. Figures are of the turns after every window is full: while it fills nobody trims, and everybody hits. A
window of 4,000 tokens holds twelve exchanges, of which every fourth has most of the tokens, so that shares from 15 to
30 % mostly trim to the same exchange: its curve has a step there.

The model of a cache: it holds exactly the last request of this conversation. Of the next request, those first messages
are cached whose bytes are the same; a message that is only partly the same counts as new. A cached token costs a tenth
of another. So there is no smallest length (OpenAI's is 1,024 tokens, in steps of 128), no expiry, no machine that has
not seen the conversation, no price for writing, and answers are not priced. Tool schemas, which would be more of the
cached prefix, are left out. Tokens are a quarter of the characters, for the budget and the price alike.

Compared with: single messages that go first in, first out, as most agents do it, for the cost; and with whole exchanges
that go one at a time, with the same tool results, for the history that is kept, as mean tokens of a request without the
system prompt. A stub is shorter than its result: the exchanges of a request show how much more the window then holds.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
import json
from pathlib import Path
from typing import Any

from benchmarks import ours
from benchmarks.cache_curve import Curve, draw
from benchmarks.reference import ChatMessage, MessageFifo, chat_tokens
from benchmarks.workload import SYSTEM_TOKENS, TURN_TOKENS, Turn, conversation, system_prompt

BUDGETS = (4_000, 8_000, 16_000, 32_000)
SHARES = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.75)

_CACHED_PRICE = 0.1
# A window is full after these many times the turns that its budget has room for, also when it keeps stubs.
_FILLED = 2.2
_MEASURED_TURNS = 400
# A small window meets only a few exchanges at a time, and needs more conversations for the same figures.
_SEEDS = {4_000: (1, 2, 3, 4), 8_000: (1, 2)}
_DEFAULT_SHARE = 0.25
_PICTURE = Path(__file__).parent.parent / "docs" / "cache.svg"

# The goals at the default share: at least this much of the input is cached, at most this much is the cost to messages
# that go one by one, and at least this much of the history is kept.
_GOALS = {4_000: (0.80, 0.40), 8_000: (0.87, 0.30)}
_RETAINED_GOAL = 0.85

_COLOURS = {4_000: "#cf222e", 8_000: "#9a6700", 16_000: "#1a7f37", 32_000: "#0969da"}

# Treatments of tool results: the shares that are simulated, and the policy, as far as the window has one.
_KEPT, _STUBBED, _NEWEST = "results kept", "results stubbed", "newest 3 results kept"
_RESULTS: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {_KEPT: (SHARES, {})}
if {"tool_results", "max_tool_turns"} <= ours.POLICY_FIELDS:
    _RESULTS = {
        _KEPT: (SHARES, {"tool_results": "keep"}),
        _STUBBED: ((0.0, _DEFAULT_SHARE), {"tool_results": "stub"}),
        _NEWEST: ((0.0, _DEFAULT_SHARE), {"tool_results": "stub", "max_tool_turns": 3}),
    }

_encode_json = json.JSONEncoder(ensure_ascii=False).encode

type Request = Sequence[ChatMessage]


@dataclass(slots=True)
class Bill:
    """The bill of a conversation's requests, in tokens; `cost` in tokens that are not cached."""

    requests: int = 0
    tokens: int = 0
    cached: int = 0
    exchanges: int = 0

    @property
    def hit(self) -> float:
        """The share of the input that was cached."""
        return self.cached / self.tokens

    @property
    def cost(self) -> float:
        """The mean cost of a request."""
        return (self.tokens - (1 - _CACHED_PRICE) * self.cached) / self.requests

    @property
    def history(self) -> float:
        """The mean tokens of a request without the system prompt."""
        return self.tokens / self.requests - SYSTEM_TOKENS


def add_to(total: Bill, requests: Iterable[tuple[int, Request]], from_turn: int) -> None:
    """Add the sums of a conversation's requests, each with the number of its turn, from this turn on."""
    last: list[bytes] = []
    for number, request in requests:
        written = [_encode_json(message).encode() for message in request]
        if number >= from_turn:
            tokens = [chat_tokens(message) for message in request]
            total.requests += 1
            total.tokens += sum(tokens)
            total.cached += sum(tokens[: common_prefix(last, written)])
            total.exchanges += sum(message["role"] == "user" for message in request)
        last = written


def common_prefix(last: Sequence[bytes], written: Sequence[bytes]) -> int:
    """Return the number of messages, as bytes, that a request has in common with the last one from the start."""
    pairs = enumerate(zip(last, written, strict=False))
    return next((index for index, (before, now) in pairs if before != now), min(len(last), len(written)))


def window_requests(
    turns: Sequence[Turn], history_tokens: int, share: float, **policy: Any
) -> Iterator[tuple[int, Request]]:
    """Yield every request that the window makes of a conversation."""
    window = ours.new_window(system_prompt(), history_tokens, share, **policy)
    for number, turn in enumerate(turns):
        window.open(turn[0].text)
        yield number, ours.encode(window.messages())
        for said in turn[1:]:
            window.add(ours.message(said))
            if said.role == "tool":
                yield number, ours.encode(window.messages())
        window.close()


def fifo_requests(turns: Sequence[Turn], budget: int) -> Iterator[tuple[int, Request]]:
    """Yield every request of an agent that lets single messages go."""
    window = MessageFifo(system_prompt(), budget)
    for number, turn in enumerate(turns):
        for said in turn:
            window.append(said)
            if said.role != "assistant":
                yield number, window.messages()


@dataclass(frozen=True, slots=True)
class Figures:
    """One row: shares of 1, and the mean number of exchanges in a request."""

    results: str
    share: float
    hit: float
    cost: float
    retained: float
    exchanges: float


def simulate(budget: int) -> list[Figures]:
    """Return the figures: by share with results kept, and for the default share by the treatment of results."""
    single = Bill()
    totals = {(results, share): Bill() for results, (shares, _) in _RESULTS.items() for share in shares}
    from_turn = round(_FILLED * budget / TURN_TOKENS)
    for seed in _SEEDS.get(budget, (1,)):
        turns = conversation(from_turn + _MEASURED_TURNS, seed)
        add_to(single, fifo_requests(turns, budget), from_turn)
        for (results, share), total in totals.items():
            requests = window_requests(turns, budget - SYSTEM_TOKENS, share, **_RESULTS[results][1])
            add_to(total, requests, from_turn)
    return [_figures(results, share, total, single, totals[results, 0.0]) for (results, share), total in totals.items()]


def _figures(results: str, share: float, total: Bill, single: Bill, atomic: Bill) -> Figures:
    return Figures(
        results=results,
        share=share,
        hit=total.hit,
        cost=total.cost / single.cost,
        retained=total.history / atomic.history,
        exchanges=total.exchanges / total.requests,
    )


def _print_table(budget: int, table: Sequence[Figures]) -> None:
    print(f"Budget {budget:,} tokens, of which {SYSTEM_TOKENS} are the system prompt's (percent)")
    print(f"  {'share':<30}{'cached':>9}{'cost':>9}{'retained':>10}{'exchanges':>11}")
    for figures in table:
        shares = f"{figures.hit:>9.1%}{figures.cost:>9.1%}{figures.retained:>10.1%}"
        print(f"  {figures.share:<7.1%}{figures.results:<23}{shares}{figures.exchanges:>11.1f}")
    print(flush=True)


def _judge(budget: int, figures: Figures) -> None:
    least_hit, most_cost = _GOALS[budget]
    for goal, value, met in (
        (f"cached, at least {least_hit:.0%}", figures.hit, figures.hit >= least_hit),
        (f"cost, at most {most_cost:.0%}", figures.cost, figures.cost <= most_cost),
        (f"retained, at least {_RETAINED_GOAL:.0%}", figures.retained, figures.retained >= _RETAINED_GOAL),
    ):
        name = f"{budget:,} tokens, {figures.results}: {goal}"
        print(f"  {name:<66}{value:>8.1%}  {'met' if met else 'MISSED'}")


def _curves(tables: dict[int, list[Figures]]) -> Iterator[Curve]:
    for budget, figures_of_all in tables.items():
        table = [figures for figures in figures_of_all if figures.results == _KEPT]
        cost = [(figures.share, figures.cost) for figures in table]
        retained = [(figures.share, figures.retained) for figures in table]
        yield Curve(f"cost, {budget:,} tokens", _COLOURS[budget], cost)
        yield Curve("history kept (dashed)" if budget == max(tables) else "", _COLOURS[budget], retained, dashed=True)


def main() -> None:
    """Simulate, print and draw."""
    parser = argparse.ArgumentParser(description="Simulate a provider's prompt cache on the window's requests.")
    parser.add_argument("--no-picture", action="store_true", help="leave docs/cache.svg as it is")
    arguments = parser.parse_args()
    tables: dict[int, list[Figures]] = {}
    for budget in BUDGETS:
        tables[budget] = simulate(budget)
        _print_table(budget, tables[budget])
    print(f"Goals at a share of {_DEFAULT_SHARE:.0%}")
    for budget in _GOALS:
        for figures in tables[budget]:
            if figures.share == _DEFAULT_SHARE and figures.results != _NEWEST:
                _judge(budget, figures)
    if not arguments.no_picture:
        title = "What a request costs with a prompt cache, and how much history it has"
        below = (
            "part of the history budget that one trim frees",
            "100 %: what it costs to let single messages go, and the history that letting single exchanges go keeps",
        )
        _PICTURE.write_text(draw(title, below, tuple(_curves(tables)), _DEFAULT_SHARE), encoding="utf-8")
        print("\nDrawn: docs/cache.svg")


if __name__ == "__main__":
    main()
