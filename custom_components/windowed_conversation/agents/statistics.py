"""The statistics of an agent: its totals and costs, and those of its last turn."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal, InvalidOperation
import logging
from typing import Any, NamedTuple

from ..providers import Usage
from ..store import do_nothing
from ..turn.attempts import AttemptResult
from ..turn.routing import Route
from ..turn.state import Turn
from ..window import is_int_in_range

_LOGGER = logging.getLogger(__name__)

# The maximum of each total, because integers in Home Assistant's JSON have at most 64 bits.
_MAX_TOTAL = 2**63 - 1
_COST_KEY = "cost"
_UNPRICED = "without_price"
# In characters. A stored total cost is never longer.
_MAX_COST_CHARS = 64

# The states of the last route's sensor: a route, or an error.
_ERROR_STATE = "error"
LAST_ROUTE_STATES = (*map(str, Route), _ERROR_STATE)

_NO_ANSWER_ATTRIBUTES: Mapping[str, Any] = {
    "reason": None,
    "answered_by": None,
    "failures": [],
    "error": None,
    "recalled_tokens": None,
    "recall_ms": None,
    "turn_id": None,
    "entities": [],
}


@dataclass(slots=True)
class Totals:
    """Totals over all turns of an agent, kept across restarts: turns, requests, tool calls and tokens."""

    turns_local: int = 0
    # The turns that a model answered.
    turns_model: int = 0
    # The turns in `turns_model` that a fallback agent answered.
    turns_fallback: int = 0
    turns_failed: int = 0
    requests: int = 0
    tool_calls: int = 0
    failed_tool_calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


_TOTAL_NAMES = tuple(each.name for each in fields(Totals))


@dataclass(slots=True)
class Costs:
    """Costs in US dollars."""

    # The cost of the last turn, or None if it is unknown.
    last_turn: Decimal | None = None
    # The total of all turns and summaries with known costs, kept across restarts.
    known_total: Decimal = field(default_factory=Decimal)
    # The number of turns and summaries with unknown costs.
    without_price: int = 0

    @property
    def total(self) -> Decimal | None:
        """The total cost, or None if no cost is known."""
        return None if self.without_price and not self.known_total else self.known_total


class StoredStatistics(NamedTuple):
    """The totals and costs that continue after a restart, as they are stored on disk."""

    totals: Totals
    costs: Costs


class AgentStatistics:
    """The totals of an agent and the statistics of its last turn, with times in seconds. Outlives a reload.

    `on_disk` are the totals and costs that are already on disk, and so survive even a kill of Home Assistant.
    """

    def __init__(self) -> None:
        self.totals = Totals()
        self.costs = Costs()
        self.on_disk = StoredStatistics(Totals(), Costs())
        # One of `LAST_ROUTE_STATES`, or None before the first turn.
        self.last_route: str | None = None
        # The last turn's reason for its route, the agent that answered, and earlier failures.
        self.last_answer: Mapping[str, Any] = _NO_ANSWER_ATTRIBUTES
        # The error message that the user received in the last turn, or None.
        self.last_error: str | None = None
        self.time_to_first_token: float | None = None
        self.turn_duration: float | None = None
        # Callback after each change of a total.
        self.save_soon: Callable[[], None] = do_nothing
        self._listeners: list[Callable[[], None]] = []

    def on_turn(self, outcome: Turn, answer: Mapping[str, Any] = _NO_ANSWER_ATTRIBUTES) -> None:
        """Count an ended turn. `answer` has the reason of its route, the agent that answered, and earlier failures."""
        totals, route = self.totals, outcome.decision.route
        self.add_use(outcome.usage, len(outcome.attempts), outcome.tool_calls, outcome.failed_tool_calls)
        if outcome.interruption is not None:
            # a cancelled turn is not counted
            totals.turns_failed += outcome.result is AttemptResult.ERROR
            return
        self.last_answer, self.last_error = answer, None
        self.turn_duration = outcome.duration_seconds
        if outcome.first_token_seconds is not None:
            self.time_to_first_token = outcome.first_token_seconds
        self.last_route = _ERROR_STATE if outcome.error else str(route)
        if outcome.error is None:
            totals.turns_local += route is Route.LOCAL
            totals.turns_model += route is not Route.LOCAL
            totals.turns_fallback += route is Route.FALLBACK
        else:
            totals.turns_failed += 1

    def on_failure(self, error: str, message: str | None, turn_id: str | None) -> None:
        """Record the error message of a failed turn, even if the turn failed before it was counted."""
        if (self.last_answer["error"], self.last_answer["turn_id"]) != (error, turn_id):
            self.last_answer = {**_NO_ANSWER_ATTRIBUTES, "error": error, "turn_id": turn_id}
        self.last_route, self.last_error = _ERROR_STATE, message

    def on_cost(self, cost: Decimal | None, *, of_turn: bool) -> None:
        """Add the cost of a turn or a summary, or None for an unknown cost."""
        if of_turn:
            self.costs.last_turn = cost
        if cost is None:
            self.costs.without_price += 1
        else:
            self.costs.known_total = min(self.costs.known_total + cost, Decimal(_MAX_TOTAL))
        self.save_soon()
        self._notify_listeners()

    def as_dict(self) -> dict[str, Any]:
        """Return the totals and costs in a form that can be stored as JSON."""
        totals = {name: min(max(value, 0), _MAX_TOTAL) for name, value in asdict(self.totals).items()}
        return {**totals, _COST_KEY: str(self.costs.known_total), _UNPRICED: min(self.costs.without_price, _MAX_TOTAL)}

    def restore(self, stored: object) -> None:
        """Add the values that `as_dict` returned before a restart. An invalid value is treated as 0."""
        values = stored if isinstance(stored, dict) else {}
        earlier = Totals(**{name: _parse_total(values, name) for name in _TOTAL_NAMES})
        costs = Costs(known_total=_parse_cost(values), without_price=_parse_total(values, _UNPRICED))
        self.on_disk = StoredStatistics(earlier, costs)
        for name in _TOTAL_NAMES:
            setattr(self.totals, name, getattr(self.totals, name) + getattr(earlier, name))
        self.costs.known_total = min(self.costs.known_total + costs.known_total, Decimal(_MAX_TOTAL))
        self.costs.without_price += costs.without_price
        self._notify_listeners()

    def on_written(self, stored: Mapping[str, Any]) -> None:
        """Update `on_disk` with the values that have been written, as returned by `as_dict`."""
        totals = Totals(**{name: stored[name] for name in _TOTAL_NAMES})
        costs = Costs(known_total=Decimal(stored[_COST_KEY]), without_price=stored[_UNPRICED])
        self.on_disk = StoredStatistics(totals, costs)
        self._notify_listeners()

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when new totals are on disk or a cost is known. Return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _notify_listeners(self) -> None:
        for listener in list(self._listeners):
            listener()

    def add_use(self, usage: Usage, requests: int, calls: int = 0, failed: int = 0) -> None:
        """Add requests with their usage, and the tool calls in their answers."""
        totals = self.totals
        totals.requests += requests
        totals.tool_calls += calls
        totals.failed_tool_calls += failed
        totals.input_tokens += usage.input
        totals.cached_input_tokens += usage.cached
        totals.output_tokens += usage.output
        self.save_soon()


def _parse_total(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name, 0)
    if is_int_in_range(value, most=_MAX_TOTAL):
        return value
    _LOGGER.warning("The total %s is not restored: it cannot be read", name)
    return 0


def _parse_cost(values: Mapping[str, Any]) -> Decimal:
    value = values.get(_COST_KEY, "0")
    if isinstance(value, str) and len(value) <= _MAX_COST_CHARS:
        try:
            cost = Decimal(value)
        except InvalidOperation:
            cost = Decimal("NaN")
        if cost.is_finite() and 0 <= cost <= _MAX_TOTAL:
            return cost
    _LOGGER.warning("The total %s is not restored: it cannot be read", _COST_KEY)
    return Decimal()
