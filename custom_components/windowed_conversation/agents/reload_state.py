"""State that outlives a reload: the statistics, promises and conversations of each agent, created and dropped here."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal, InvalidOperation
from functools import partial
import logging
from typing import Any, NamedTuple

from homeassistant.core import HomeAssistant, callback
from homeassistant.util.hass_dict import HassKey

from ..bridge.account import ServerCache
from ..bridge.calibration import ModelCalibrations, async_get_exact_counter
from ..const import DOMAIN
from ..memory import TurnRecord
from ..providers import Usage
from ..turn.attempts import Attempt, AttemptResult
from ..turn.recall import PromptFacts, RecalledLines
from ..turn.routing import Route
from ..turn.speaker import Speaker
from ..turn.state import Turn
from ..window import CalibratedCounter, WindowRegistry, is_int_in_range
from .config import AgentConfig
from .conversations import ConversationStore
from .issues import HealthWatch
from .store import AgentStore, StoredValue, async_get_store, async_start_store

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
}

_ACCOUNT_STATES_KEY: HassKey[dict[str, AccountState]] = HassKey(f"{DOMAIN}_account_states")

_MAX_LOST_ANSWERS = 20
_MAX_RECENT_TURNS = 20


@dataclass(slots=True)
class SentContext:
    """The additions to the last request of a turn: facts, recalled lines, and the text of the states of the home."""

    facts: PromptFacts | None = None
    recalled: RecalledLines = field(default_factory=RecalledLines)
    states: str = ""


@dataclass(slots=True)
class RecentTurn:
    """A turn in working memory, at any record level.

    `outline` returns its record with its requests, and `complete` also their text, which takes milliseconds.
    `context` has the additions to its requests. `attempts` is empty if its requests had pictures, which are not
    kept. `live_tokens` is the size of its live context. `cost` is in US dollars, and None until it is known.
    """

    record: TurnRecord
    speaker: Speaker
    outline: Callable[[], TurnRecord]
    complete: Callable[[], TurnRecord]
    context: SentContext
    attempts: tuple[Attempt, ...] = ()
    live_tokens: int = 0
    cost: str | None = None


@dataclass(slots=True)
class Totals:
    """Totals over all turns of an agent, kept across restarts: messages, turns, requests, tool calls and tokens.

    `turns_model` counts the turns that a model answered. `turns_fallback` counts those of them that a fallback agent
    answered.
    """

    evicted_messages: int = 0
    turns_local: int = 0
    turns_model: int = 0
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
    """Costs in US dollars. `last_turn` is the cost of the last turn, or None if it is unknown.

    `known_total` is the total of all turns and summaries with known costs, kept across restarts. `without_price` is the
    number of all others.
    """

    last_turn: Decimal | None = None
    known_total: Decimal = field(default_factory=Decimal)
    without_price: int = 0

    @property
    def total(self) -> Decimal | None:
        """The total cost, or None if no cost is known."""
        return None if self.without_price and not self.known_total else self.known_total

    def add(self, cost: Decimal | None, *, of_turn: bool) -> None:
        """Add the cost of a turn or a summary, or None for an unknown cost."""
        if of_turn:
            self.last_turn = cost
        if cost is None:
            self.without_price += 1
        else:
            self.known_total = min(self.known_total + cost, Decimal(_MAX_TOTAL))


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
        self.save_soon: Callable[[], None] = lambda: None
        self._listeners: list[Callable[[], None]] = []

    def on_turn(self, outcome: Turn, evicted_messages: int, answer: Mapping[str, Any] = _NO_ANSWER_ATTRIBUTES) -> None:
        """Count an ended turn. `answer` has the reason of its route, the agent that answered, and earlier failures."""
        totals, route = self.totals, outcome.decision.route
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
        self._add_use(
            outcome.usage, evicted_messages, len(outcome.attempts), outcome.tool_calls, outcome.failed_tool_calls
        )

    def on_failure(self, error: str, message: str | None, turn_id: str | None) -> None:
        """Record the error message of a failed turn, even if the turn failed before it was counted."""
        if (self.last_answer["error"], self.last_answer["turn_id"]) != (error, turn_id):
            self.last_answer = {**_NO_ANSWER_ATTRIBUTES, "error": error, "turn_id": turn_id}
        self.last_route, self.last_error = _ERROR_STATE, message

    def on_interrupted(self, outcome: Turn) -> None:
        """Count the requests and the usage of an interrupted turn. A cancelled turn is not counted as a turn."""
        self.totals.turns_failed += outcome.result is AttemptResult.ERROR
        self._add_use(outcome.usage, 0, len(outcome.attempts), outcome.tool_calls, outcome.failed_tool_calls)

    def on_summary(self, requests: int, usage: Usage, evicted_messages: int) -> None:
        """Count a summary's requests, usage and evicted messages, even if the summary failed."""
        self._add_use(usage, evicted_messages, requests)

    def on_evicted(self, messages: int) -> None:
        """Count messages that were evicted outside a turn."""
        self._add_use(Usage(), messages)

    def on_cost(self, cost: Decimal | None, *, of_turn: bool) -> None:
        """Add the cost of a turn or a summary, or None for an unknown cost."""
        self.costs.add(cost, of_turn=of_turn)
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
        for name in _TOTAL_NAMES:
            setattr(self.totals, name, getattr(self.totals, name) + getattr(earlier, name))
        self.costs.known_total = min(self.costs.known_total + costs.known_total, Decimal(_MAX_TOTAL))
        self.costs.without_price += costs.without_price
        self.on_disk = StoredStatistics(earlier, costs)
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

    def _add_use(self, usage: Usage, evicted_messages: int, requests: int = 0, calls: int = 0, failed: int = 0) -> None:
        totals = self.totals
        totals.requests += requests
        totals.tool_calls += calls
        totals.failed_tool_calls += failed
        totals.evicted_messages += evicted_messages
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


class PromisedAnswers:
    """The answers that an agent has promised and not delivered yet, which are stored.

    `conversations` has the ids of their conversations, by the ids of the promises. Those that are stored at the
    start were lost, because Home Assistant was stopped.
    """

    def __init__(self) -> None:
        self.save_soon: Callable[[], None] = lambda: None
        self.conversations: dict[str, str] = {}
        self._lost: list[str] = []

    def add(self, promise_id: str, conversation_id: str) -> None:
        """Add an answer that was promised."""
        self.conversations[promise_id] = conversation_id
        self.save_soon()

    def remove(self, promise_id: str) -> None:
        """Remove an answer that was delivered, or will not be."""
        self.conversations.pop(promise_id, None)
        self.save_soon()

    def take_lost(self) -> list[str]:
        """Return the conversations whose answers were lost, and forget them."""
        lost, self._lost = self._lost, []
        return lost

    def as_dict(self) -> dict[str, str]:
        """Return the promised answers to store."""
        return dict(self.conversations)

    def restore(self, stored: Any) -> None:
        """Take the stored answers as lost. Data of another form is ignored."""
        values = stored.values() if isinstance(stored, dict) else ()
        self._lost = [each for each in values if isinstance(each, str)][:_MAX_LOST_ANSWERS]


@dataclass(frozen=True, slots=True)
class AgentState:
    """The state of an agent that outlives a reload: conversations, health, statistics, and token counter.

    `recent_turns` are its last turns, oldest first. They are lost when something is forgotten.
    """

    conversations: ConversationStore
    counter: CalibratedCounter
    statistics: AgentStatistics
    promises: PromisedAnswers
    stored_values: tuple[StoredValue, ...]
    health_watch: HealthWatch = field(default_factory=HealthWatch)
    recent_turns: deque[RecentTurn] = field(default_factory=partial(deque[RecentTurn], maxlen=_MAX_RECENT_TURNS))

    @property
    def windows(self) -> WindowRegistry[str]:
        """The agent's conversations."""
        return self.conversations.windows

    def drop_recent_turns(self, conversation: str) -> None:
        """Drop the turns of a conversation from working memory."""
        others = [recent for recent in self.recent_turns if recent.record.conversation != conversation]
        self.recent_turns.clear()
        self.recent_turns.extend(others)


@dataclass(frozen=True, slots=True)
class AccountState:
    """The state of an account: calibrations, its server's models, and the states of its agents by subentry id."""

    calibrations: ModelCalibrations
    server: ServerCache
    stored_values: tuple[StoredValue, ...]
    agent_states: dict[str, AgentState] = field(default_factory=dict)


async def async_load_account_state(
    hass: HomeAssistant, entry_id: str, configs: Mapping[str, AgentConfig] | None = None
) -> AccountState:
    """Return the state of an account with these agents. The first call after startup reads it from the store."""
    accounts, store = hass.data.setdefault(_ACCOUNT_STATES_KEY, {}), async_start_store(hass)
    if entry_id not in accounts:
        accounts[entry_id] = await _async_read_account_state(store, entry_id)
    account = accounts[entry_id]
    for agent_id, config in (configs or {}).items():
        exact = await async_get_exact_counter(hass, config.counting)
        # Also for an existing agent, because its model may have changed, and with it the token counter.
        counter = account.calibrations.get_counter(agent_id, config.model, exact)
        if agent_id not in account.agent_states:
            account.agent_states[agent_id] = await _async_read_agent_state(store, agent_id, config, counter)
        account.agent_states[agent_id].conversations.configure(config.persistence)
    return account


@callback
def async_agent_states(hass: HomeAssistant) -> dict[str, AgentState]:
    """Return the states of all agents by agent id, including those of accounts that have been unloaded."""
    accounts = hass.data.get(_ACCOUNT_STATES_KEY, {})
    return {agent_id: state for account in accounts.values() for agent_id, state in account.agent_states.items()}


async def _async_read_account_state(store: AgentStore, entry_id: str) -> AccountState:
    calibrations, server = ModelCalibrations(), ServerCache()
    learned = StoredValue(store, entry_id, "calibrations", calibrations.as_dict, calibrations.restore)
    listed = StoredValue(store, entry_id, "models", server.models_as_list, server.restore)
    for value in (learned, listed):
        await value.async_start()
    calibrations.save_soon, server.save_soon = learned.save_soon, listed.save_soon
    return AccountState(calibrations, server, (learned, listed))


async def _async_read_agent_state(
    store: AgentStore, agent_id: str, config: AgentConfig, counter: CalibratedCounter
) -> AgentState:
    conversations = ConversationStore(store, agent_id, config, counter)
    statistics, promises = AgentStatistics(), PromisedAnswers()
    totals = StoredValue(store, agent_id, "totals", statistics.as_dict, statistics.restore, statistics.on_written)
    promised = StoredValue(store, agent_id, "promises", promises.as_dict, promises.restore)
    for value in (totals, promised):
        await value.async_start()
    statistics.save_soon, promises.save_soon = totals.save_soon, promised.save_soon
    promised.save_soon()
    await conversations.async_start()
    return AgentState(conversations, counter, statistics, promises, (totals, promised))


@callback
def async_find_recent_turns(hass: HomeAssistant) -> list[RecentTurn]:
    """Return the turns in working memory of all agents, newest first, without those that may repeat forgotten text."""
    store = async_get_store(hass)
    found = [
        recent
        for state in async_agent_states(hass).values()
        for recent in state.recent_turns
        if store is not None and not store.predates_forgetting(recent.record.at)
    ]
    return sorted(found, key=lambda recent: recent.record.id, reverse=True)


@callback
def async_clear_recent_turns(hass: HomeAssistant) -> None:
    """Drop the turns in working memory of all agents, because any of them may repeat what was forgotten."""
    for state in async_agent_states(hass).values():
        state.recent_turns.clear()


@callback
def async_drop_removed_states(hass: HomeAssistant) -> set[str]:
    """Drop the states of removed accounts and agents, and stop their writes. Return the ids of these agents."""
    accounts = hass.data.setdefault(_ACCOUNT_STATES_KEY, {})
    entries = {entry.entry_id: entry for entry in hass.config_entries.async_entries(DOMAIN)}
    present = {agent_id for entry in entries.values() for agent_id in entry.subentries}
    removed = set[str]()
    for account in accounts.values():
        for agent_id in account.agent_states.keys() - present:
            removed.add(agent_id)
            state = account.agent_states.pop(agent_id)
            state.conversations.stop()
            for value in state.stored_values:
                value.stop()
    for entry_id in accounts.keys() - entries.keys():
        for value in accounts.pop(entry_id).stored_values:
            value.stop()
    return removed
