"""The target of an action (agent, conversation or person), its fields in the schema, and the caller's permissions."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from homeassistant.auth.models import User
from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.conversation.const import ATTR_CONVERSATION_ID
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, ServiceCall
from homeassistant.exceptions import ServiceValidationError, Unauthorized, UnknownUser
from homeassistant.helpers import config_validation as cv, entity_registry as er
from homeassistant.util import dt as dt_util
import probatio

from ...bridge.errors import refusal
from ...bridge.persons import async_person
from ...const import ATTR_PERSON, DOMAIN
from ...memory import NAME_LENGTH, Memory, MemoryUnavailable
from ...turn.errors import IdTooLong
from ...turn.routing import WindowKey, check_id
from ...window import MAX_COUNT, Window, WindowStats, is_count, is_in_turn
from ..agent import Agent
from ..lookup import async_agent_ids, async_agents, async_find_agent
from ..store import async_store

ATTR_EVERYONE = "everyone"
ATTR_FILENAME = "filename"
ATTR_LIMIT = "limit"
ATTR_SINCE = "since"
ATTR_UNTIL = "until"

NAME = probatio.All(cv.string, probatio.Length(min=1, max=NAME_LENGTH))
FILENAME = probatio.All(cv.string, probatio.Length(min=1, max=4_096))
PERSON_FIELD: dict[Any, Any] = {probatio.Optional(ATTR_PERSON): NAME}
CONVERSATION_FIELDS: dict[Any, Any] = {
    probatio.Required(ATTR_ENTITY_ID): cv.entity_id,
    probatio.Optional(ATTR_CONVERSATION_ID): cv.string,
}


def natural_number(value: object) -> int:
    """Validate and return an integer, also from the text of a template. Raises `probatio.Invalid`."""
    number = value if isinstance(value, int) else cv.positive_int(value)
    if not is_count(number) or (isinstance(value, float) and value != number):
        raise probatio.Invalid(f"expected a whole number from 0 to {MAX_COUNT}")
    return number


def _seconds(value: object) -> float:
    """Return a date and time as a timestamp. The default is Home Assistant's time zone. Raises `probatio.Invalid`."""
    time = cv.datetime(value)
    try:
        return (time if time.tzinfo else time.replace(tzinfo=dt_util.get_default_time_zone())).timestamp()
    except (OSError, OverflowError, ValueError) as err:
        raise probatio.Invalid("expected a time of the calendar") from err


def limit_field(most: int, default: int) -> dict[Any, Any]:
    """Return the schema field for the maximum number of results."""
    key = probatio.Optional(ATTR_LIMIT, default=default)
    return {key: probatio.All(natural_number, probatio.Range(min=1, max=most))}


def span_fields(end: str) -> dict[Any, Any]:
    """Return the schema fields for the start of a time span, and for its end, which is named `end`."""
    return {probatio.Optional(ATTR_SINCE): _seconds, probatio.Optional(end): _seconds}


def iso_time(seconds: float) -> str | None:
    """Return a timestamp as ISO 8601 in Home Assistant's time zone, or None if an import had an impossible one."""
    try:
        return dt_util.as_local(dt_util.utc_from_timestamp(seconds)).isoformat()
    except OSError, OverflowError, ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ConversationTarget:
    """The conversation that an action is about."""

    call: ServiceCall
    agent: Agent
    key: str
    window: Window

    def refusal(self, key: str) -> ServiceValidationError:
        """Return the error that refuses an action on this conversation, by the key of its translation."""
        return agent_refusal(key, self.call, conversation=self.window.conversation_id)


async def async_conversation(call: ServiceCall, permission: str) -> ConversationTarget:
    """Return the conversation that an action names, or else the newest one. Raises the errors of `async_agent`."""
    agent = await async_agent(call, permission)
    wanted = call.data.get(ATTR_CONVERSATION_ID)
    if wanted is not None:
        checked_id(wanted)
    for key, stats in visible_windows(agent, call):
        matches = stats.exchange_count if wanted is None else WindowKey.parse(key).conversation == wanted
        if matches and (window := await agent.windows.load(key)) is not None:
            return ConversationTarget(call, agent, key, window)
    if wanted is None:
        raise agent_refusal("no_conversation", call)
    raise agent_refusal("unknown_conversation", call, conversation=wanted)


async def async_agent(call: ServiceCall, permission: str) -> Agent:
    """Return the agent that an action names. Raises `Unauthorized` and `ServiceValidationError`."""
    entity_id, user = call.data[ATTR_ENTITY_ID], await async_caller(call, permission)
    if user is not None and not user.permissions.check_entity(entity_id, permission):
        raise Unauthorized(context=call.context, entity_id=entity_id, permission=permission)
    entry = er.async_get(call.hass).async_get(entity_id)
    if entry is None or entry.platform != DOMAIN or entry.config_subentry_id is None:
        raise agent_refusal("unknown_agent", call)
    if (agent := async_find_agent(call.hass, entry.config_subentry_id)) is None:
        raise agent_refusal("agent_not_loaded", call)
    return agent


async def async_readable_agents(call: ServiceCall) -> dict[str, Agent]:
    """Return the agent that an action names, or else all agents that its caller may read, by entity id.

    Raises the errors of `async_agent`.
    """
    if ATTR_ENTITY_ID in call.data:
        return {call.data[ATTR_ENTITY_ID]: await async_agent(call, POLICY_READ)}
    user = await async_caller(call, POLICY_READ)
    found = ((permitted_entity(call.hass, user, agent.id, POLICY_READ), agent) for agent in async_agents(call.hass))
    return {entity_id: agent for entity_id, agent in found if entity_id is not None}


async def async_caller(call: ServiceCall, permission: str) -> User | None:
    """Return the user who called the action, or None for an automation. Raises `UnknownUser`."""
    if call.context.user_id is None:
        return None
    user = await call.hass.auth.async_get_user(call.context.user_id)
    if user is None:
        raise UnknownUser(context=call.context, permission=permission)
    return user


def permitted_entity(hass: HomeAssistant, user: User | None, agent_id: str, permission: str) -> str | None:
    """Return the entity id of an agent, or None if it has no entity or the user lacks the permission for it."""
    entity_id = er.async_get(hass).async_get_entity_id(CONVERSATION_DOMAIN, DOMAIN, agent_id)
    is_permitted = entity_id and (user is None or user.permissions.check_entity(entity_id, permission))
    return entity_id if is_permitted else None


def visible_windows(agent: Agent, call: ServiceCall) -> Iterator[tuple[str, WindowStats]]:
    """Yield the key and the statistics of each window that the caller may see, newest first.

    A person sees their own conversations and those without an owner; an automation sees all. An action that a model
    calls as a tool does not count as an automation, because the speaker may be unknown.
    """
    user = call.context.user_id
    sees_all = user is None and not is_in_turn()
    for key, stats in agent.windows.stats().items():
        if sees_all or WindowKey.parse(key).user in {None, user}:
            yield key, stats


def checked_id(conversation: str) -> str:
    """Return a conversation id unchanged. Raises `ServiceValidationError` if it is too long."""
    try:
        check_id(conversation)
    except IdTooLong as err:
        raise refusal("id_too_long") from err
    return conversation


def agent_refusal(key: str, call: ServiceCall, *, conversation: str = "") -> ServiceValidationError:
    """Return the error that refuses an action on an agent, by the key of its translation."""
    return refusal(key, agent=call.data[ATTR_ENTITY_ID], conversation=conversation)


@dataclass(frozen=True, slots=True)
class PersonTarget:
    """The person whose memory or turns an action concerns. If `person` is None, it concerns only those of the home.

    `is_own` is true if the caller is that person and may see private data. It is false inside a turn, because the
    result of a model's tool may enter a shared window. `is_named` is true if the caller named the person explicitly.
    """

    person: str | None
    name: str | None
    is_own: bool
    is_named: bool


async def async_person_target(call: ServiceCall, permission: str, *, needs_admin: bool = False) -> PersonTarget:
    """Return the person that an action concerns. Raises `Unauthorized` and `ServiceValidationError`.

    Users act for themselves. Administrators and automations may also name another person, `everyone` or a file.
    """
    user, data = await async_caller(call, permission), call.data
    own, name = await async_person(call.hass, call.context.user_id) or (None, None)
    named = data.get(ATTR_PERSON)
    person = own if named is None else await _async_user_id(call.hass, named)
    needs_admin = needs_admin or person != own or data.get(ATTR_EVERYONE, False) or ATTR_FILENAME in data
    if user is not None and not _may_use_memory(call.hass, user, permission, needs_admin=needs_admin):
        raise Unauthorized(context=call.context, permission=permission)
    if named is not None and person is None:
        raise refusal("memory_unknown_person", person=named)
    if named is not None and data.get(ATTR_EVERYONE):
        raise refusal("memory_person_or_everyone")
    if person != own:
        _, name = await async_person(call.hass, person) or (None, None)
    is_own = person is not None and person == own and not is_in_turn()
    return PersonTarget(person, name, is_own=is_own, is_named=named is not None)


def _may_use_memory(hass: HomeAssistant, user: User, permission: str, *, needs_admin: bool) -> bool:
    """Return whether a user may read or control at least one of our agents, which all share the memory."""
    if needs_admin and not user.is_admin:
        return False
    return any(permitted_entity(hass, user, agent, permission) for agent in async_agent_ids(hass))


async def _async_user_id(hass: HomeAssistant, named: str) -> str | None:
    """Return the user id of a person entity, or the given user id if it is known, or else None.

    An id is also known if its user was removed but still owns something in the store.
    """
    state = hass.states.get(named) if named.startswith("person.") else None
    person, _ = await async_person(hass, state.attributes.get("user_id") if state else named) or (None, None)
    if person is None and (store := async_store(hass)) is not None:
        with suppress(MemoryUnavailable):
            return named if named in await store.async_read(Memory.people, frozenset[str]()) else None
    return person
