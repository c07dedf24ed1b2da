"""The token budget of a request: system prompt, tools, history and answer against the model's context size.

Planned anew before every request, because a tool result may have used the free room. Pure decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..window import IMPORTANT, Exchange, WindowPolicy
from .live_context import LIVE_SHARE

# The part of a model's size that is reserved for the answer if the user has not entered the size. Spoken answers are
# short, and the default of 1,000 tokens would be a quarter of a model that reads 4,000.
_ANSWER_SHARE = 16

# By how much a request may be longer than its estimate. Some servers refuse one that has no room for the longest answer
# that it allows.
_DOUBT = 0.25

# OpenAI takes no limit of an answer below this.
_LEAST_LIMIT = 16


@dataclass(frozen=True, slots=True)
class Budget:
    """An agent's limits in tokens: its policy, and its model's context size, or None if unknown.

    `max_answer_tokens` are reserved for the answer, and up to `live_tokens` for the live context; `schema_tokens` are
    the size of the tools. `sent_tokens` limits how much of the window a request sends, without changing the window;
    None sends all of it.
    """

    policy: WindowPolicy
    context_tokens: int | None = None
    max_answer_tokens: int = 0
    schema_tokens: int = 0
    live_tokens: int = 0
    sent_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A model is too small: `needed` tokens for fixed part, newest exchange and answer, and its `context` size."""

    needed: int
    context: int


def with_context_size(budget: Budget, context: int) -> Budget:
    """Return the budget with a context size that the user has not entered; it reserves less for the answer."""
    return replace(
        budget, context_tokens=context, max_answer_tokens=min(budget.max_answer_tokens, context // _ANSWER_SHARE)
    )


def less_history(history: int, others: int, context: int | None, share: float) -> int:
    """Return the number of tokens of history to send after it was refused together with `others`.

    That is as much as fits into `context`, the size that the model seems to have, or a share of the history if
    that is None.
    """
    if context is None:
        return int(history * share)
    return min(max(context - context // _ANSWER_SHARE - others, 0), history - 1)


def room(budget: Budget, system_tokens: int) -> int | None:
    """Return the room for exchanges in the model, in tokens: below 1 if none fit, None if its size is unknown."""
    left = _left(budget, system_tokens)
    return None if left is None else left - _live_share(budget, left)


def live_room(budget: Budget, system_tokens: int, history_tokens: int) -> int:
    """Return the number of tokens that the live context may have beside these of exchanges.

    A fixed share is reserved for it; less is left if the newest exchange alone takes more than the rest.
    """
    left = _left(budget, system_tokens)
    if left is None:
        return _live_share(budget, budget.policy.history_tokens)
    return max(0, min(_live_share(budget, left), left - history_tokens))


def _left(budget: Budget, system_tokens: int) -> int | None:
    if budget.context_tokens is None:
        return None
    return budget.context_tokens - system_tokens - budget.schema_tokens - budget.max_answer_tokens


def _live_share(budget: Budget, left: int) -> int:
    return max(0, min(budget.live_tokens, int(LIVE_SHARE * min(left, budget.policy.history_tokens))))


def answer_limit(budget: Budget, sent: int, thoughts: int) -> int | None:
    """Return the most tokens of an answer to a request of `sent` tokens, or None if none are reserved for it.

    It includes `thoughts` on top of the reserved tokens if the model has as much left.
    """
    if not budget.max_answer_tokens:
        return None
    limit = budget.max_answer_tokens + thoughts
    if budget.context_tokens is not None:
        limit = min(limit, max(budget.max_answer_tokens, budget.context_tokens - int((1 + _DOUBT) * sent)))
    return max(limit, _LEAST_LIMIT)


def shortfall(budget: Budget, system_tokens: int, history_tokens: int) -> Shortfall | None:
    """Return by how much a request is too large for its model, or None if it fits or the size is unknown."""
    needed = system_tokens + budget.schema_tokens + history_tokens + budget.max_answer_tokens
    if budget.context_tokens is None or needed <= budget.context_tokens:
        return None
    return Shortfall(needed, budget.context_tokens)


def full_shortfall(budget: Budget, reads: int, system_tokens: int) -> Shortfall | None:
    """Return by how much a full window is too large for a server that reads this much, or None if it fits."""
    return shortfall(with_context_size(budget, reads), system_tokens, budget.policy.history_tokens)


def exchanges_to_evict(exchanges: Sequence[Exchange], spare: int) -> frozenset[int]:
    """Return the numbers of the exchanges to evict when `spare` tokens are free, or missing if negative."""
    evicted = list[int]()
    for exchange in sorted(exchanges, key=lambda exchange: IMPORTANT in exchange.tags):
        if spare >= 0:
            break
        spare += exchange.tokens
        evicted.append(exchange.number)
    return frozenset(evicted)
