"""Windowed Conversation: a conversation agent that keeps what a model is sent inside a token budget.

Sets up accounts and their agents. What an agent is lives in `agent`, how it answers in `conversation`.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from homeassistant.const import CONF_MODEL, EVENT_HOMEASSISTANT_STOP, Platform
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.exceptions import ConfigEntryAuthFailed, ConfigEntryError, ConfigEntryNotReady
from homeassistant.helpers import config_validation as cv
from homeassistant.helpers.event import async_track_time_interval
from homeassistant.helpers.typing import ConfigType

from .agent import (
    Account,
    AccountData,
    Agent,
    async_agent_ids,
    async_forget_gone,
    async_health_watch,
    async_windows,
)
from .agent_config import AgentConfig
from .bridge.account import async_create_provider, vendor_of
from .bridge.calibration import ModelCalibrations, async_calibrations, async_remove_calibrations
from .bridge.errors import failure_of
from .bridge.exact_counting import async_exact_counter
from .bridge.models import async_profile, listed_model
from .bridge.storage import async_remove_stores, async_window_store
from .const import CONF_PROVIDER, DOMAIN, PROVIDER_NONE, SUBENTRY_CONVERSATION, Compaction
from .health import async_report_damage, async_report_health, async_review_windows, async_withdraw_report
from .providers.errors import AuthError, BadRequest, DeadlineExceeded, ModelNotFound, ProviderError, Unavailable
from .providers.events import ListedModel, Provider
from .providers.profile import Profile
from .recovery import async_list_models, async_look_out, async_stop_looking
from .services import async_setup_services
from .turn.budget import Budget
from .turn.deadlines import Pause
from .turn.ports import Model, OnUsage

CONFIG_SCHEMA = cv.config_entry_only_config_schema(DOMAIN)

PLATFORMS = (Platform.CONVERSATION, Platform.SENSOR)

# How often idle conversations are looked for, so that what the sensors say about them is true.
_EXPIRY_INTERVAL = timedelta(minutes=10)


async def async_setup(hass: HomeAssistant, config: ConfigType) -> bool:
    """Register the actions."""
    async_setup_services(hass)
    return True


async def async_setup_entry(hass: HomeAssistant, entry: Account) -> bool:
    """Set up an account: reach its server, then set up its agents."""
    async_stop_looking(hass, entry)
    await _async_forget_gone(hass)
    provider, listed = await _async_provider(hass, entry)
    vendor, pause = vendor_of(entry.data), Pause()
    calibrations = await async_calibrations(hass, entry.entry_id)
    agents = {}
    for subentry in entry.get_subentries_of_type(SUBENTRY_CONVERSATION):
        try:
            config = AgentConfig.from_entry(entry, subentry)
        except ValueError as err:
            raise ConfigEntryError(
                translation_domain=DOMAIN,
                translation_key="impossible_configuration",
                translation_placeholders={"agent": subentry.title},
            ) from err
        exact = await async_exact_counter(hass, config.counting)
        counter = calibrations.counter(subentry.subentry_id, config.model, exact)
        windows = async_windows(hass, subentry.subentry_id, config, counter)
        on_usage = partial(calibrations.learn, exact=exact)
        store = await async_window_store(hass, subentry.subentry_id, windows, config.persistence)
        async_report_damage(hass, subentry.subentry_id, config.name, await store.async_damaged_file())
        watch = async_health_watch(hass, subentry.subentry_id)
        model = None
        if provider is not None:
            profile = await async_profile(hass, vendor, config.family, listed_model(listed, config.model))
            model = _model(
                subentry.subentry_id,
                config,
                provider=provider,
                profile=profile,
                calibrations=calibrations,
                on_usage=on_usage,
                pause=pause,
            )
        agent = Agent(config, model, windows, counter, watch=watch, vendor=vendor)
        agents[subentry.subentry_id] = agent
        entry.async_on_unload(agent.listen(store.save_soon))
        entry.async_on_unload(agent.listen(partial(_report_health, hass, subentry.subentry_id, agent)))
        async_review_windows(hass, subentry.subentry_id, config.name, windows)
    entry.runtime_data = AccountData(provider, agents, _set_up_as(entry))
    await hass.config_entries.async_forward_entry_setups(entry, PLATFORMS)
    entry.async_on_unload(entry.add_update_listener(_async_update))

    @callback
    def expire(_now: datetime) -> None:
        for agent in agents.values():
            agent.expire()

    @callback
    def tell(_event: Event) -> None:
        for agent in agents.values():
            agent.tell()

    entry.async_on_unload(async_track_time_interval(hass, expire, _EXPIRY_INTERVAL, cancel_on_shutdown=True))
    # what was said in the last moment is written with the rest
    entry.async_on_unload(hass.bus.async_listen(EVENT_HOMEASSISTANT_STOP, tell))
    return True


@callback
def _report_health(hass: HomeAssistant, agent_id: str, agent: Agent) -> None:
    config = agent.config
    async_report_health(hass, agent_id, config.name, agent.health(), config.max_windows)


async def async_unload_entry(hass: HomeAssistant, entry: Account) -> bool:
    """Unload an account; its conversations are kept for when it comes back."""
    for agent in entry.runtime_data.agents.values():
        agent.tell()
    return await hass.config_entries.async_unload_platforms(entry, PLATFORMS)


async def async_remove_entry(hass: HomeAssistant, entry: Account) -> None:
    """Forget the conversations of an account that is removed, and what was learned of its models."""
    await async_remove_calibrations(hass, entry.entry_id)
    await _async_forget_gone(hass)


async def _async_forget_gone(hass: HomeAssistant) -> None:
    for agent_id in async_forget_gone(hass):
        async_withdraw_report(hass, agent_id)
    await async_remove_stores(hass, async_agent_ids(hass))


async def _async_provider(hass: HomeAssistant, entry: Account) -> tuple[Provider | None, list[ListedModel]]:
    """Return the account's provider and its models after a call that costs nothing, None where there is no model."""
    if entry.data[CONF_PROVIDER] == PROVIDER_NONE:
        return None, []
    provider = None
    try:
        provider = await async_create_provider(hass, entry.data)
        return provider, await async_list_models(hass, provider)
    except ProviderError as err:
        if provider is not None and isinstance(err, Unavailable | DeadlineExceeded):
            async_look_out(hass, entry, provider)
        kind = ConfigEntryAuthFailed if isinstance(err, AuthError) else ConfigEntryNotReady
        # no model was asked for: it is the list that is not there
        failure = failure_of(BadRequest() if isinstance(err, ModelNotFound) else err)
        raise kind(
            translation_domain=DOMAIN,
            translation_key=failure.key,
            translation_placeholders=failure.placeholders,
        ) from err


def _model(
    agent_id: str,
    config: AgentConfig,
    *,
    provider: Provider,
    profile: Profile,
    calibrations: ModelCalibrations,
    on_usage: OnUsage,
    pause: Pause,
) -> Model:
    """Return an agent's model; its budget has the context size that the user has entered."""
    budget = Budget(config.policy, config.context_tokens, config.reply_tokens)
    return Model(
        agent=agent_id,
        provider=provider,
        name=config.model,
        budget=budget,
        profile=profile,
        effort=config.effort,
        temperature=config.temperature,
        compaction=config.compaction is Compaction.PROVIDER,
        pause=pause,
        on_usage=on_usage,
        size=calibrations.size(config.model),
    )


def _set_up_as(entry: Account) -> tuple[Any, ...]:
    """Return what an account cannot change without being set up again: all but its options."""
    agents = {subentry.subentry_id: (subentry.title, dict(subentry.data)) for subentry in entry.subentries.values()}
    return entry.title, dict(entry.data), agents


def _reconfigured(account: AccountData, entry: Account) -> set[str] | None:
    """Return the models of the agents that were changed, or None if the account itself was: its server is another."""
    _, data, agents = account.set_up_as
    if data != dict(entry.data):
        return None
    now = {subentry.subentry_id: dict(subentry.data) for subentry in entry.subentries.values()}
    changed = (each for agent_id, (_, each) in agents.items() if now.get(agent_id, each) != each)
    return {str(each.get(CONF_MODEL, "")) for each in changed}


async def _async_update(hass: HomeAssistant, entry: Account) -> None:
    """Follow a change: options live, everything else by setting the account up again."""
    account = entry.runtime_data
    if account.set_up_as != _set_up_as(entry):
        (await async_calibrations(hass, entry.entry_id)).forget_sizes(_reconfigured(account, entry))
        hass.config_entries.async_schedule_reload(entry.entry_id)
        return
    for subentry_id, agent in account.agents.items():
        config = AgentConfig.from_entry(entry, entry.subentries[subentry_id])
        agent.configure(config)
        await async_window_store(hass, subentry_id, agent.windows, config.persistence)
        async_review_windows(hass, subentry_id, agent.config.name, agent.windows)
