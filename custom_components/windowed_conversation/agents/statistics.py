"""What an agent counts over its turns, beside what its windows count themselves. What shows it is `sensor`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from .providers.events import Usage
from .turn.routing import Route
from .turn.turn import Outcome


class LastRoute(StrEnum):
    """How the last turn was answered, in the words of the sensor."""

    LOCAL = "local"
    MODEL = "model"
    FALLBACK = "fallback"
    ERROR = "error"


_LAST_ROUTES = {
    Route.LOCAL: LastRoute.LOCAL,
    Route.LLM: LastRoute.MODEL,
    Route.FALLBACK: LastRoute.FALLBACK,
}


_NO_ANSWER: Mapping[str, Any] = {"reason": None, "answered_by": None, "failures": []}


@dataclass(slots=True)
class Totals:
    """Sums over all turns of an agent, over restarts too: messages, turns and tokens."""

    evicted_messages: int = 0
    turns_local: int = 0
    turns_model: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0

    def add(self, name: str, amount: int) -> None:
        """Add to one sum."""
        setattr(self, name, getattr(self, name) + amount)


@dataclass(slots=True)
class Costs:
    """US dollars: `turn` is what the last turn has cost, None where that is not known.

    `known` is the sum over the turns and summaries of which it is known, over restarts too; `without_price` counts the
    others.
    """

    turn: Decimal | None = None
    known: Decimal = field(default_factory=Decimal)
    without_price: int = 0

    @property
    def total(self) -> Decimal | None:
        """The sum, None where nothing is known of what there was."""
        return None if self.without_price and not self.known else self.known

    def add(self, cost: Decimal | None, *, of_turn: bool) -> None:
        """Take in what a turn or a summary has cost, None where that is not known."""
        if of_turn:
            self.turn = cost
        if cost is None:
            self.without_price += 1
        else:
            self.known += cost


class AgentStatistics:
    """The totals of an agent and the figures of its last turn; times are in seconds."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.costs = Costs()
        self.last_route: LastRoute | None = None
        # Why the last turn took its route, who answered, and who failed before; ids and words.
        self.last_answer: Mapping[str, Any] = _NO_ANSWER
        self.time_to_first_token: float | None = None
        self.turn_duration: float | None = None

    def on_turn(self, outcome: Outcome, evicted_messages: int) -> None:
        """Take in a turn that ended."""
        totals = self.totals
        self._count(outcome.usage, evicted_messages)
        self.turn_duration = outcome.duration
        if outcome.first_word is not None:
            self.time_to_first_token = outcome.first_word
        self.last_route = LastRoute.ERROR if outcome.error else _LAST_ROUTES[outcome.decision.route]
        if outcome.error is None:
            totals.turns_local += outcome.decision.route is Route.LOCAL
            totals.turns_model += outcome.decision.route is not Route.LOCAL

    def on_cancelled(self, usage: Usage) -> None:
        """Take in what a turn has cost that nobody waited for in the end; it is no turn otherwise."""
        self._count(usage, 0)

    def on_summary(self, usage: Usage, evicted_messages: int) -> None:
        """Take in what a summary has cost, also one that failed, and what had to go for it."""
        self._count(usage, evicted_messages)

    def _count(self, usage: Usage, evicted_messages: int) -> None:
        totals = self.totals
        totals.evicted_messages += evicted_messages
        totals.input_tokens += usage.input
        totals.cached_input_tokens += usage.cached
        totals.output_tokens += usage.output
