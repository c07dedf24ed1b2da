"""Lookup of agents: our agents by their ids, and the fallback agents of an agent."""

from collections.abc import Iterator

from homeassistant.components.conversation import ConversationInput
from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.intent import IntentResponseType

from ..bridge.chat_log import async_ask_agent
from ..const import DOMAIN
from ..providers import Unavailable
from ..turn.model import BilledRequest, FallbackAgent, Model
from ..turn.state import Turn
from .agent import AccountConfigEntry, Agent
from .server import AccountServer


@callback
def async_find_fallback_agents(
    hass: HomeAssistant, entity_ids: tuple[str, ...], own_entity_id: str, user_input: ConversationInput
) -> tuple[Model | FallbackAgent, ...]:
    """Return the fallback agents that can answer now, in the user's order. Unavailable ones are skipped."""
    found: list[Model | FallbackAgent] = []
    for entity_id in entity_ids:
        if entity_id == own_entity_id:
            continue
        entity = er.async_get(hass).async_get(entity_id)
        if entity is None or entity.platform != DOMAIN:
            if hass.states.get(entity_id) is not None:
                found.append(EntityAgent(hass, entity_id, user_input))
            continue
        agent = async_find_agent(hass, entity.config_subentry_id or "")
        if agent is not None and agent.model is not None:
            found.append(agent.model)
    return tuple(found)


@callback
def async_find_agent(hass: HomeAssistant, agent_id: str) -> Agent | None:
    """Return the agent or the AI task with this id, or None if its account is not set up."""
    account: AccountConfigEntry
    for account in hass.config_entries.async_loaded_entries(DOMAIN):
        data = account.runtime_data
        if (agent := data.agents.get(agent_id) or data.tasks.get(agent_id)) is not None:
            return agent
    return None


@callback
def async_loaded_agents(hass: HomeAssistant) -> list[Agent]:
    """Return all agents of this integration whose accounts are set up."""
    accounts: list[AccountConfigEntry] = hass.config_entries.async_loaded_entries(DOMAIN)
    return [agent for account in accounts for agent in account.runtime_data.agents.values()]


@callback
def async_agent_ids(hass: HomeAssistant) -> set[str]:
    """Return the ids of the agents of all accounts, whether they are set up or not."""
    return {agent_id for account in hass.config_entries.async_entries(DOMAIN) for agent_id in account.subentries}


@callback
def async_learn_usage(hass: HomeAssistant, billed: BilledRequest) -> None:
    """Pass the usage of a request to the agent whose model was asked, so that it can calibrate its token counter."""
    agent = async_find_agent(hass, billed.model.agent_id)
    if agent is not None:
        agent.learn_usage(billed)


@callback
def async_notify_servers(hass: HomeAssistant, outcome: Turn) -> None:
    """Pass the outcome of a turn to the servers of the models that were asked."""
    for failure in outcome.all_failures:
        has_begun = failure.error is outcome.error and outcome.has_answer_begun
        for server in _iter_servers(hass, failure.agent):
            server.on_failed(failure.error, has_begun=has_begun)
    for server in _iter_servers(hass, outcome.answered_by or ""):
        server.on_answered()
        if outcome.billed_requests:
            server.update_context_size(outcome.billed_requests[-1])


def _iter_servers(hass: HomeAssistant, agent_id: str) -> Iterator[AccountServer]:
    accounts: list[AccountConfigEntry] = hass.config_entries.async_loaded_entries(DOMAIN)
    for account in accounts:
        if agent_id in account.subentries and account.runtime_data.server is not None:
            yield account.runtime_data.server


class EntityAgent:
    """A `FallbackAgent` of another integration for one turn, identified by its entity id.

    The agent has a conversation of its own, which contains only the turns that it answered.
    """

    def __init__(self, hass: HomeAssistant, entity_id: str, user_input: ConversationInput) -> None:
        self.agent_id = entity_id
        self._hass = hass
        self._user_input = user_input

    async def answer(self) -> str:
        """Return the agent's answer to the input. Raises `ProviderError` if there is no answer."""
        conversation_id = f"{self._user_input.conversation_id}-{self.agent_id}"
        try:
            response = await async_ask_agent(self._hass, self._user_input, self.agent_id, conversation_id)
        except (HomeAssistantError, ValueError) as err:
            raise Unavailable(f"another agent failed ({type(err).__name__})") from err
        speech = str(response.speech.get("plain", {}).get("speech") or "")
        if response.response_type is IntentResponseType.ERROR or not speech:
            raise Unavailable("another agent had no answer")
        return speech
