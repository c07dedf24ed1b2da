"""What an action is about, and whether its caller may: an agent by its entity, a conversation by its id and user."""

from homeassistant.auth.permissions.const import POLICY_CONTROL, POLICY_READ
from homeassistant.components.conversation.const import ATTR_CONVERSATION_ID
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import ServiceCall
from homeassistant.exceptions import ServiceValidationError, Unauthorized, UnknownUser
from homeassistant.helpers import entity_registry as er

from ..const import DOMAIN
from ..turn.errors import IdTooLong
from ..turn.scope import WindowKey, check_id
from ..window import Window
from .agent import AccountConfigEntry, Agent


async def async_readable_agent(call: ServiceCall) -> Agent:
    """Return the agent whose conversations an action reads; raises `Unauthorized` and `ServiceValidationError`."""
    await _async_check(call, POLICY_READ)
    return _agent(call)


async def async_controlled_agent(call: ServiceCall) -> Agent:
    """Return the agent whose conversations an action changes; raises `Unauthorized` and `ServiceValidationError`."""
    await _async_check(call, POLICY_CONTROL)
    return _agent(call)


async def _async_check(call: ServiceCall, permission: str) -> None:
    """Raise `Unauthorized` unless the caller may do this to the agent's entity; an automation may do everything."""
    if call.context.user_id is None:
        return
    user = await call.hass.auth.async_get_user(call.context.user_id)
    if user is None:
        raise UnknownUser(context=call.context, permission=permission)
    if not user.permissions.check_entity(call.data[ATTR_ENTITY_ID], permission):
        raise Unauthorized(context=call.context, entity_id=call.data[ATTR_ENTITY_ID], permission=permission)


def _agent(call: ServiceCall) -> Agent:
    entry = er.async_get(call.hass).async_get(call.data[ATTR_ENTITY_ID])
    if entry is None or entry.platform != DOMAIN or entry.config_subentry_id is None:
        raise action_error("unknown_agent", call)
    accounts: list[AccountConfigEntry] = call.hass.config_entries.async_loaded_entries(DOMAIN)
    for account in accounts:
        if agent := account.runtime_data.agents.get(entry.config_subentry_id):
            return agent
    raise action_error("agent_not_loaded", call)


def checked_id(call: ServiceCall, field: str = ATTR_CONVERSATION_ID) -> str:
    """Return the id of a conversation in one of the action's fields; raises `ServiceValidationError`."""
    conversation: str = call.data[field]
    try:
        check_id(conversation)
    except IdTooLong as err:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="id_too_long") from err
    return conversation


def window_key(agent: Agent, call: ServiceCall) -> str:
    """Return the key of the conversation that an action is about; raises `ServiceValidationError`.

    A person's action is about their own conversations and those that are nobody's, an automation's about everybody's.
    """
    wanted, user = checked_id(call), call.context.user_id
    for key in agent.windows.keys_newest_first():
        found = WindowKey.parse(key)
        if found.conversation == wanted and (user is None or found.user in (None, user)):
            return key
    raise action_error("unknown_conversation", call)


def window_of(agent: Agent, call: ServiceCall) -> Window:
    """Return the window that an action is about; raises `ServiceValidationError`."""
    window = agent.windows.peek(window_key(agent, call))
    assert window is not None
    return window


def action_error(key: str, call: ServiceCall, *, conversation: str | None = None) -> ServiceValidationError:
    """Return the error of an action by the key of its translation."""
    return ServiceValidationError(
        translation_domain=DOMAIN,
        translation_key=key,
        translation_placeholders={
            "agent": call.data[ATTR_ENTITY_ID],
            "conversation": conversation or call.data[ATTR_CONVERSATION_ID],
        },
    )
