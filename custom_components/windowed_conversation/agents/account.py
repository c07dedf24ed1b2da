"""The state of accounts and agents that outlives a reload, created and dropped here."""

from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from homeassistant.core import HomeAssistant, callback
from homeassistant.util.hass_dict import HassKey

from ..bridge.account import ServerCache
from ..bridge.calibration import ModelCalibrations, async_get_exact_counter
from ..const import DOMAIN
from ..memory.turn.recall import PromptFacts, RecalledLines
from ..memory.turn.speaker import Speaker
from ..record import TurnRecord
from ..store import do_nothing
from ..turn.attempts import Attempt
from ..window import CalibratedCounter, WindowRegistry
from .config import AgentConfig
from .conversation_store import ConversationStore
from .gate import GateState
from .statistics import AgentStatistics
from .store import AgentStore, StoredValue, StoreSource, async_start_store
from .window_notes import NotesByWindow

_ACCOUNT_STATES_KEY: HassKey[dict[str, AccountState]] = HassKey(f"{DOMAIN}_account_states")

# The turns of one speaker that are kept with their requests, and those of all speakers of an agent.
MAX_SPEAKER_TURNS = 50
_MAX_RECENT_TURNS = 300
_MAX_LOST_ANSWERS = 20


@dataclass(slots=True)
class SentContext:
    """The additions to the last request of a turn: facts, recalled lines, and the text of the states of the home."""

    facts: PromptFacts | None = None
    recalled: RecalledLines = field(default_factory=RecalledLines)
    states: str = ""
    # The size of the recalled lines and the states with their frame.
    live_tokens: int = 0


@dataclass(slots=True, eq=False)
class RecentTurn:
    """A turn in working memory, at any record level."""

    record: TurnRecord
    window_key: str
    # The id of the person, or else of the device, so that nobody's many turns take the place of another's.
    speaker_id: str | None
    speaker: Speaker
    answer: str
    # Returns the record with its requests and their text, which takes milliseconds.
    complete: Callable[[], TurnRecord]
    # The additions to the requests.
    context: SentContext
    # Empty if the requests had pictures, which are not kept.
    attempts: tuple[Attempt, ...] = ()
    # In US dollars. None until it is known.
    cost: str | None = None

    def drop_requests(self) -> None:
        """Drop everything that was sent to a model and to tools. This takes milliseconds."""
        record = self.complete()
        for attempt in record["attempts"]:
            attempt.pop("sent", None)
        rest: TurnRecord = {**record, "tool_calls": []}
        self.complete = partial(copy, rest)
        self.context, self.attempts = SentContext(), ()


@dataclass(slots=True)
class PromisedAnswers:
    """The answers that an agent has promised and not delivered yet, which are stored.

    Those that are stored at the start were lost, because Home Assistant was stopped.
    """

    save_soon: Callable[[], None] = do_nothing
    # The ids of their conversations, by the ids of the promises.
    conversations: dict[str, str] = field(default_factory=dict)
    _lost: list[str] = field(default_factory=list)

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
    """The state of an agent that outlives a reload: conversations, notes on them, statistics, and token counter.

    `recent_turns` are the last turns of each speaker, oldest first.
    """

    conversations: ConversationStore
    counter: CalibratedCounter
    statistics: AgentStatistics
    promises: PromisedAnswers
    sources: tuple[StoreSource, ...]
    notes_by_window: NotesByWindow = field(default_factory=NotesByWindow)
    # The ends of private conversations, in seconds since the epoch, by the keys of their windows.
    private_until: dict[str, float] = field(default_factory=dict)
    gate: GateState = field(default_factory=GateState)
    recent_turns: deque[RecentTurn] = field(default_factory=partial(deque[RecentTurn], maxlen=_MAX_RECENT_TURNS))

    @property
    def windows(self) -> WindowRegistry[str]:
        """The agent's conversations."""
        return self.conversations.windows

    def drop_recent_turns(self, window_key: str) -> None:
        """Drop the turns of a window from working memory."""
        others = [recent for recent in self.recent_turns if recent.window_key != window_key]
        self.recent_turns.clear()
        self.recent_turns.extend(others)


@dataclass(frozen=True, slots=True)
class AccountState:
    """The state of an account: calibrations, its server's models, and the states of its agents by subentry id."""

    calibrations: ModelCalibrations
    server: ServerCache
    sources: tuple[StoreSource, ...]
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
        exact = await async_get_exact_counter(hass, is_wanted=config.exact_counting)
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
    calibrations.save_soon, server.save_soon = learned.save_soon, listed.save_soon
    for each in (learned, listed):
        await each.async_start()
    return AccountState(calibrations, server, (learned, listed))


async def _async_read_agent_state(
    store: AgentStore, agent_id: str, config: AgentConfig, counter: CalibratedCounter
) -> AgentState:
    conversations = ConversationStore(store, agent_id, config, counter)
    statistics, promises = AgentStatistics(), PromisedAnswers()
    totals = StoredValue(store, agent_id, "totals", statistics.as_dict, statistics.restore, statistics.on_written)
    promised = StoredValue(store, agent_id, "promises", promises.as_dict, promises.restore)
    statistics.save_soon, promises.save_soon = totals.save_soon, promised.save_soon
    # a save runs the deferred work of the conversations, which changes the totals
    sources = (conversations, totals, promised)
    for each in sources:
        await each.async_start()
    return AgentState(conversations, counter, statistics, promises, sources)


@callback
def async_run_deferred_work(hass: HomeAssistant) -> None:
    """Run the deferred steps of all ended turns now, for code that reads or changes their results."""
    for state in async_agent_states(hass).values():
        state.windows.run_deferred_work()


@callback
def async_find_recent_turns(hass: HomeAssistant) -> list[RecentTurn]:
    """Return the turns in working memory of all agents, newest first."""
    found = [recent for state in async_agent_states(hass).values() for recent in state.recent_turns]
    return sorted(found, key=lambda recent: recent.record["turn_id"], reverse=True)


@callback
def async_drop_removed_states(hass: HomeAssistant) -> set[str]:
    """Drop the states of removed accounts and agents, and stop their writes. Return the ids of these agents."""
    accounts = hass.data.setdefault(_ACCOUNT_STATES_KEY, {})
    entries = {entry.entry_id: entry for entry in hass.config_entries.async_entries(DOMAIN)}
    present = {agent_id for entry in entries.values() for agent_id in entry.subentries}
    removed = set[str]()
    stopped = list[StoreSource]()
    for account in accounts.values():
        for agent_id in account.agent_states.keys() - present:
            removed.add(agent_id)
            stopped += account.agent_states.pop(agent_id).sources
    for entry_id in accounts.keys() - entries.keys():
        stopped += accounts.pop(entry_id).sources
    for source in stopped:
        source.stop()
    return removed
