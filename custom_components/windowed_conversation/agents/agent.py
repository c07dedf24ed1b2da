"""An agent at run time: its configuration, its model, its listeners, and the look-up of agents by id or entity."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
import logging
from typing import Any

from homeassistant.components.conversation import HOME_ASSISTANT_AGENT
from homeassistant.config_entries import ConfigEntry
from homeassistant.const import Platform
from homeassistant.core import CALLBACK_TYPE, Event, HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.dispatcher import async_dispatcher_send
from homeassistant.helpers.intent import IntentResponseType
from homeassistant.util.signal_type import SignalType

from ..bridge.chat_log import async_ask_agent
from ..bridge.errors import log_fault
from ..bridge.tools import ToolSchemaCache
from ..const import DOMAIN
from ..memory.core import Fact
from ..memory.turn.dialog import LastAnswer
from ..memory.turn.recall import PromptFacts
from ..providers import Request, Unavailable, Usage, Vendor
from ..turn.model import FallbackAgent, Model
from ..turn.routing import RoutingMode
from ..window import Window, WindowStats
from .account import AgentState
from .config import AgentConfig
from .gate import Gate
from .local_intents import get_speech
from .server import AccountServer, HeadStart

_LOGGER = logging.getLogger(__name__)

# In seconds. The steps after a turn are delayed, so that writing and recording do not hold up the answer.
_NOTIFY_DELAY = 0.05

# Sent with the agent after each change of an agent or its windows.
SIGNAL_AGENT_CHANGED: SignalType[Agent] = SignalType(f"{DOMAIN}_agent_changed")

type AccountConfigEntry = ConfigEntry[AccountData]
# The audience of a profile of facts: the owner of the window or None, whether they are alone there, and their name.
type ProfileKey = tuple[str | None, bool, str]


@dataclass(eq=False)
class Agent:
    """An agent while its account is set up."""

    hass: HomeAssistant
    entry: AccountConfigEntry
    # The id of its subentry.
    id: str
    config: AgentConfig
    # Outlives a reload.
    state: AgentState
    model: Model | None
    # The vendor of its models, or None for a compatible server.
    vendor: Vendor | None
    # Called with the usage of each request to its model.
    learn_usage: Callable[[Request, Usage], None]
    # Belongs to the account.
    head_start: HeadStart
    tool_schemas: ToolSchemaCache = field(default_factory=ToolSchemaCache)
    # The profiles built in recent turns, each with the facts that it was built from, by audience.
    profiles: dict[ProfileKey, tuple[list[Fact], PromptFacts]] = field(default_factory=dict)
    # The last answers of memory, by conversation, which the user may confirm with a yes.
    last_memory_answers: dict[str, LastAnswer] = field(default_factory=dict)
    # The windows for which a summary is being written.
    summarizing_windows: set[Window] = field(default_factory=set)
    # The statistics of the conversations at the last notification of the listeners, newest conversation first.
    window_stats: dict[str, WindowStats] = field(default_factory=dict)
    _listeners: list[Callable[[], None]] = field(default_factory=list)
    _notify_timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.windows, self.counter, self.statistics = self.state.windows, self.state.counter, self.state.statistics
        self.configure(self.config)

    def configure(self, config: AgentConfig) -> None:
        """Apply a changed configuration. Existing windows are trimmed accordingly at once."""
        # the steps after ended turns run with the configuration that they had
        self.windows.run_deferred_work()
        self.config = config
        self.windows.set_idle_seconds(config.expiry_seconds)
        self.windows.set_policy(config.policy)
        if self.model is not None:
            self.model = self.model.with_budget(policy=config.policy)
        self.notify_listeners()

    @callback
    def give_head_start(self) -> None:
        """Give the next turn a head start if it may ask the model. Returns at once."""
        config = self.config
        if self.model is not None and config.routing is not RoutingMode.LOCAL_ONLY:
            self.head_start.start(self.model, self.windows, config.turn_timeout)

    def defer_work(self, key: str, steps: Iterable[Callable[..., None]], *arguments: Any) -> None:
        """Defer steps after a turn until the answer is sent. They run in order, before other code uses the window.

        Each is called with the arguments. A step that fails is logged and stops no other.
        """
        self.windows.defer_work(key, partial(run_each, steps, "A step after a turn failed", *arguments))
        self.schedule_notify()

    @callback
    def add_listener(self, listener: Callable[[], None]) -> CALLBACK_TYPE:
        """Call `listener` after each change of the agent or its windows. Return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @callback
    def notify_listeners(self) -> None:
        """Finish ended turns, then notify the store and the listeners of all changes."""
        self.windows.run_deferred_work()
        self.window_stats = self.windows.stats()
        if self._notify_timer is not None:
            self._notify_timer.cancel()
            self._notify_timer = None
        run_each(self._listeners, "A listener of an agent failed")
        async_dispatcher_send(self.hass, SIGNAL_AGENT_CHANGED, self)
        self.state.conversations.store.async_save()

    @callback
    def schedule_notify(self) -> None:
        """Notify the listeners after the answer is sent. Further calls before that have no effect."""
        if self._notify_timer is None:
            self._notify_timer = asyncio.get_running_loop().call_later(_NOTIFY_DELAY, self.notify_listeners)


def run_each(callbacks: Iterable[Callable[..., None]], what: str, *arguments: Any) -> None:
    """Call each callback in order. The error of one that fails is logged with the text `what`, and stops no other."""
    for run in callbacks:
        try:
            run(*arguments)
        except Exception as err:  # noqa: BLE001 - it stops no other
            log_fault(_LOGGER, what, err)


@dataclass(frozen=True, slots=True)
class AccountData:
    """The runtime data of an account: its agents and its AI tasks by subentry id, its server, and its platforms.

    `server` is None for an account without a model. An AI task is an agent without conversations.
    """

    server: AccountServer | None
    agents: dict[str, Agent]
    setup_settings: tuple[Any, ...]
    tasks: dict[str, Agent] = field(default_factory=dict)
    platforms: tuple[Platform, ...] = ()

    @callback
    def expire_windows(self, _now: datetime) -> None:
        """Drop the conversations of all agents that have been idle for too long."""
        for agent in self.agents.values():
            agent.windows.expire_windows()
            agent.notify_listeners()

    @callback
    def notify_listeners(self, _event: Event | None = None) -> None:
        """Finish the ended turns of all agents, and notify their listeners."""
        for agent in self.agents.values():
            agent.notify_listeners()


@callback
def async_find_fallback_agents(
    hass: HomeAssistant, entity_ids: tuple[str, ...], own_entity_id: str, gate: Gate
) -> tuple[Model | FallbackAgent, ...]:
    """Return the fallback agents that can answer now, in the user's order. Unavailable ones are skipped."""
    found: list[Model | FallbackAgent] = []
    for entity_id in entity_ids:
        if entity_id == own_entity_id:
            continue
        entity = er.async_get(hass).async_get(entity_id)
        if entity is None or entity.platform != DOMAIN:
            # the tools of other agents cannot be limited
            is_limited = bool(gate.reach.limits) and entity_id != HOME_ASSISTANT_AGENT
            if hass.states.get(entity_id) is not None and not is_limited:
                found.append(EntityAgent(hass, entity_id, gate))
            continue
        agent = async_find_agent(hass, entity.config_subentry_id or "")
        if agent is not None and agent.model is not None:
            found.append(agent.model)
    return tuple(found)


@callback
def async_find_agent(hass: HomeAssistant, agent_id: str) -> Agent | None:
    """Return the agent or the AI task with this id, or None if its account is not set up."""
    account: AccountConfigEntry
    for account in hass.config_entries.async_loaded_entries(DOMAIN):
        data = account.runtime_data
        if (agent := data.agents.get(agent_id) or data.tasks.get(agent_id)) is not None:
            return agent
    return None


@callback
def async_loaded_agents(hass: HomeAssistant) -> list[Agent]:
    """Return all agents of this integration whose accounts are set up."""
    accounts: list[AccountConfigEntry] = hass.config_entries.async_loaded_entries(DOMAIN)
    return [agent for account in accounts for agent in account.runtime_data.agents.values()]


@callback
def async_agent_ids(hass: HomeAssistant) -> set[str]:
    """Return the ids of the agents of all accounts, whether they are set up or not."""
    return {agent_id for account in hass.config_entries.async_entries(DOMAIN) for agent_id in account.subentries}


@dataclass(slots=True)
class EntityAgent:
    """A `FallbackAgent` of another integration for one turn, identified by its entity id.

    The agent has a conversation of its own, which contains only the turns that it answered.
    """

    hass: HomeAssistant
    agent_id: str
    gate: Gate

    async def answer(self) -> str:
        """Return the agent's answer to the input. Raises `ProviderError` if there is no answer."""
        user_input = self.gate.user_input
        conversation_id = f"{user_input.conversation_id}-{self.agent_id}"
        if self.agent_id == HOME_ASSISTANT_AGENT:
            text = await self.gate.async_withhold_loose(conversation_id)
            if text is not None:
                return text
        try:
            response = await async_ask_agent(self.hass, user_input, self.agent_id, conversation_id)
        except (HomeAssistantError, ValueError) as err:
            raise Unavailable(f"another agent failed ({type(err).__name__})") from err
        speech = get_speech(response)
        if response.response_type is IntentResponseType.ERROR or not speech:
            raise Unavailable("another agent had no answer")
        return speech
