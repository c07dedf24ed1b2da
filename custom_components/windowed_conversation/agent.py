"""An agent at run time: its configuration, its windows, its figures, and the model that it asks.

How an agent answers is the conversation entity's and `turn`'s business, how it is configured is `agent_config`'s.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.util.hass_dict import HassKey

from .agent_config import AgentConfig
from .bridge.question import Asking
from .bridge.tools import ToolSchemas
from .const import DOMAIN
from .providers.events import Provider
from .providers.profiles import Vendor
from .turn.ports import Model
from .turn.scope import WindowKey
from .turn.turn import Outcome
from .turn.window_health import Health, HealthWatch
from .turn_statistics import AgentStatistics
from .window import TokenCounter, Window, WindowRegistry
from .window.tokens import KindCounter

# How long the sensors and the events wait, in seconds, so that writing and recording them does not hold up the answer.
_TELL_DELAY = 0.05

type Account = ConfigEntry[AccountData]


class Agent:
    """One agent. Its windows outlive it: a reload of the account does not end a conversation.

    `vendor` is whose models it asks, None for a compatible server's.
    """

    def __init__(
        self,
        config: AgentConfig,
        model: Model | None,
        windows: WindowRegistry[str],
        counter: KindCounter,
        *,
        watch: HealthWatch,
        vendor: Vendor | None = None,
    ) -> None:
        self.config = config
        self.windows = windows
        self.counter = counter
        self.vendor = vendor
        self.watch = watch
        self.statistics = AgentStatistics()
        self._schemas = ToolSchemas()
        self._model = model
        # The windows of which a summary is being written.
        self.summarizing: set[Window] = set()
        self._listeners: list[Callable[[], None]] = []
        self._cost_listeners: list[Callable[[], None]] = []
        self._news: list[Callable[[], None]] = []
        self._tell_later: asyncio.TimerHandle | None = None
        self.configure(config)

    def configure(self, config: AgentConfig) -> None:
        """Take over a changed configuration; the windows that exist are trimmed to it at once."""
        self.config = config
        self.windows.set_limits(max_windows=config.max_windows, idle_seconds=config.expiry_seconds)
        evicted = self._evicted_messages()
        self.windows.set_policy(config.policy)
        self.statistics.totals.evicted_messages += self._evicted_messages() - evicted
        self.tell()

    @property
    def model(self) -> Model | None:
        """The model that the agent asks now, None where its account has none."""
        if self._model is None:
            return None
        return replace(self._model, budget=replace(self._model.budget, policy=self.config.policy))

    @property
    def asking(self) -> Asking:
        """How the agent asks."""
        config = self.config
        return Asking(
            self.model,
            config.instructions,
            config.llm_apis,
            self.counter,
            self._schemas,
            left_out=config.left_out,
            placement=config.context_placement,
        )

    def _evicted_messages(self) -> int:
        return sum(window.stats().evicted_messages for window in self.windows.newest_first())

    def on_turn(self, outcome: Outcome, evicted_messages: int, *news: Callable[[], None]) -> None:
        """Take in a turn that ended; `news` are called, and the listeners told, when the answer is on its way."""
        self.statistics.on_turn(outcome, evicted_messages)
        self.afterwards(*news)

    def afterwards(self, *news: Callable[[], None]) -> None:
        """Call `news`, and tell the listeners, when the answer is on its way."""
        self._news += news
        if self._tell_later is None:
            self._tell_later = asyncio.get_running_loop().call_later(_TELL_DELAY, self.tell)

    def health(self) -> Health:
        """Return what is wrong with the windows now."""
        return self.watch.health(self.windows)

    @callback
    def expire(self) -> None:
        """Drop the conversations that have been idle for too long, and with them what was wrong for so long."""
        self.windows.expire()
        self.tell()

    @callback
    def listen(self, listener: Callable[[], None], *, to_costs: bool = False) -> CALLBACK_TYPE:
        """Call the listener when a figure may have changed, or only when a cost is known; returns what ends that."""
        listeners = self._cost_listeners if to_costs else self._listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    @callback
    def tell_cost(self) -> None:
        """Tell those who listen to costs that one is known now, which it is only after the other figures."""
        for tell in self._cost_listeners:
            tell()

    @callback
    def tell(self) -> None:
        """Finish the turns that have ended, and tell the listeners now that a figure may have changed."""
        self.windows.catch_up()
        if self._tell_later is not None:
            self._tell_later.cancel()
            self._tell_later = None
        news, self._news = self._news, []
        for tell in (*news, *self._listeners):
            tell()


@dataclass(frozen=True, slots=True)
class AccountData:
    """What an account holds while it is set up: its provider, and its agents by the ids of their subentries."""

    provider: Provider | None
    agents: dict[str, Agent]
    set_up_as: tuple[Any, ...]


_WINDOWS: HassKey[dict[str, WindowRegistry[str]]] = HassKey(f"{DOMAIN}_windows")


@callback
def async_windows(
    hass: HomeAssistant, agent_id: str, config: AgentConfig, counter: TokenCounter
) -> WindowRegistry[str]:
    """Return the agent's windows, which outlive a reload of its account; the counter is for those that are made."""
    registries = hass.data.setdefault(_WINDOWS, {})
    if agent_id not in registries:
        registries[agent_id] = WindowRegistry(
            lambda key: Window(WindowKey.parse(key).conversation, config.policy, counter),
            max_windows=config.max_windows,
            idle_seconds=config.expiry_seconds,
        )
    return registries[agent_id]


_WATCHES: HassKey[dict[str, HealthWatch]] = HassKey(f"{DOMAIN}_watches")


@callback
def async_health_watch(hass: HomeAssistant, agent_id: str) -> HealthWatch:
    """Return what the agent's turns have shown of its windows, which outlives a reload of its account as they do."""
    return hass.data.setdefault(_WATCHES, {}).setdefault(agent_id, HealthWatch())


@callback
def async_agent_ids(hass: HomeAssistant) -> set[str]:
    """Return the ids of the agents of all accounts, set up or not."""
    return {agent_id for account in hass.config_entries.async_entries(DOMAIN) for agent_id in account.subentries}


@callback
def async_forget_gone(hass: HomeAssistant) -> set[str]:
    """Forget the conversations of agents that no account has any more; returns the ids of those agents."""
    registries = hass.data.setdefault(_WINDOWS, {})
    gone = registries.keys() - async_agent_ids(hass)
    for agent_id in gone:
        del registries[agent_id]
        hass.data.setdefault(_WATCHES, {}).pop(agent_id, None)
    return gone
