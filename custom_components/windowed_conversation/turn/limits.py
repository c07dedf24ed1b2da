"""Limits of a turn in seconds, and of a request in tokens. Pure decisions, except for the idle timeout."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
import time

from ..window import IMPORTANT, Exchange, WindowPolicy
from .context import LIVE_SHARE

# The longest silence of a vendor's server between two signs of life, in seconds, with one for the network. OpenAI's and
# Azure's Responses send a keep-alive after 30 s: https://github.com/openai/openai-node/issues/1964
IDLE_TIMEOUT = 45.0 + 1.0

# In seconds: servers name hours, or a year, and serve again long before that.
LONGEST_PAUSE = 60.0

# The part of a model's size that is reserved for the answer if the user has not entered the size. Spoken answers are
# short, and the default of 1,000 tokens would be a quarter of a model that reads 4,000.
_ANSWER_SHARE = 16

# By how much a request may be longer than its estimate. Some servers refuse one that has no room for the longest answer
# that it allows.
_DOUBT = 0.25

# OpenAI takes no limit of an answer below this.
_LEAST_LIMIT = 16


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of a turn: its time in seconds, and the rounds of its tool loop.

    `fallback_timeout` is how long a server may be silent before its first token while a fallback agent stands by, and
    None if none does. `idle_timeout` is the longest silence once the server has begun to answer, None for the default.
    """

    fallback_timeout: float | None = 10.0
    idle_timeout: float | None = None
    turn: float = 120.0
    tool_iterations: int = 10

    def idle(self, *, at_home: bool) -> float:
        """Return the idle timeout. A server at home has as long as the turn: it writes a tool call without a sign."""
        if self.idle_timeout is not None:
            return self.idle_timeout
        return self.turn if at_home else IDLE_TIMEOUT


class Pause:
    """The pause that a provider has asked for, in seconds on the monotonic clock.

    It is respected for at most `LONGEST_PAUSE` from its beginning; then the provider is asked again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_at = self._ends_at = self._asked_until = 0.0

    @property
    def seconds_left(self) -> float:
        """How long the pause lasts, or 0 if there is none."""
        return max(0.0, self._ends_at - self._clock())

    @property
    def seconds_asked(self) -> float:
        """How long the pause would last if it was respected as long as the provider asked, or 0 if there is none."""
        return max(0.0, self._asked_until - self._clock()) if self.seconds_left else 0.0

    def begin(self, seconds: float) -> None:
        """Begin a pause of this many seconds."""
        now = self._clock()
        if not self.seconds_left:
            self._began_at = self._asked_until = now
        self._asked_until = max(self._asked_until, now + seconds)
        self._ends_at = min(self._asked_until, self._began_at + LONGEST_PAUSE)


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
