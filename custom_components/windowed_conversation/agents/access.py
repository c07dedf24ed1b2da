"""The subject of an action and its caller's rights: an agent by its entity, a conversation by its id and user."""

from collections.abc import Iterator
from dataclasses import dataclass

from homeassistant.auth.models import User
from homeassistant.auth.permissions.const import POLICY_CONTROL, POLICY_READ
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.conversation.const import ATTR_CONVERSATION_ID
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import ServiceCall
from homeassistant.exceptions import ServiceValidationError, Unauthorized, UnknownUser
from homeassistant.helpers import entity_registry as er

from ..const import DOMAIN
from ..turn.errors import IdTooLong
from ..turn.scope import WindowKey, check_id
from ..window import Window, WindowStats, is_in_turn
from .agent import AccountConfigEntry, Agent


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation that an action is about."""

    call: ServiceCall
    agent: Agent
    key: str
    window: Window

    def refusal(self, key: str) -> ServiceValidationError:
        """Return the error of an action on this conversation by the key of its translation."""
        return action_error(key, self.call, conversation=self.window.conversation_id)


async def async_readable_conversation(call: ServiceCall) -> Conversation:
    """Return the conversation that an action reads; raises `Unauthorized` and `ServiceValidationError`."""
    return await _async_conversation(await async_readable_agent(call), call)


async def async_controlled_conversation(call: ServiceCall) -> Conversation:
    """Return the conversation that an action changes; raises `Unauthorized` and `ServiceValidationError`."""
    return await _async_conversation(await async_controlled_agent(call), call)


async def async_readable_agent(call: ServiceCall) -> Agent:
    """Return the agent whose conversations an action reads; raises `Unauthorized` and `ServiceValidationError`."""
    await _async_check(call, POLICY_READ)
    return _agent(call)


async def async_controlled_agent(call: ServiceCall) -> Agent:
    """Return the agent whose conversations an action changes; raises `Unauthorized` and `ServiceValidationError`."""
    await _async_check(call, POLICY_CONTROL)
    return _agent(call)


async def async_readable_agents(call: ServiceCall) -> dict[str, Agent]:
    """Return the agent that an action names, or all that its caller may read, by entity id; raises the same."""
    if ATTR_ENTITY_ID in call.data:
        return {call.data[ATTR_ENTITY_ID]: await async_readable_agent(call)}
    user = await async_caller(call, POLICY_READ)
    agents = {}
    for agent in _agents(call):
        entity_id = er.async_get(call.hass).async_get_entity_id(CONVERSATION_DOMAIN, DOMAIN, agent.id)
        if entity_id and (user is None or user.permissions.check_entity(entity_id, POLICY_READ)):
            agents[entity_id] = agent
    return agents


async def async_caller(call: ServiceCall, permission: str) -> User | None:
    """Return the calling user, None for an automation; raises `UnknownUser`."""
    if call.context.user_id is None:
        return None
    user = await call.hass.auth.async_get_user(call.context.user_id)
    if user is None:
        raise UnknownUser(context=call.context, permission=permission)
    return user


def visible_windows(agent: Agent, call: ServiceCall) -> Iterator[tuple[str, WindowStats]]:
    """Yield the figures of the windows that the caller may see, by their keys, newest first.

    A person sees their own conversations and those without an owner; an automation sees all. An action that a model
    calls as a tool is no automation, because the speaker may be unknown.
    """
    user = call.context.user_id
    sees_all = user is None and not is_in_turn()
    for key, stats in agent.windows.stats().items():
        if sees_all or WindowKey.parse(key).user in {None, user}:
            yield key, stats


def checked_id(conversation: str) -> str:
    """Return the id of a conversation as it is; raises `ServiceValidationError`."""
    try:
        check_id(conversation)
    except IdTooLong as err:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="id_too_long") from err
    return conversation


def action_error(key: str, call: ServiceCall, *, conversation: str = "") -> ServiceValidationError:
    """Return the error of an action by the key of its translation."""
    return ServiceValidationError(
        translation_domain=DOMAIN,
        translation_key=key,
        translation_placeholders={"agent": call.data[ATTR_ENTITY_ID], "conversation": conversation},
    )


async def _async_conversation(agent: Agent, call: ServiceCall) -> Conversation:
    """Return the conversation of the id that is given, or the newest one; raises `ServiceValidationError`."""
    wanted = call.data.get(ATTR_CONVERSATION_ID)
    if wanted is not None:
        checked_id(wanted)
    for key, stats in visible_windows(agent, call):
        is_meant = stats.exchange_count if wanted is None else WindowKey.parse(key).conversation == wanted
        if is_meant and (found := await agent.windows.load(key)) is not None:
            return Conversation(call, agent, key, found)
    if wanted is None:
        raise action_error("no_conversation", call)
    raise action_error("unknown_conversation", call, conversation=wanted)


async def _async_check(call: ServiceCall, permission: str) -> None:
    """Raise `Unauthorized` unless the caller may do this to the agent's entity; an automation may do everything."""
    user = await async_caller(call, permission)
    if user is not None and not user.permissions.check_entity(call.data[ATTR_ENTITY_ID], permission):
        raise Unauthorized(context=call.context, entity_id=call.data[ATTR_ENTITY_ID], permission=permission)


def _agent(call: ServiceCall) -> Agent:
    entry = er.async_get(call.hass).async_get(call.data[ATTR_ENTITY_ID])
    if entry is None or entry.platform != DOMAIN or entry.config_subentry_id is None:
        raise action_error("unknown_agent", call)
    for agent in _agents(call):
        if agent.id == entry.config_subentry_id:
            return agent
    raise action_error("agent_not_loaded", call)


def _agents(call: ServiceCall) -> Iterator[Agent]:
    accounts: list[AccountConfigEntry] = call.hass.config_entries.async_loaded_entries(DOMAIN)
    for account in accounts:
        yield from account.runtime_data.agents.values()
