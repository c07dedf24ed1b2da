"""An agent at run time: its configuration, its windows, its figures, and the provider that it asks.

How an agent answers is the conversation entity's and `turn`'s business; the forms that configure it are in the flows.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from homeassistant.config_entries import ConfigEntry, ConfigSubentry
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_PROMPT
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.helpers import llm
from homeassistant.util.hass_dict import HassKey

from .bridge.account import writes_summaries
from .bridge.question import Asking
from .const import (
    CONF_COMPACTION,
    CONF_CONTEXT_TOKENS,
    CONF_COUNTING,
    CONF_EFFORT,
    CONF_EXPIRY_HOURS,
    CONF_FAMILY,
    CONF_FIRST_WORD_TIMEOUT,
    CONF_HISTORY_TOKENS,
    CONF_LEFT_OUT,
    CONF_LIMITS,
    CONF_MAX_TOOL_TURNS,
    CONF_MAX_WINDOWS,
    CONF_OTHERS,
    CONF_PERSISTENCE,
    CONF_PROVIDER,
    CONF_REPLY_TOKENS,
    CONF_RESULT_CAP,
    CONF_ROUTING,
    CONF_SCOPE,
    CONF_SUMMARIZE,
    CONF_TEMPERATURE,
    CONF_TOOL_ITERATIONS,
    CONF_TOOL_RESULTS,
    CONF_TRIM_SHARE,
    CONF_TURN_TIMEOUT,
    DEFAULT_COMPACTION,
    DEFAULT_COUNTING,
    DEFAULT_EXPIRY_HOURS,
    DEFAULT_LIMITS,
    DEFAULT_MAX_WINDOWS,
    DEFAULT_PERSISTENCE,
    DEFAULT_POLICY,
    DEFAULT_REPLY_TOKENS,
    DEFAULT_ROUTING,
    DEFAULT_SCOPE,
    DOMAIN,
    PROVIDER_AZURE,
    PROVIDER_NONE,
    Compaction,
    Counting,
    Persistence,
)
from .providers.events import Provider
from .providers.profile import Effort
from .providers.profiles import Vendor
from .turn.deadlines import Limits
from .turn.ports import Model
from .turn.routing import Routing
from .turn.scope import Scope, WindowKey
from .turn.turn import Outcome
from .turn.window_health import Health, HealthWatch
from .turn_statistics import AgentStatistics
from .window import TokenCounter, Window, WindowPolicy, WindowRegistry
from .window.tokens import KindCounter

_SECONDS_PER_HOUR = 3600

# How long the sensors and the events wait, in seconds, so that writing and recording them does not hold up the answer.
_TELL_DELAY = 0.05

type Account = ConfigEntry[AccountData]


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """How an agent behaves: the agent's own settings over the account's options over the defaults.

    `family` is the model's name, or on Azure the model that its deployment runs, and `others` are the entities that are
    asked when the model does not answer. Exchanges with a tag in `left_out` are kept and not sent. `context_tokens` is
    what the model can read, None where nobody says, `reply_tokens` what is kept free of it for the answer.
    `expiry_seconds` is how long an idle conversation is kept, `max_windows` how many are kept at most.
    """

    name: str
    routing: Routing
    scope: Scope
    model: str
    family: str
    effort: Effort | None
    temperature: float | None
    compaction: Compaction
    others: tuple[str, ...]
    instructions: str
    llm_apis: tuple[str, ...]
    policy: WindowPolicy
    left_out: frozenset[str]
    counting: Counting
    context_tokens: int | None
    reply_tokens: int
    limits: Limits
    expiry_seconds: float
    max_windows: int
    persistence: Persistence

    @classmethod
    def from_entry(cls, entry: ConfigEntry, subentry: ConfigSubentry) -> Self:
        """Read the configuration; raises `ValueError` where it is impossible."""
        data = subentry.data
        asks_model = entry.data[CONF_PROVIDER] != PROVIDER_NONE
        routing = Routing(data.get(CONF_ROUTING, DEFAULT_ROUTING)) if asks_model else Routing.LOCAL_ONLY
        return cls(
            name=subentry.title,
            routing=routing,
            scope=Scope(data.get(CONF_SCOPE, DEFAULT_SCOPE)),
            model=str(data.get(CONF_MODEL, "")),
            family=_family(entry.data, data),
            effort=Effort(data[CONF_EFFORT]) if CONF_EFFORT in data else None,
            temperature=data.get(CONF_TEMPERATURE),
            compaction=Compaction(data.get(CONF_COMPACTION, DEFAULT_COMPACTION)),
            others=tuple(data.get(CONF_OTHERS, ())),
            instructions=str(data.get(CONF_PROMPT) or llm.DEFAULT_INSTRUCTIONS_PROMPT),
            llm_apis=tuple(data.get(CONF_LLM_HASS_API, ())),
            policy=_policy(entry, data),
            left_out=frozenset(data.get(CONF_LEFT_OUT, ())),
            counting=Counting(data.get(CONF_COUNTING, DEFAULT_COUNTING)),
            context_tokens=_context_tokens(data),
            reply_tokens=int(data.get(CONF_REPLY_TOKENS, DEFAULT_REPLY_TOKENS)),
            limits=_limits(data.get(CONF_LIMITS, {})),
            expiry_seconds=_expiry_seconds(entry.options),
            max_windows=_positive(CONF_MAX_WINDOWS, entry.options.get(CONF_MAX_WINDOWS, DEFAULT_MAX_WINDOWS)),
            persistence=Persistence(entry.options.get(CONF_PERSISTENCE, DEFAULT_PERSISTENCE)),
        )


def _family(account: Mapping[str, Any], agent: Mapping[str, Any]) -> str:
    """Return by which name to look a model up: that of a deployment says nothing."""
    is_deployment = account[CONF_PROVIDER] == PROVIDER_AZURE
    return str(agent.get(CONF_FAMILY if is_deployment else CONF_MODEL, ""))


def _policy(entry: ConfigEntry, agent: Mapping[str, Any]) -> WindowPolicy:
    options = entry.options
    compacts = writes_summaries(entry.data) and agent.get(CONF_COMPACTION) == Compaction.PROVIDER
    tokens = agent.get(CONF_HISTORY_TOKENS) or options.get(CONF_HISTORY_TOKENS)
    percent = options.get(CONF_TRIM_SHARE)
    return WindowPolicy(
        history_tokens=DEFAULT_POLICY.history_tokens if tokens is None else int(tokens),
        trim_share=None if percent is None else float(percent) / 100,
        tool_results=options.get(CONF_TOOL_RESULTS, DEFAULT_POLICY.tool_results),
        max_tool_turns=options.get(CONF_MAX_TOOL_TURNS),
        result_cap_tokens=options.get(CONF_RESULT_CAP, DEFAULT_POLICY.result_cap_tokens),
        summarize=compacts or bool(options.get(CONF_SUMMARIZE, DEFAULT_POLICY.summarize)),
    )


def _context_tokens(data: Mapping[str, Any]) -> int | None:
    tokens = data.get(CONF_CONTEXT_TOKENS)
    return None if tokens is None else _positive(CONF_CONTEXT_TOKENS, tokens)


def _positive(name: str, number: Any) -> int:
    if not int(number) > 0:
        raise ValueError(f"{name} must be above 0, not {number!r}")
    return int(number)


def _expiry_seconds(options: Mapping[str, Any]) -> float:
    hours = float(options.get(CONF_EXPIRY_HOURS, DEFAULT_EXPIRY_HOURS))
    if not hours > 0:
        raise ValueError(f"{CONF_EXPIRY_HOURS} must be above 0, not {hours!r}")
    return hours * _SECONDS_PER_HOUR


def _limits(data: Mapping[str, Any]) -> Limits:
    return Limits(
        silence=float(data.get(CONF_FIRST_WORD_TIMEOUT, DEFAULT_LIMITS.silence)),
        turn=float(data.get(CONF_TURN_TIMEOUT, DEFAULT_LIMITS.turn)),
        tool_iterations=int(data.get(CONF_TOOL_ITERATIONS, DEFAULT_LIMITS.tool_iterations)),
    )


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
        self._model = model and replace(model, on_overflow=self._on_overflow)
        self._remember_overflow = model.on_overflow if model else None
        # The windows of which a summary is being written.
        self.summarizing: set[Window] = set()
        self._listeners: list[Callable[[], None]] = []
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
        return Asking(self.model, config.instructions, config.llm_apis, self.counter, config.left_out)

    def _on_overflow(self, name: str, context_tokens: int) -> None:
        if self._model and self._remember_overflow:
            self._model = replace(self._model, budget=replace(self._model.budget, context_tokens=context_tokens))
            self._remember_overflow(name, context_tokens)

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
    def listen(self, listener: Callable[[], None]) -> CALLBACK_TYPE:
        """Call the listener when a figure may have changed; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @callback
    def tell(self) -> None:
        """Tell the listeners now that a figure may have changed."""
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
