"""System health information: whether the servers are reachable, and the state of the memory file.

Contains no conversation text and no names or addresses that users entered, because people copy it into bug reports.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from homeassistant.components.system_health import SystemHealthRegistration, async_check_can_reach_url
from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant, callback
from homeassistant.util import dt as dt_util
from yarl import URL

from .agents.agent import AccountConfigEntry
from .agents.store import async_get_store
from .const import CONF_PROVIDER, DOMAIN, PROVIDER_NONE

_OK_STATUS = "ok"


@callback
def async_register(hass: HomeAssistant, register: SystemHealthRegistration) -> None:
    """Register the function that collects the information."""
    register.async_register_info(_async_collect_info)


async def _async_collect_info(hass: HomeAssistant) -> dict[str, Any]:
    """Return the information by translation key. Values that take time to collect are coroutines."""
    accounts: list[AccountConfigEntry] = [
        entry for entry in hass.config_entries.async_entries(DOMAIN) if entry.data[CONF_PROVIDER] != PROVIDER_NONE
    ]
    return {**_check_servers(hass, accounts), **_find_last_answer(accounts), **_describe_memory(hass)}


def _check_servers(hass: HomeAssistant, accounts: Iterable[AccountConfigEntry]) -> dict[str, Any]:
    """Return a reachability check of its accounts' servers for each provider. It sends no key and no path."""
    addresses = defaultdict[str, set[str]](set)
    for account in accounts:
        if account.disabled_by is None:
            addresses[f"can_reach_{account.data[CONF_PROVIDER]}"].add(account.data[CONF_URL])
    return {key: _async_check_reachable(hass, urls) for key, urls in addresses.items()}


async def _async_check_reachable(hass: HomeAssistant, urls: Iterable[str]) -> str | dict[str, str]:
    """Return Home Assistant's result for reachable servers, or the result of the first unreachable one."""
    origins = {str(URL(url).origin()) for url in urls}
    results = await asyncio.gather(*(async_check_can_reach_url(hass, each) for each in sorted(origins)))
    return next((result for result in results if result != _OK_STATUS), _OK_STATUS)


def _find_last_answer(accounts: Iterable[AccountConfigEntry]) -> dict[str, Any]:
    """Return the time of the latest answer by a model since startup, or an empty dictionary if there was none."""
    loaded = (account.runtime_data.server for account in accounts if account.state is ConfigEntryState.LOADED)
    answers = [
        server.cache.answered_at for server in loaded if server is not None and server.cache.answered_at is not None
    ]
    return {"last_answer": max(answers)} if answers else {}


def _describe_memory(hass: HomeAssistant) -> dict[str, Any]:
    """Return the state of the memory that all agents share, or an empty dictionary if no account was set up."""
    store = async_get_store(hass)
    if store is None:
        return {}
    state, counts = store.writer.state, store.writer.counts
    size = state.statistics.size if state.statistics else 0
    shown = {
        "memory": _OK_STATUS if state.reason is None else {"type": "failed", "error": state.reason},
        "memory_size": f"{size / 1_000_000:.1f} MB",
        "memory_queued": counts.queued,
        "memory_dropped": counts.dropped + counts.refused,
        "memory_late": store.late_searches,
    }
    if counts.written_at is None:
        return shown
    return {**shown, "memory_written": dt_util.utc_from_timestamp(counts.written_at)}
