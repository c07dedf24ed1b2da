"""Set-up of an account's agents and server, and handling of the memory that remains after the last account."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
import time
from typing import Any

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.config_entries import ConfigEntry
from homeassistant.core import Context, HassJob, HomeAssistant, callback
from homeassistant.exceptions import ConfigEntryError
from homeassistant.helpers import llm
from homeassistant.helpers.event import async_call_later
from homeassistant.util import dt as dt_util
from homeassistant.util.hass_dict import HassKey

from ..bridge.account import async_model_profile, get_vendor, is_local_server
from ..bridge.calibration import async_get_exact_counter
from ..bridge.errors import build_translated_error
from ..const import DOMAIN, SUBENTRY_AI_TASK
from ..memory.core import MemoryUnavailable
from ..providers import ListedModel, ModelProfile, ModelSettings, Provider, Vendor
from ..store import delete_file, delete_overdue
from ..turn.errors import TurnError
from ..turn.limits import Budget, Pause, RequestLimiter
from ..turn.model import Model
from ..turn.routing import RoutingMode
from .account import async_load_account_state
from .agent import AccountConfigEntry, Agent
from .config import AgentConfig
from .conversation_turn import async_weigh_request
from .issues import (
    Issue,
    async_list_issues,
    async_review_retired_issue,
    async_review_windows,
    async_update_health,
    async_update_issue,
    async_update_leftovers,
)
from .server import AccountServer, HeadStart
from .store import async_close_store, async_get_store, store_path

_RETENTION_DAYS = 7
_CLOSING_LOCK_KEY: HassKey[asyncio.Lock] = HassKey(f"{DOMAIN}_leaving")


async def async_set_up_account(
    hass: HomeAssistant, entry: AccountConfigEntry, provider: Provider | None
) -> tuple[dict[str, Agent], dict[str, Agent], AccountServer | None]:
    """Return the account's agents and its AI tasks by subentry id, and its server, whose model lists update them.

    For an account without a model, `provider` and the server are None. Raises `ConfigEntryError` if the configuration
    is impossible.
    """
    configs = _read_configs(entry)
    state = await async_load_account_state(hass, entry.entry_id, configs)
    vendor, pause, limit = get_vendor(entry.data), Pause(), RequestLimiter()
    agents, head_start = dict[str, Agent](), HeadStart(hass, entry)
    for agent_id, config in configs.items():
        model, exact = None, await async_get_exact_counter(hass, is_wanted=config.exact_counting)
        if provider is not None:
            model = Model(
                agent_id=agent_id,
                provider=provider,
                name=config.model,
                budget=Budget(config.policy, config.context_tokens, config.settings.max_answer_tokens),
                profile=await _async_find_profile(hass, vendor, config, state.server.models),
                settings=_add_location(hass, config.settings),
                pause=pause,
                request_limiter=limit,
                size=state.calibrations.get_size_tracker(config.model),
                reasoning_detector=state.calibrations.get_reasoning_detector(config.model),
                is_at_home=is_local_server(entry.data),
            )
        agents[agent_id] = agent = Agent(
            hass,
            entry,
            agent_id,
            config,
            state.agent_states[agent_id],
            model=model,
            vendor=vendor,
            learn_usage=partial(state.calibrations.learn_usage, exact=exact),
            head_start=head_start,
        )
        _track_issues(agent)
        if config.reads_ended and agent.model is not None:
            learning = await hass.async_add_import_executor_job(import_module, ".background.learning", __package__)
            entry.async_on_unload(agent.add_listener(learning.Learner(agent).async_check))

    async def set_profiles(listed: Sequence[ListedModel]) -> None:
        for agent in (agents | tasks).values():
            profile = await _async_find_profile(hass, vendor, agent.config, listed)
            if agent.model is not None:
                agent.model = replace(agent.model, profile=profile)

    server = AccountServer(hass, entry, provider, state.server, set_profiles) if provider is not None else None
    tasks = {each.subentry_id: agents.pop(each.subentry_id) for each in entry.get_subentries_of_type(SUBENTRY_AI_TASK)}
    return agents, tasks, server


async def _async_find_profile(
    hass: HomeAssistant, vendor: Vendor | None, config: AgentConfig, listed: Sequence[ListedModel]
) -> ModelProfile:
    profile = await async_model_profile(hass, vendor, config.family, config.model, listed)
    return replace(profile, images=profile.images or config.images)


def _read_configs(entry: AccountConfigEntry) -> dict[str, AgentConfig]:
    configs = {}
    for subentry in entry.subentries.values():
        try:
            configs[subentry.subentry_id] = AgentConfig.from_entry(entry, subentry)
        except ValueError as err:
            raise build_translated_error("impossible_configuration", ConfigEntryError, agent=subentry.title) from err
    return configs


def _add_location(hass: HomeAssistant, settings: ModelSettings) -> ModelSettings:
    """Return settings whose web search knows the home's country and time zone, but never its coordinates."""
    home = hass.config
    search = settings.web_search and replace(
        settings.web_search, country=home.country or "", timezone=str(home.time_zone)
    )
    return replace(settings, web_search=search)


def _track_issues(agent: Agent) -> None:
    """Raise or clear the agent's issues now and, while its account is set up, after each change."""
    hass, agent_id, name = agent.hass, agent.id, agent.config.name
    update_health = partial(async_update_health, hass, agent_id, name, agent.state.notes_by_window)
    agent.entry.async_on_unload(agent.add_listener(update_health))
    async_review_windows(hass, agent_id, name, agent.windows)
    if agent.model is None or agent.model.size.readable_tokens is None:
        async_update_issue(hass, Issue.SERVER_CONTEXT_TOO_SMALL, agent_id, None)
    is_model_used = agent.model is not None and agent.config.routing is not RoutingMode.LOCAL_ONLY
    async_review_retired_issue(hass, agent_id, agent.config.model if is_model_used else None)
    if Issue.MODEL_TOO_SMALL in async_list_issues(hass, agent_id):
        agent.entry.async_create_background_task(hass, _async_review_model_issue(agent), f"weigh requests of {name}")


async def _async_review_model_issue(agent: Agent) -> None:
    context = llm.LLMContext(DOMAIN, Context(), agent.hass.config.language, CONVERSATION_DOMAIN, None)
    with suppress(TurnError):
        weight = await async_weigh_request(agent, context)
        if weight is None or weight.model is None or weight.total + weight.answer <= weight.model:
            async_update_issue(agent.hass, Issue.MODEL_TOO_SMALL, agent.id, None)


@callback
def async_get_closing_lock(hass: HomeAssistant) -> asyncio.Lock:
    """Return the lock that is held while the store is being closed after the removal of the last account."""
    return hass.data.setdefault(_CLOSING_LOCK_KEY, asyncio.Lock())


async def async_retain_memory(hass: HomeAssistant, account: ConfigEntry[Any]) -> None:
    """Keep memory for some days after the last account was removed. If memory is empty, delete the file at once."""
    until = time.time() + _RETENTION_DAYS * 86_400
    async with async_get_closing_lock(hass):
        if not await async_close_store(hass, account, until):
            await hass.async_add_executor_job(delete_file, store_path(hass))
            return
    async_update_leftovers(hass, dt_util.as_local(dt_util.utc_from_timestamp(until)).date())
    _async_schedule_deletion(hass, until)


@callback
def _async_schedule_deletion(hass: HomeAssistant, until: float) -> None:
    async def delete_if_due(_now: datetime) -> None:
        if (now := time.time()) < until:
            # the system clock was set back
            _async_schedule_deletion(hass, until)
        elif async_get_store(hass) is None and await hass.async_add_executor_job(delete_overdue, store_path(hass), now):
            async_update_leftovers(hass, None)

    async_call_later(hass, until - time.time(), HassJob(delete_if_due, cancel_on_shutdown=True))


async def async_delete_leftover_file(hass: HomeAssistant) -> bool:
    """Delete the file that remains after the last account, unless it is in use again. Return whether it is gone."""
    return async_get_store(hass) is None and await hass.async_add_executor_job(delete_file, store_path(hass))


async def async_change_damaged_file(change: Callable[[Path], bool], hass: HomeAssistant) -> bool:
    """Delete or keep the damaged file that was set aside. Return whether `change` succeeded."""
    store = async_get_store(hass)
    try:
        # the writer thread may be reading from the damaged file, and publishes the new state after the change
        return store is not None and await store.async_change(lambda memory: change(memory.database.path))
    except MemoryUnavailable:
        return False
