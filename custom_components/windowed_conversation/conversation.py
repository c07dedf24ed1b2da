"""The conversation entity of an agent: declares its features and forwards the user's inputs to it."""

from typing import Literal, override

from homeassistant.components.conversation import (
    ConversationEntity,
    ConversationEntityFeature,
    ConversationInput,
    ConversationResult,
)
from homeassistant.config_entries import ConfigSubentry
from homeassistant.const import MATCH_ALL, STATE_UNAVAILABLE, STATE_UNKNOWN
from homeassistant.core import HomeAssistant
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback

from .agents.agent import AccountConfigEntry, Agent
from .agents.hand_over import async_fire_lost_answers
from .agents.local_intents import async_keep_sentences_prepared, async_load_requests, async_prepare_sentences
from .agents.turns import async_take_turn
from .const import SUBENTRY_CONVERSATION
from .entity import AgentEntity
from .turn.routing import RoutingMode

PARALLEL_UPDATES = 0


async def async_setup_entry(
    hass: HomeAssistant, entry: AccountConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add a conversation entity for each agent."""
    for subentry in entry.get_subentries_of_type(SUBENTRY_CONVERSATION):
        agent = entry.runtime_data.agents[subentry.subentry_id]
        async_add_entities([WindowedConversationEntity(agent, subentry)], config_subentry_id=subentry.subentry_id)


class WindowedConversationEntity(AgentEntity, ConversationEntity):
    """The conversation entity of an agent, which people and automations talk to."""

    _attr_name = None
    _attr_supports_streaming = True

    def __init__(self, agent: Agent, subentry: ConfigSubentry) -> None:
        super().__init__(agent, subentry)
        self._attr_unique_id = subentry.subentry_id
        if agent.config.llm_apis or agent.config.routing is RoutingMode.LOCAL_ONLY:
            self._attr_supported_features = ConversationEntityFeature.CONTROL

    @override
    def _stringify_state(self, available: bool) -> str:
        """Return no state, instead of the time of the last turn.

        With each change of the state, the activity log would have a second line for the turn, which only says that
        there was one.
        """
        return STATE_UNKNOWN if available else STATE_UNAVAILABLE

    @property
    @override
    def supported_languages(self) -> list[str] | Literal["*"]:
        return MATCH_ALL

    @override
    async def async_prepare(self, language: str | None = None) -> None:
        """Give the next turn a head start, and load our and Home Assistant's sentences before they are needed.

        A pipeline calls this when it begins to recognize speech.
        """
        self.agent.give_head_start()
        await async_load_requests(self.hass, language or self.hass.config.language)
        if self.agent.config.routing is not RoutingMode.MODEL_ONLY:
            await async_prepare_sentences(self.hass, language)

    @override
    async def async_added_to_hass(self) -> None:
        """Fire the events of lost answers. Keep sentence matching prepared while an agent answers locally."""
        await super().async_added_to_hass()
        async_fire_lost_answers(self.agent)
        if self.agent.config.routing is not RoutingMode.MODEL_ONLY:
            self.async_on_remove(async_keep_sentences_prepared(self.hass))

    @override
    async def async_process(self, user_input: ConversationInput) -> ConversationResult:
        """Answer a ConversationInput as the next turn of its conversation."""
        return await async_take_turn(self.agent, self.entity_id, user_input)
