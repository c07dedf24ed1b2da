"""Who reads the record of turns: whose figures they see, and whose words."""

from dataclasses import dataclass

from homeassistant.auth.models import User
from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, ServiceCall
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers import entity_registry as er

from ..const import DOMAIN
from ..memory import TurnRecord
from ..window import is_in_turn
from .access import async_caller, async_readable_agent
from .lookup import async_agent_ids
from .memory_rights import async_whose


@dataclass(frozen=True, slots=True)
class Reader:
    """Who performs an action on the record.

    They see the figures of the turns of `people`, None among them for unknown speakers, with `agents`; None stands for
    all. They read the words in the turns of `readable`, with None for unknown speakers.
    """

    readable: frozenset[str | None]
    people: frozenset[str | None] | None
    agents: frozenset[str] | None

    def sees(self, turn: TurnRecord) -> bool:
        """Return whether they see the figures of a turn."""
        is_theirs = self.people is None or turn.person in self.people
        return is_theirs and (self.agents is None or turn.agent in self.agents)

    def reads(self, turn: TurnRecord) -> bool:
        """Return whether they also read its words."""
        return self.sees(turn) and turn.person in self.readable


async def async_reader(call: ServiceCall, *, is_for_trusted: bool = False) -> Reader:
    """Return whose turns an action is about; raises `Unauthorized` and `ServiceValidationError`.

    People see their own turns and those of unknown speakers, administrators and automations everybody's. What a model
    has started as a tool sees nobody else's figures, and no words: people may share the window of its response.
    """
    whose = await async_whose(call, POLICY_READ, is_for_trusted=is_for_trusted)
    user, own = await async_caller(call, POLICY_READ), call.context.user_id
    is_free = not is_in_turn()
    if whose.is_named and whose.person != own and not is_free:
        raise Unauthorized(context=call.context, permission=POLICY_READ)
    theirs: frozenset[str | None] = frozenset({own, None})
    people: frozenset[str | None] | None = theirs
    if whose.is_named:
        people = frozenset({whose.person})
    elif is_free and (user is None or user.is_admin):
        people = None
    return Reader(theirs if is_free else frozenset(), people, await _async_agents(call, user))


async def _async_agents(call: ServiceCall, user: User | None) -> frozenset[str] | None:
    """Return the agent that the action names, or those that its caller may read, None for all of them."""
    if ATTR_ENTITY_ID in call.data:
        return frozenset({(await async_readable_agent(call)).id})
    if user is None or user.is_admin:
        return None
    return frozenset(each for each in async_agent_ids(call.hass) if _may_read(call.hass, user, each))


def _may_read(hass: HomeAssistant, user: User, agent: str) -> bool:
    entity_id = er.async_get(hass).async_get_entity_id(CONVERSATION_DOMAIN, DOMAIN, agent)
    return entity_id is not None and user.permissions.check_entity(entity_id, POLICY_READ)
