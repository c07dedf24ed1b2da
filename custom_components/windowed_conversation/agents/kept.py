"""What outlives a reload: an object for each agent, made in one place and forgotten in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeassistant.core import HomeAssistant, callback
from homeassistant.util.hass_dict import HassKey

from ..bridge.calibration import ModelCalibrations, async_load_calibrations
from ..bridge.exact_counting import async_exact_counter
from ..bridge.known_server import KnownServer, async_load_server
from ..bridge.storage import WindowStore, async_open_store, async_remove_files
from ..const import DOMAIN
from ..turn.scope import WindowKey
from ..window import CalibratedCounter, Window, WindowRegistry
from .config import AgentConfig
from .statistics import AgentStatistics
from .window_health import HealthWatch


@dataclass(frozen=True, slots=True)
class Kept:
    """What outlives an agent's reload: its conversations and their file, health, statistics, and token counter."""

    windows: WindowRegistry[str]
    counter: CalibratedCounter
    statistics: AgentStatistics
    store: WindowStore
    watch: HealthWatch = field(default_factory=HealthWatch)


@dataclass(frozen=True, slots=True)
class KeptAccount:
    """What outlives a reload of an account: calibrations, facts about its server, and its agents by subentry id."""

    calibrations: ModelCalibrations
    server: KnownServer
    agents: dict[str, Kept] = field(default_factory=dict)


_KEPT: HassKey[dict[str, KeptAccount]] = HassKey(f"{DOMAIN}_kept")


async def async_kept(hass: HomeAssistant, entry_id: str, configs: Mapping[str, AgentConfig]) -> KeptAccount:
    """Return what is kept of an account and of these agents, read from disk the first time since the start."""
    accounts = hass.data.setdefault(_KEPT, {})
    if entry_id not in accounts:
        calibrations, server = await async_load_calibrations(hass, entry_id), await async_load_server(hass, entry_id)
        accounts[entry_id] = KeptAccount(calibrations, server)
    account = accounts[entry_id]
    for agent_id, config in configs.items():
        exact = await async_exact_counter(hass, config.counting)
        # also for a known agent, as it may count by another model now
        counter = account.calibrations.counter(agent_id, config.model, exact)
        if agent_id not in account.agents:
            account.agents[agent_id] = await _async_open(hass, agent_id, config, counter)
        account.agents[agent_id].store.configure(config.persistence)
    return account


@callback
def async_all_kept(hass: HomeAssistant) -> dict[str, Kept]:
    """Return what agents keep, by their ids, also those of accounts that were unloaded since the start."""
    accounts = hass.data.get(_KEPT, {})
    return {agent_id: kept for account in accounts.values() for agent_id, kept in account.agents.items()}


async def _async_open(hass: HomeAssistant, agent_id: str, config: AgentConfig, counter: CalibratedCounter) -> Kept:
    windows = WindowRegistry[str](
        lambda key: Window(WindowKey.parse(key).conversation, config.policy, counter),
        max_windows=config.max_windows,
        idle_seconds=config.expiry_seconds,
    )
    statistics = AgentStatistics()
    store = await async_open_store(hass, agent_id, windows, statistics, config.persistence)
    return Kept(windows, counter, statistics, store)


async def async_save(account: KeptAccount) -> None:
    """Write what has changed; returns when it is on disk."""
    for kept in list(account.agents.values()):
        await kept.store.async_save()
    await account.calibrations.async_save()
    await account.server.async_save()


async def async_forget(hass: HomeAssistant) -> set[str]:
    """Forget the accounts and agents that were removed, in memory and on disk; returns the ids of those agents."""
    accounts = hass.data.setdefault(_KEPT, {})
    entries = {entry.entry_id: entry for entry in hass.config_entries.async_entries(DOMAIN)}
    there = {agent_id for entry in entries.values() for agent_id in entry.subentries}
    removed = set[str]()
    for account in accounts.values():
        for agent_id in account.agents.keys() - there:
            removed.add(agent_id)
            await account.agents.pop(agent_id).store.async_remove()
    for entry_id in accounts.keys() - entries.keys():
        account = accounts.pop(entry_id)
        await account.calibrations.async_remove()
        await account.server.async_remove()
    await async_remove_files(hass, there)
    return removed
