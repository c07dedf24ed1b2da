"""Builds the agents of an account from its configuration, its provider and their stored state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import ConfigEntryError

from ..bridge.account import async_open_connection, is_at_home, vendor_of
from ..bridge.calibration import ModelCalibrations
from ..bridge.exact_counting import ExactCounter, async_exact_counter
from ..bridge.models import async_profile, listed_model
from ..const import DOMAIN, SUBENTRY_CONVERSATION
from ..providers import ListedModel, ModelProfile, Provider, Vendor
from ..turn.budget import Budget
from ..turn.deadlines import Pause
from ..turn.ports import Billed, Model
from ..turn.request_limit import RequestLimit
from .agent import AccountConfigEntry, Agent
from .config import AgentConfig
from .head_start import HeadStart
from .issues import (
    async_raise_or_clear_health,
    async_raise_or_clear_size,
    async_review_windows,
)
from .kept import KeptAccount, async_kept
from .server import AccountServer


async def async_set_up_agents(
    hass: HomeAssistant, entry: AccountConfigEntry, provider: Provider | None
) -> dict[str, Agent]:
    """Return the account's agents by subentry id. What their models read is known from the last list.

    `provider` is None for an account without a model. Raises `ConfigEntryError` for an impossible configuration.
    """
    configs = _configs(entry)
    kept, pause, limit = await async_kept(hass, entry.entry_id, configs), Pause(), RequestLimit()
    agents, head_start = {}, HeadStart(hass, entry, partial(async_open_connection, hass, entry.data))
    for agent_id, config in configs.items():
        model = None
        if provider is not None:
            profile = await _async_profile(hass, vendor_of(entry.data), config, kept.server.models)
            model = _model(
                agent_id, config, _Server(provider, profile, pause, limit, is_at_home(entry.data)), kept.calibrations
            )
        exact = await async_exact_counter(hass, config.counting)
        learn = partial(_learn, kept, exact)
        agent = Agent(
            hass,
            entry,
            agent_id,
            config,
            kept.agents[agent_id],
            model=model,
            vendor=vendor_of(entry.data),
            learn=learn,
            head_start=head_start,
        )
        agents[agent_id] = agent
        _follow(agent)
    return agents


async def async_set_up_server(
    hass: HomeAssistant, entry: AccountConfigEntry, provider: Provider | None, agents: Mapping[str, Agent]
) -> AccountServer | None:
    """Return the account's server, whose lists the agents follow, or None for an account without a model."""
    if provider is None:
        return None
    kept = await async_kept(hass, entry.entry_id, {})
    return AccountServer(hass, entry, provider, kept.server, partial(_async_update_profiles, hass, agents))


async def _async_update_profiles(
    hass: HomeAssistant, agents: Mapping[str, Agent], listed: Sequence[ListedModel]
) -> None:
    for agent in agents.values():
        agent.know(await _async_profile(hass, agent.vendor, agent.config, listed))


async def _async_profile(
    hass: HomeAssistant, vendor: Vendor | None, config: AgentConfig, listed: Sequence[ListedModel]
) -> ModelProfile:
    return await async_profile(hass, vendor, config.family, listed_model(listed, config.model))


@callback
def _follow(agent: Agent) -> None:
    """Let the agent's issues follow its figures while its account is set up."""
    hass, agent_id, name = agent.hass, agent.id, agent.config.name
    agent.entry.async_on_unload(agent.listen(partial(_raise_or_clear_health, agent)))
    async_review_windows(hass, agent_id, name, agent.windows)
    if agent.model is None or agent.model.size.reads is None:
        async_raise_or_clear_size(hass, agent_id, name, None)


def _configs(entry: AccountConfigEntry) -> dict[str, AgentConfig]:
    configs = {}
    for subentry in entry.get_subentries_of_type(SUBENTRY_CONVERSATION):
        try:
            configs[subentry.subentry_id] = AgentConfig.from_entry(entry, subentry)
        except ValueError as err:
            raise ConfigEntryError(
                translation_domain=DOMAIN,
                translation_key="impossible_configuration",
                translation_placeholders={"agent": subentry.title},
            ) from err
    return configs


@dataclass(frozen=True, slots=True)
class _Server:
    """A model's server: what is known of it, and what all agents that ask it share: its pause and request limit."""

    provider: Provider
    profile: ModelProfile
    pause: Pause
    limit: RequestLimit
    is_at_home: bool


def _model(agent_id: str, config: AgentConfig, server: _Server, calibrations: ModelCalibrations) -> Model:
    """Return an agent's model. Its budget has the context size that the user has entered."""
    return Model(
        agent=agent_id,
        provider=server.provider,
        name=config.model,
        budget=Budget(config.policy, config.context_tokens, config.settings.max_answer_tokens),
        profile=server.profile,
        settings=config.settings,
        pause=server.pause,
        limit=server.limit,
        size=calibrations.size(config.model),
        reasoning=calibrations.reasoning(config.model),
        is_at_home=server.is_at_home,
    )


@callback
def _learn(kept: KeptAccount, exact: ExactCounter | None, billed: Billed) -> None:
    # what the server did not read is not in the bill
    if not billed.is_cut:
        kept.calibrations.learn(billed.request, billed.usage, exact)


@callback
def _raise_or_clear_health(agent: Agent) -> None:
    async_raise_or_clear_health(agent.hass, agent.id, agent.config.name, agent.health())
