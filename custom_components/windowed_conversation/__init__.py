"""Windowed Conversation: a conversation agent that keeps its requests to a model within a token budget."""

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from homeassistant.const import CONF_MODEL, EVENT_HOMEASSISTANT_STARTED, EVENT_HOMEASSISTANT_STOP, Platform
from homeassistant.core import CoreState, Event, HomeAssistant, callback
from homeassistant.exceptions import ConfigEntryError
from homeassistant.helpers import config_validation as cv, llm
from homeassistant.helpers.event import async_track_time_interval
from homeassistant.helpers.typing import ConfigType

from .agents.account import async_drop_removed_states, async_load_account_state
from .agents.actions import ACTIONS
from .agents.agent import AccountConfigEntry, AccountData, async_loaded_agents
from .agents.config import AgentConfig
from .agents.forgetting import async_forget_removed_owners, async_track_user_removal
from .agents.hand_over import async_is_in_use
from .agents.issues import async_clear_issues, async_review_windows
from .agents.local_intents import async_load_requests, async_prepare_first_command
from .agents.reminders import async_acquire_reminders
from .agents.setup import async_get_closing_lock, async_retain_memory, async_set_up_account
from .agents.store import async_get_store, async_start_store
from .bridge.account import async_create_provider
from .bridge.errors import build_translated_error, describe_error
from .bridge.persons import async_copy_speaker_rows
from .const import CONF_PROVIDER, DOMAIN, PROVIDER_NONE
from .home.bridge.states import async_acquire_home_states
from .memory.bridge.tools import MemoryAPI
from .page import async_register_commands, async_register_page
from .providers import Provider, ProviderError
from .turn.routing import RoutingMode

CONFIG_SCHEMA = cv.config_entry_only_config_schema(DOMAIN)

PLATFORMS = (Platform.AI_TASK, Platform.CONVERSATION, Platform.SENSOR, Platform.TODO)

# How often idle conversations are expired, so that the sensors no longer count them.
_EXPIRY_INTERVAL = timedelta(minutes=10)


async def async_setup(hass: HomeAssistant, config: ConfigType) -> bool:
    """Register the actions, the page, and the LLM API through which other agents search memory.

    Also watch for removed users.
    """
    for name, action, schema, response in ACTIONS:
        hass.services.async_register(DOMAIN, name, action, schema, response)
    async_track_user_removal(hass)
    llm.async_register_api(hass, MemoryAPI(hass, async_get_store))
    async_register_commands(hass)
    await async_register_page(hass)
    if hass.state is not CoreState.running:
        hass.bus.async_listen_once(EVENT_HOMEASSISTANT_STARTED, partial(_async_prepare_first_command, hass))
    return True


@callback
def _async_prepare_first_command(hass: HomeAssistant, _event: Event) -> None:
    """Make the first local command as fast as later ones, if any agent answers locally."""
    if any(agent.config.routing is not RoutingMode.MODEL_ONLY for agent in async_loaded_agents(hass)):
        hass.async_create_background_task(async_prepare_first_command(hass), "prepare the first command")


async def async_setup_entry(hass: HomeAssistant, entry: AccountConfigEntry) -> bool:
    """Set up an account and its agents. Does not wait for the account's server: local commands do not need it."""
    await async_load_requests(hass, hass.config.language)
    async with async_get_closing_lock(hass):
        _async_clean_up_removed(hass)
    async_copy_speaker_rows(hass, entry)
    provider = await _async_create_account_provider(hass, entry)
    agents, tasks, server = await async_set_up_account(hass, entry, provider)
    if any(agent.config.sends_states or agent.config.llm_apis for agent in agents.values()):
        entry.async_on_unload(async_acquire_home_states(hass))
    # only an account with AI tasks loads that integration
    platforms = PLATFORMS if tasks else tuple(each for each in PLATFORMS if each is not Platform.AI_TASK)
    entry.runtime_data = AccountData(server, agents, _build_setup_settings(entry), tasks, platforms)
    await hass.config_entries.async_forward_entry_setups(entry, platforms)
    # after the to-do list, because the event of an overdue reminder names it
    entry.async_on_unload(await async_acquire_reminders(hass, partial(async_is_in_use, hass)))
    entry.async_on_unload(entry.add_update_listener(_async_apply_update))
    expire, notify = entry.runtime_data.expire_windows, entry.runtime_data.notify_listeners
    entry.async_on_unload(async_track_time_interval(hass, expire, _EXPIRY_INTERVAL, cancel_on_shutdown=True))
    # turns that ended just before the stop are still written
    entry.async_on_unload(hass.bus.async_listen(EVENT_HOMEASSISTANT_STOP, notify))
    if server is not None:
        server.start()
    return True


async def async_unload_entry(hass: HomeAssistant, entry: AccountConfigEntry) -> bool:
    """Unload an account. Its conversations remain in working memory until it is loaded again."""
    entry.runtime_data.notify_listeners()
    async_start_store(hass).async_save()
    return await hass.config_entries.async_unload_platforms(entry, entry.runtime_data.platforms)


async def async_remove_entry(hass: HomeAssistant, entry: AccountConfigEntry) -> None:
    """Remove the data of a removed account. If it was the last one, memory is kept for some days for a new account."""
    async_clear_issues(hass, entry.entry_id)
    _async_clean_up_removed(hass, entry.subentries)
    if not hass.config_entries.async_entries(DOMAIN):
        await async_retain_memory(hass, entry)


def _async_clean_up_removed(hass: HomeAssistant, removed: Iterable[str] = ()) -> None:
    gone = {*async_drop_removed_states(hass), *removed}
    for agent_id in gone:
        async_clear_issues(hass, agent_id)
    if hass.config_entries.async_entries(DOMAIN):
        async_start_store(hass)
        hass.async_create_background_task(async_forget_removed_owners(hass, gone), "forget what belongs to nobody")


async def _async_create_account_provider(hass: HomeAssistant, entry: AccountConfigEntry) -> Provider | None:
    """Return the account's provider, or None for an account without a model. Opens no connection."""
    if entry.data[CONF_PROVIDER] == PROVIDER_NONE:
        return None
    try:
        return await async_create_provider(hass, entry.data)
    except ProviderError as err:
        failure = describe_error(err)
        raise build_translated_error(failure.key, ConfigEntryError, **failure.placeholders) from err


def _build_setup_settings(entry: AccountConfigEntry) -> tuple[Any, ...]:
    """Return the account data that requires a reload when it changes: everything except the options."""
    agents = {subentry.subentry_id: (subentry.title, dict(subentry.data)) for subentry in entry.subentries.values()}
    return entry.title, dict(entry.data), agents


def _find_reconfigured_models(account: AccountData, entry: AccountConfigEntry) -> set[str] | None:
    """Return the models of the changed agents, or None if the account itself changed and may use another server."""
    _, data, agents = account.setup_settings
    if data != dict(entry.data):
        return None
    now = {subentry.subentry_id: dict(subentry.data) for subentry in entry.subentries.values()}
    changed = (each for agent_id, (_, each) in agents.items() if now.get(agent_id, each) != each)
    return {str(each.get(CONF_MODEL, "")) for each in changed}


async def _async_apply_update(hass: HomeAssistant, entry: AccountConfigEntry) -> None:
    """Apply a change of the config entry: options take effect at once, any other change reloads the account."""
    account = entry.runtime_data
    if account.setup_settings != _build_setup_settings(entry):
        state = await async_load_account_state(hass, entry.entry_id)
        reconfigured = _find_reconfigured_models(account, entry)
        state.calibrations.forget_context_sizes(reconfigured)
        if reconfigured is None:
            state.server.clear()
        hass.config_entries.async_schedule_reload(entry.entry_id)
        return
    for subentry_id, agent in account.agents.items():
        config = AgentConfig.from_entry(entry, entry.subentries[subentry_id])
        agent.configure(config)
        agent.state.conversations.configure(config.persistence)
        async_review_windows(hass, subentry_id, agent.config.name, agent.windows)
    async_start_store(hass)
