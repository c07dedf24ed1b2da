"""An agent at run time: its configuration, the model that it asks, and who is told when its figures change."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
import logging
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback

from ..bridge.errors import faults_logged
from ..bridge.tools import ToolSchemas
from ..providers.profile import Profile
from ..providers.profiles import Vendor
from ..turn.ports import Billed, Model
from ..window import Window, WindowRegistry
from ..window.tokens import KindCounter
from .config import AgentConfig
from .kept import Kept
from .server import AccountServer
from .statistics import AgentStatistics
from .window_health import Health, HealthWatch

_LOGGER = logging.getLogger(__name__)

# How long what follows an answer waits, in seconds, so that writing and recording it does not hold up the answer.
_DELAY = 0.05

type AccountConfigEntry = ConfigEntry[AccountData]


class Agent:
    """One agent while its account is set up; what outlives a reload is in `kept`.

    `id` is that of its subentry. `vendor` is whose models it asks, or None for a compatible server's. `learn` takes in
    what a request of its model was billed.
    """

    def __init__(
        self,
        hass: HomeAssistant,
        entry: AccountConfigEntry,
        agent_id: str,
        config: AgentConfig,
        kept: Kept,
        *,
        model: Model | None = None,
        vendor: Vendor | None = None,
        learn: Callable[[Billed], None] = lambda billed: None,
    ) -> None:
        self.hass = hass
        self.entry = entry
        self.id = agent_id
        self.config = config
        self.kept = kept
        self.vendor = vendor
        self.learn = learn
        self.schemas = ToolSchemas()
        self._model = model
        # The windows of which a summary is being written.
        self.summarizing: set[Window] = set()
        self._listeners: list[Callable[[], None]] = []
        self._cost_listeners: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self.configure(config)

    @property
    def windows(self) -> WindowRegistry[str]:
        """The agent's conversations."""
        return self.kept.windows

    @property
    def counter(self) -> KindCounter:
        """What counts tokens as the agent's model does."""
        return self.kept.counter

    @property
    def statistics(self) -> AgentStatistics:
        """The agent's totals and the figures of its last turn."""
        return self.kept.statistics

    @property
    def watch(self) -> HealthWatch:
        """What the agent's turns have shown of its windows."""
        return self.kept.watch

    def configure(self, config: AgentConfig) -> None:
        """Take over a changed configuration; the windows that exist are trimmed to it at once."""
        self.config = config
        self.windows.set_limits(max_windows=config.max_windows, idle_seconds=config.expiry_seconds)
        evicted = self._evicted_messages()
        self.windows.set_policy(config.policy)
        self.statistics.on_evicted(self._evicted_messages() - evicted)
        self.tell()

    def know(self, profile: Profile) -> None:
        """Take over what is known of the model now; the next request is planned with it."""
        if self._model is not None:
            self._model = replace(self._model, profile=profile)

    @property
    def model(self) -> Model | None:
        """The model that the agent asks now, or None if its account has none."""
        if self._model is None:
            return None
        return replace(self._model, budget=replace(self._model.budget, policy=self.config.policy))

    def _evicted_messages(self) -> int:
        return sum(window.stats().evicted_messages for window in self.windows.newest_first())

    def later(self, key: str, work: Callable[[], None]) -> None:
        """Have a turn's work done when its answer is on its way: in order, before anybody else looks at its window."""
        self.windows.put_off(key, partial(_guarded, work))
        self.tell_soon()

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
    def tell(self) -> None:
        """Finish the turns that have ended, and have the file and the listeners follow what may have changed."""
        self.windows.catch_up()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for follow in (self.kept.store.save_soon, *self._listeners):
            _guarded(follow)

    @callback
    def tell_soon(self) -> None:
        """Do the same when the answer is on its way, once for all that ask for it until then."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_DELAY, self.tell)

    @callback
    def tell_cost(self) -> None:
        """Have the file and those who listen to costs follow a cost, which is known only after the other figures."""
        for follow in (self.kept.store.save_soon, *self._cost_listeners):
            _guarded(follow)


def _guarded(work: Callable[[], None]) -> None:
    """Do what does not belong to the caller: a fault in it is logged and stops nobody else."""
    with faults_logged(_LOGGER, "Something that follows a turn failed"):
        work()


@dataclass(frozen=True, slots=True)
class AccountData:
    """What an account holds while it is set up: its agents by the ids of their subentries, and its server.

    `server` is None for an account without a model.
    """

    server: AccountServer | None
    agents: dict[str, Agent]
    set_up_as: tuple[Any, ...]
