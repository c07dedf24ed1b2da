"""State that outlives a reload: an object for each agent, made in one place and forgotten in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeassistant.core import HomeAssistant, callback
from homeassistant.util.hass_dict import HassKey

from ..bridge.calibration import ModelCalibrations
from ..bridge.exact_counting import async_exact_counter
from ..bridge.known_server import KnownServer
from ..const import DOMAIN
from ..turn.scope import WindowKey
from ..window import CalibratedCounter, Window, WindowRegistry
from .config import AgentConfig
from .conversations import ConversationStore
from .statistics import AgentStatistics
from .store import AgentStore, StoredValue, async_start_store
from .window_health import HealthWatch


@dataclass(frozen=True, slots=True)
class Kept:
    """The state that outlives an agent's reload: its conversations, health, statistics, and token counter."""

    conversations: ConversationStore
    counter: CalibratedCounter
    statistics: AgentStatistics
    totals: StoredValue
    watch: HealthWatch = field(default_factory=HealthWatch)

    @property
    def windows(self) -> WindowRegistry[str]:
        """The agent's conversations."""
        return self.conversations.windows

    @callback
    def stop(self) -> None:
        """Write nothing more: the agent is gone."""
        self.conversations.stop()
        self.totals.stop()


@dataclass(frozen=True, slots=True)
class KeptAccount:
    """The state that outlives an account's reload: calibrations, facts about its server, agents by subentry id."""

    calibrations: ModelCalibrations
    server: KnownServer
    values: tuple[StoredValue, ...]
    agents: dict[str, Kept] = field(default_factory=dict)


_KEPT: HassKey[dict[str, KeptAccount]] = HassKey(f"{DOMAIN}_kept")


async def async_kept(hass: HomeAssistant, entry_id: str, configs: Mapping[str, AgentConfig]) -> KeptAccount:
    """Return the `KeptAccount` with these agents, read from the store the first time since the start."""
    accounts, store = hass.data.setdefault(_KEPT, {}), async_start_store(hass)
    if entry_id not in accounts:
        accounts[entry_id] = await _async_read_account(store, entry_id)
    account = accounts[entry_id]
    for agent_id, config in configs.items():
        exact = await async_exact_counter(hass, config.counting)
        # also for a known agent, as it may count by another model now
        counter = account.calibrations.counter(agent_id, config.model, exact)
        if agent_id not in account.agents:
            account.agents[agent_id] = await _async_read_agent(store, agent_id, config, counter)
        account.agents[agent_id].conversations.configure(config.persistence)
    return account


@callback
def async_all_kept(hass: HomeAssistant) -> dict[str, Kept]:
    """Return the `Kept` of each agent by its id, also for accounts that were unloaded since the start."""
    accounts = hass.data.get(_KEPT, {})
    return {agent_id: kept for account in accounts.values() for agent_id, kept in account.agents.items()}


async def _async_read_account(store: AgentStore, entry_id: str) -> KeptAccount:
    calibrations, server = ModelCalibrations(), KnownServer()
    learned = StoredValue(store, entry_id, "calibrations", calibrations.as_dict, calibrations.restore)
    listed = StoredValue(store, entry_id, "models", server.as_list, server.restore)
    for value in (learned, listed):
        await value.async_start()
    calibrations.save_soon, server.save_soon = learned.save_soon, listed.save_soon
    return KeptAccount(calibrations, server, (learned, listed))


async def _async_read_agent(store: AgentStore, agent_id: str, config: AgentConfig, counter: CalibratedCounter) -> Kept:
    conversations = ConversationStore(
        store, agent_id, config, lambda key: Window(WindowKey.parse(key).conversation, config.policy, counter)
    )
    statistics = AgentStatistics()
    totals = StoredValue(store, agent_id, "totals", statistics.as_dict, statistics.restore, statistics.on_written)
    await totals.async_start()
    statistics.when_changed(totals.save_soon)
    await conversations.async_start()
    return Kept(conversations, counter, statistics, totals)


@callback
def async_drop_removed(hass: HomeAssistant) -> set[str]:
    """Drop the accounts and agents that were removed from working memory. Return the ids of these agents."""
    accounts = hass.data.setdefault(_KEPT, {})
    entries = {entry.entry_id: entry for entry in hass.config_entries.async_entries(DOMAIN)}
    there = {agent_id for entry in entries.values() for agent_id in entry.subentries}
    removed = set[str]()
    for account in accounts.values():
        for agent_id in account.agents.keys() - there:
            removed.add(agent_id)
            account.agents.pop(agent_id).stop()
    for entry_id in accounts.keys() - entries.keys():
        for value in accounts.pop(entry_id).values:
            value.stop()
    return removed
