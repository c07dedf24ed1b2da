"""Builds the agents of an account from its configuration, its provider and their stored state."""

from collections.abc import Sequence
from functools import partial

from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import ConfigEntryError

from ..bridge.account import async_open_connection, is_at_home, vendor_of
from ..bridge.errors import translated_error
from ..bridge.exact_counting import ExactCounter, async_exact_counter
from ..bridge.models import async_model_profile
from ..const import SUBENTRY_CONVERSATION
from ..providers import ListedModel, Provider
from ..turn.budget import Budget
from ..turn.deadlines import Pause
from ..turn.ports import BilledRequest, Model
from ..turn.request_limit import RequestLimit
from .agent import AccountConfigEntry, Agent
from .config import AgentConfig
from .head_start import HeadStart
from .issues import (
    async_raise_or_clear_health,
    async_raise_or_clear_size,
    async_review_windows,
)
from .kept import AccountState, async_account_state
from .server import AccountServer


async def async_set_up_account(
    hass: HomeAssistant, entry: AccountConfigEntry, provider: Provider | None
) -> tuple[dict[str, Agent], AccountServer | None]:
    """Return the account's agents by subentry id, and its server, whose lists of models they follow.

    `provider` and the server are None for an account without a model. Raises `ConfigEntryError` for an impossible
    configuration.
    """
    configs = _configs(entry)
    state = await async_account_state(hass, entry.entry_id, configs)
    vendor, pause, limit = vendor_of(entry.data), Pause(), RequestLimit()
    agents, head_start = dict[str, Agent](), HeadStart(hass, entry, partial(async_open_connection, hass, entry.data))
    for agent_id, config in configs.items():
        model = None
        if provider is not None:
            model = Model(
                agent=agent_id,
                provider=provider,
                name=config.model,
                budget=Budget(config.policy, config.context_tokens, config.settings.max_answer_tokens),
                profile=await async_model_profile(hass, vendor, config.family, config.model, state.server.models),
                settings=config.settings,
                pause=pause,
                limit=limit,
                size=state.calibrations.size(config.model),
                reasoning=state.calibrations.reasoning(config.model),
                is_at_home=is_at_home(entry.data),
            )
        agents[agent_id] = agent = Agent(
            hass,
            entry,
            agent_id,
            config,
            state.agents[agent_id],
            model=model,
            vendor=vendor,
            learn=partial(_learn, state, await async_exact_counter(hass, config.counting)),
            head_start=head_start,
        )
        _update_issues(agent)

    async def set_profiles(listed: Sequence[ListedModel]) -> None:
        for agent in agents.values():
            family, model = agent.config.family, agent.config.model
            agent.set_model_profile(await async_model_profile(hass, vendor, family, model, listed))

    server = AccountServer(hass, entry, provider, state.server, set_profiles) if provider is not None else None
    return agents, server


def _configs(entry: AccountConfigEntry) -> dict[str, AgentConfig]:
    configs = {}
    for subentry in entry.get_subentries_of_type(SUBENTRY_CONVERSATION):
        try:
            configs[subentry.subentry_id] = AgentConfig.from_entry(entry, subentry)
        except ValueError as err:
            raise translated_error("impossible_configuration", ConfigEntryError, agent=subentry.title) from err
    return configs


@callback
def _learn(state: AccountState, exact: ExactCounter | None, billed: BilledRequest) -> None:
    # the bill lacks the part that the server did not read
    if not billed.is_cut:
        state.calibrations.learn(billed.request, billed.usage, exact)


@callback
def _update_issues(agent: Agent) -> None:
    """Raise or clear the agent's issues now, and after each change while its account is set up."""
    hass, agent_id, name = agent.hass, agent.id, agent.config.name

    def update_health() -> None:
        async_raise_or_clear_health(hass, agent_id, name, agent.health())

    agent.entry.async_on_unload(agent.listen(update_health))
    async_review_windows(hass, agent_id, name, agent.windows)
    if agent.model is None or agent.model.size.reads is None:
        async_raise_or_clear_size(hass, agent_id, name, None)
