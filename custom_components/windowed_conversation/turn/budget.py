"""What fits into a model: system prompt, tools, history and reply, added up against its context size.

Planned again before every request, because a tool's result may have filled what was free before. Pure decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..window import Exchange, WindowPolicy
from ..window.tags import IMPORTANT


@dataclass(frozen=True, slots=True)
class Budget:
    """What an agent allows itself, in tokens: its policy, and what its model can read, None where nobody says.

    `reply_tokens` are kept free for the answer, `schema_tokens` are what the tools take.
    """

    policy: WindowPolicy
    context_tokens: int | None = None
    reply_tokens: int = 0
    schema_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A model that is too small: what the fixed part, the newest exchange and the reply need, and what it has."""

    needed: int
    context: int


def room(budget: Budget, system_tokens: int) -> int | None:
    """Return how many tokens of exchanges the model has room for, below 1 for none; None if nobody knows its size."""
    if budget.context_tokens is None:
        return None
    return budget.context_tokens - system_tokens - budget.schema_tokens - budget.reply_tokens


def shortfall(budget: Budget, system_tokens: int, history_tokens: int) -> Shortfall | None:
    """Return by how much a request is too large for its model, None when it fits or nobody knows."""
    needed = system_tokens + budget.schema_tokens + history_tokens + budget.reply_tokens
    if budget.context_tokens is None or needed <= budget.context_tokens:
        return None
    return Shortfall(needed, budget.context_tokens)


def left_behind(exchanges: Sequence[Exchange], spare: int) -> frozenset[int]:
    """Return the numbers of the exchanges that go first when `spare` tokens are free, or missing where negative."""
    gone = list[int]()
    for exchange in sorted(exchanges, key=lambda exchange: IMPORTANT in exchange.tags):
        if spare >= 0:
            break
        spare += exchange.tokens
        gone.append(exchange.number)
    return frozenset(gone)
