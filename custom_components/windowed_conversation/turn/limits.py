"""Limits of a turn in seconds, of a request in tokens, and of concurrent requests. Only `Pause` reads the clock."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
import time

from ..providers import ToolSchema, count_tools_tokens
from ..window import IMPORTANT, Exchange, TextCounter, TextKind, WindowPolicy
from .context import MAX_LIVE_CONTEXT_SHARE

# The largest share of a model's context size that the overview of the home may take, and its largest share of what the
# rest of the request and the live context leave. The other half is for the conversation.
_MAX_OVERVIEW_SHARE = 0.15
_MAX_OVERVIEW_SHARE_OF_REST = 0.5
# A limit is a multiple of this, so that a name in the instructions does not change which names of devices fit.
_OVERVIEW_STEP_TOKENS = 50

# The longest silence, in seconds, of a vendor's server that has begun to answer: the longest interval between two signs
# of life, plus one second for the network.
# OpenAI's and Azure's Responses send a keep-alive after 30 s: https://github.com/openai/openai-node/issues/1964
IDLE_TIMEOUT = 45.0 + 1.0

# The turn timeout, by default, and at least for a turn in the background and for a task, for which nobody waits.
DEFAULT_TURN_TIMEOUT = 120.0
BACKGROUND_TIMEOUT = 300.0

# The longest pause in seconds that is respected: servers ask for hours, or a year, and accept requests again long
# before that.
MAX_PAUSE_SECONDS = 60.0

# The maximum number of concurrent requests: more than a local server handles at once, but few enough that a provider
# does not take them for an attack.
MAX_CONCURRENT_REQUESTS = 16

# The answer gets at most one part in this many of the model's size. Spoken answers are short, and the default of 1,000
# tokens would be a quarter of a model that reads 4,000.
_ANSWER_DIVISOR = 16

# After this many rounds of tool calls, the model must answer without tools.
MAX_TOOL_ROUNDS = 10

# How much longer than its estimate a request may be, as a share. Some servers refuse a request if the longest answer
# that it allows does not fit.
_ESTIMATE_MARGIN = 0.25

# The smallest output limit that OpenAI accepts.
_MIN_ANSWER_LIMIT = 16


def get_idle_timeout(turn_timeout: float, *, at_home: bool) -> float:
    """Return the idle timeout. A server at home may be silent for the whole turn while it writes a call."""
    return max(turn_timeout, BACKGROUND_TIMEOUT) if at_home else IDLE_TIMEOUT


class Pause:
    """The pause that a provider has asked for, in seconds on the monotonic clock.

    It is respected for at most `MAX_PAUSE_SECONDS` from its beginning; then requests are sent to the provider again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_at = self._ends_at = self._requested_end_at = 0.0

    @property
    def remaining_seconds(self) -> float:
        """How much longer the pause is respected, in seconds, or 0 if there is none."""
        return max(0.0, self._ends_at - self._clock())

    @property
    def requested_seconds(self) -> float:
        """How much longer the provider wants the pause to last, in seconds, or 0 if there is none."""
        return max(0.0, self._requested_end_at - self._clock()) if self.remaining_seconds else 0.0

    def begin(self, seconds: float) -> None:
        """Begin a pause of this many seconds."""
        now = self._clock()
        if not self.remaining_seconds:
            self._started_at = self._requested_end_at = now
        self._requested_end_at = max(self._requested_end_at, now + seconds)
        self._ends_at = min(self._requested_end_at, self._started_at + MAX_PAUSE_SECONDS)


class RequestLimiter(asyncio.Semaphore):
    """Limits the number of concurrent requests to a provider, first come, first served."""

    def __init__(self, most: int = MAX_CONCURRENT_REQUESTS) -> None:
        super().__init__(most)
        # Whether a request stays open beyond its turn, so that the server keeps loading a model.
        self.is_loading = False


@dataclass(frozen=True, slots=True)
class Budget:
    """An agent's limits in tokens."""

    policy: WindowPolicy
    # The context size of the model, or None if that is unknown.
    context_tokens: int | None = None
    # Reserved for the answer.
    max_answer_tokens: int = 0
    # The size of the tools.
    schema_tokens: int = 0
    # The most that is reserved for the live context.
    live_tokens: int = 0
    # Limits how much of the window a request sends, without changing the window itself. None sends all of it.
    max_sent_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A model's size is `context_tokens`, but the prompt, newest exchange and answer need `needed_tokens` tokens."""

    needed_tokens: int
    context_tokens: int


@dataclass(frozen=True, slots=True)
class RequestWeight:
    """The parts of an agent's requests, in tokens. Instructions, home, tools and facts are in each request."""

    instructions: int
    home: int
    tools: int
    # None if none have been read yet.
    facts: int | None
    # The most that states and recalled lines may take.
    live_context: int
    # The most that the conversation may take.
    window: int
    # The reserve for the answer.
    answer: int
    # The context size of the model, or None if it is unknown.
    model: int | None
    # The tokens of the tools of each large source, and how many of these are sent.
    sources: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The tokens that each request has before its conversation."""
        return self.instructions + self.home + self.tools + (self.facts or 0)


def apply_context_size(budget: Budget, context: int) -> Budget:
    """Return the budget with a context size. Only a share of it is reserved for the answer."""
    return replace(
        budget, context_tokens=context, max_answer_tokens=min(budget.max_answer_tokens, context // _ANSWER_DIVISOR)
    )


def reduce_history_tokens(history: int, others: int, context: int | None) -> int:
    """Return the tokens of history to send after the history and `others` together were refused.

    The result is the number that fits into `context`, the model's apparent size in tokens, or half of the history if
    that is None or leaves no room.
    """
    fitting = 0 if context is None else context - context // _ANSWER_DIVISOR - others
    return min(fitting, history - 1) if fitting > 0 else history // 2


def free_tokens(budget: Budget, system_tokens: int) -> int | None:
    """Return the tokens of exchanges that fit into the model: below 1 if none fit, None if its size is unknown."""
    left = _calculate_remaining_tokens(budget, system_tokens)
    return None if left is None else left - _calculate_live_reserve(budget, left)


def calculate_max_live_tokens(budget: Budget, system_tokens: int, history_tokens: int) -> int:
    """Return the tokens that the live context may have next to `history_tokens` of exchanges.

    A fixed share is reserved for it; it gets less only if the newest exchange takes more than the remaining room.
    """
    left = _calculate_remaining_tokens(budget, system_tokens)
    if left is None:
        return _calculate_live_reserve(budget, budget.policy.history_tokens)
    return max(0, min(_calculate_live_reserve(budget, left), left - history_tokens))


def _calculate_remaining_tokens(budget: Budget, system_tokens: int) -> int | None:
    if budget.context_tokens is None:
        return None
    return budget.context_tokens - system_tokens - budget.schema_tokens - budget.max_answer_tokens


def _calculate_live_reserve(budget: Budget, left: int) -> int:
    return max(0, min(budget.live_tokens, int(MAX_LIVE_CONTEXT_SHARE * min(left, budget.policy.history_tokens))))


def calculate_answer_limit(budget: Budget, sent: int, thoughts: int) -> int | None:
    """Return the output limit for a request of `sent` tokens, or None if no tokens are reserved for the answer.

    The limit includes `thoughts`, the tokens for reasoning, as far as the model has room for them.
    """
    if not budget.max_answer_tokens:
        return None
    limit = budget.max_answer_tokens + thoughts
    if budget.context_tokens is not None:
        limit = min(limit, max(budget.max_answer_tokens, budget.context_tokens - int((1 + _ESTIMATE_MARGIN) * sent)))
    return max(limit, _MIN_ANSWER_LIMIT)


def find_shortfall(budget: Budget, system_tokens: int, history_tokens: int) -> Shortfall | None:
    """Return the `Shortfall` of a request that is too large, or None if it fits or the size is unknown."""
    needed = system_tokens + budget.schema_tokens + history_tokens + budget.max_answer_tokens
    if budget.context_tokens is None or needed <= budget.context_tokens:
        return None
    return Shortfall(needed, budget.context_tokens)


def find_window_shortfall(budget: Budget, reads: int, system_tokens: int) -> Shortfall | None:
    """Return the `Shortfall` of a full window for a server that reads `reads` tokens, or None if the window fits."""
    return find_shortfall(apply_context_size(budget, reads), system_tokens, budget.policy.history_tokens)


def choose_evictions(exchanges: Sequence[Exchange], spare: int) -> frozenset[int]:
    """Return the numbers of the exchanges to evict if `spare` tokens are free (negative: too many are used).

    Important exchanges are evicted last.
    """
    evicted = list[int]()
    for exchange in sorted(exchanges, key=lambda exchange: IMPORTANT in exchange.tags):
        if spare >= 0:
            break
        spare += exchange.tokens
        evicted.append(exchange.number)
    return frozenset(evicted)


def weigh_request(
    instructions: str,
    home: str,
    tools: Sequence[ToolSchema],
    *,
    facts: str | None,
    budget: Budget,
    counter: TextCounter,
) -> RequestWeight:
    """Return the weight of the requests with these instructions, this text on the home, these tools and facts.

    `budget` has the largest live context; its size of the tools is replaced.
    """
    budget = replace(budget, schema_tokens=count_tools_tokens(tools, counter))
    instructions_tokens, home_tokens, facts_tokens = (
        counter.count_as(TextKind.FIXED, text) for text in (instructions, home, facts or "")
    )
    system_tokens = instructions_tokens + home_tokens + facts_tokens
    free, history = free_tokens(budget, system_tokens), budget.policy.history_tokens
    return RequestWeight(
        instructions=instructions_tokens,
        home=home_tokens,
        tools=budget.schema_tokens,
        facts=None if facts is None else facts_tokens,
        live_context=calculate_max_live_tokens(budget, system_tokens, 0),
        window=history if free is None else max(0, min(free, history)),
        answer=budget.max_answer_tokens,
        model=budget.context_tokens,
    )


def calculate_overview_limit(budget: Budget, instructions_tokens: int) -> int | None:
    """Return the most tokens that the overview of the home may take, or None for a model of unknown size."""
    left = _calculate_remaining_tokens(budget, instructions_tokens + budget.live_tokens)
    if budget.context_tokens is None or left is None:
        return None
    limit = min(_MAX_OVERVIEW_SHARE * budget.context_tokens, _MAX_OVERVIEW_SHARE_OF_REST * left)
    return max(0, int(limit) // _OVERVIEW_STEP_TOKENS * _OVERVIEW_STEP_TOKENS)
