"""An agent at run time: its configuration, its model, and the listeners to its figures."""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
import logging
from typing import Any
from weakref import WeakKeyDictionary

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback

from ..bridge.errors import faults_logged
from ..bridge.tools import ToolSchemas
from ..providers import ModelProfile, Vendor
from ..turn.home import States
from ..turn.memory_dialog import LastAnswer
from ..turn.ports import Billed, Model
from ..turn.profile import Profile as MemoryProfile
from ..turn.routing import Routing
from ..window import KindCounter, Window, WindowRegistry
from .config import AgentConfig
from .head_start import HeadStart
from .kept import Kept
from .server import AccountServer
from .statistics import AgentStatistics
from .window_health import Health, HealthWatch

_LOGGER = logging.getLogger(__name__)

# How long what follows an answer waits, in seconds, so that writing and recording it does not hold up the answer.
_DELAY = 0.05

type AccountConfigEntry = ConfigEntry[AccountData]


class Agent:
    """One agent while its account is set up. State that outlives a reload is in `kept`.

    `id` is that of its subentry. `vendor` is the vendor of its models, or None for a compatible server. `learn` is
    called with the usage of each request to its model. `head_start` is that of its account.
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
        head_start: HeadStart | None = None,
    ) -> None:
        self.hass = hass
        self.entry = entry
        self.id = agent_id
        self.config = config
        self.kept = kept
        self.vendor = vendor
        self.learn = learn
        self.head_start = head_start
        self.schemas = ToolSchemas()
        # The profiles that the last turns have made, with the revision of the facts, by whom they are for.
        self.profiles: dict[Hashable, tuple[object, MemoryProfile]] = {}
        # The last answers of memory, by conversation: somebody may say yes to one.
        self.last_answers: dict[str, LastAnswer] = {}
        # The states that the last turn of each conversation has listed.
        self.listed: WeakKeyDictionary[Window, States] = WeakKeyDictionary()
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
        """The token counter for the agent's model."""
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
        """Apply a changed configuration. Existing windows are trimmed to it at once."""
        self.config = config
        self.windows.set_limits(max_windows=config.max_windows, idle_seconds=config.expiry_seconds)
        evicted = self._evicted_messages()
        self.windows.set_policy(config.policy)
        self.statistics.on_evicted(self._evicted_messages() - evicted)
        self.tell()

    def know(self, profile: ModelProfile) -> None:
        """Apply a new profile of the model. The next request is planned with it."""
        if self._model is not None:
            self._model = replace(self._model, profile=profile)

    @property
    def model(self) -> Model | None:
        """The agent's current model, or None if its account has none."""
        if self._model is None:
            return None
        return replace(self._model, budget=replace(self._model.budget, policy=self.config.policy))

    @callback
    def prepare(self) -> None:
        """Give the next turn a head start if it may ask the model. Returns at once."""
        model, config = self.model, self.config
        if model is None or self.head_start is None or not config.head_start or config.routing is Routing.LOCAL_ONLY:
            return
        self.head_start.begin(model, self.windows, config.limits.turn)

    def _evicted_messages(self) -> int:
        return sum(window.stats().evicted_messages for window in self.windows.loaded().values())

    def after_turn(self, key: str, work: Callable[[], None]) -> None:
        """Defer a turn's work until its answer is sent. It runs in order, before anyone else looks at the window."""
        self.windows.after_turn(key, partial(_guarded, work))
        self.tell_soon()

    def health(self) -> Health:
        """Return the current problems of the windows."""
        return self.watch.health()

    @callback
    def expire(self) -> None:
        """Drop idle conversations and problems that are older than they may be."""
        self.windows.expire()
        self.tell()

    @callback
    def listen(self, listener: Callable[[], None], *, to_costs: bool = False) -> CALLBACK_TYPE:
        """Call the listener when a figure may have changed, or only when a cost is known.

        Returns a function that stops this.
        """
        listeners = self._cost_listeners if to_costs else self._listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    @callback
    def tell(self) -> None:
        """Finish ended turns, and let the store and the listeners follow the changes."""
        self.windows.finish_turns()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for follow in self._listeners:
            _guarded(follow)
        self.kept.conversations.save()

    @callback
    def tell_soon(self) -> None:
        """Do the same after the answer is sent, once for all callers until then."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_DELAY, self.tell)

    @callback
    def tell_cost(self) -> None:
        """Let the cost listeners follow a cost, which is known later than the other figures."""
        for follow in self._cost_listeners:
            _guarded(follow)


def _guarded(work: Callable[[], None]) -> None:
    """Run other parties' code. An error in it is logged and affects nothing else."""
    with faults_logged(_LOGGER, "Something that follows a turn failed"):
        work()


@dataclass(frozen=True, slots=True)
class AccountData:
    """The data of an account while it is set up: its agents by subentry id, and its server.

    `server` is None for an account without a model.
    """

    server: AccountServer | None
    agents: dict[str, Agent]
    set_up_as: tuple[Any, ...]
