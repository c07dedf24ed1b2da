"""The target of an action (agent, conversation or person), its fields in the schema, and the caller's permissions."""

from contextlib import suppress
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import Any, NamedTuple

from homeassistant.auth.models import User
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.conversation.const import ATTR_CONVERSATION_ID
from homeassistant.core import HomeAssistant, ServiceCall
from homeassistant.exceptions import ServiceValidationError, Unauthorized, UnknownUser
from homeassistant.helpers import config_validation as cv, entity_registry as er
from homeassistant.helpers.target import TargetSelection, async_extract_referenced_entity_ids
from homeassistant.util import dt as dt_util
from homeassistant.util.json import JsonObjectType
import probatio

from ...bridge.errors import build_refusal
from ...bridge.persons import async_find_person
from ...const import ATTR_PERSON, DOMAIN
from ...memory.core import MAX_ID_BYTES, Memory, MemoryUnavailable
from ...turn.errors import IdTooLong
from ...turn.routing import WindowKey, check_id
from ...window import MAX_TOKENS, Window, WindowStats, is_in_turn, is_int_in_range
from ..account import async_run_deferred_work
from ..agent import Agent, async_agent_ids, async_find_agent, async_loaded_agents
from ..store import async_get_store

ATTR_EVERYONE = "everyone"
ATTR_FILENAME = "filename"
ATTR_LIMIT = "limit"
ATTR_SINCE = "since"
ATTR_UNTIL = "until"

NAME_VALIDATOR = probatio.All(cv.string, probatio.Length(min=1, max=MAX_ID_BYTES))
FILENAME_VALIDATOR = probatio.All(cv.string, probatio.Length(min=1, max=4_096))
PERSON_FIELD: dict[Any, Any] = {probatio.Optional(ATTR_PERSON): NAME_VALIDATOR}
# The conversation agents that are the target of an action, also by their device, area or label.
TARGET_FIELDS: dict[Any, Any] = {**cv.ENTITY_SERVICE_FIELDS}
CONVERSATION_FIELDS: dict[Any, Any] = {**TARGET_FIELDS, probatio.Optional(ATTR_CONVERSATION_ID): cv.string}
_TARGET_KEYS = frozenset(str(key) for key in TARGET_FIELDS)


def validate_natural_number(value: object) -> int:
    """Validate and return an integer, also from the text of a template. Raises `probatio.Invalid`."""
    number = value if isinstance(value, int) else cv.positive_int(value)
    if not is_int_in_range(number) or (isinstance(value, float) and value != number):
        raise probatio.Invalid(f"expected a whole number from 0 to {MAX_TOKENS}")
    return number


def _validate_timestamp(value: object) -> float:
    """Return a date and time as a timestamp. The default is Home Assistant's time zone. Raises `probatio.Invalid`."""
    time = cv.datetime(value)
    try:
        return (time if time.tzinfo else time.replace(tzinfo=dt_util.get_default_time_zone())).timestamp()
    except (OSError, OverflowError, ValueError) as err:
        raise probatio.Invalid("expected a time of the calendar") from err


def build_limit_field(most: int, default: int) -> dict[Any, Any]:
    """Return the schema field for the maximum number of results."""
    key = probatio.Optional(ATTR_LIMIT, default=default)
    return {key: probatio.All(validate_natural_number, probatio.Range(min=1, max=most))}


# The start and the end of a time span. Both times belong to it.
SPAN_FIELDS: dict[Any, Any] = {
    probatio.Optional(ATTR_SINCE): _validate_timestamp,
    probatio.Optional(ATTR_UNTIL): _validate_timestamp,
}


def format_iso_time(seconds: float) -> str | None:
    """Return a timestamp as ISO 8601 in Home Assistant's time zone, or None if an import had an impossible one."""
    try:
        return dt_util.as_local(dt_util.utc_from_timestamp(seconds)).isoformat()
    except OSError, OverflowError, ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ConversationTarget:
    """The conversation that an action is about."""

    call: ServiceCall
    entity_id: str
    agent: Agent
    window_key: str
    window: Window

    @property
    def ids(self) -> JsonObjectType:
        """The response fields that identify the agent and the conversation."""
        return {"entity_id": self.entity_id, "conversation_id": self.window.conversation_id}

    def build_refusal(self, key: str) -> ServiceValidationError:
        """Return the error that refuses an action on this conversation, by the key of its translation."""
        return build_refusal(key, agent=self.entity_id, conversation=self.window.conversation_id)


class VisibleWindow(NamedTuple):
    """A window that the caller of an action may see. It was last used `idle` seconds ago."""

    idle: float
    entity_id: str
    agent: Agent
    key: str
    stats: WindowStats


async def async_resolve_conversation(call: ServiceCall, permission: str) -> ConversationTarget:
    """Return the conversation that an action names, or the newest one. Raises the errors of `async_resolve_agents`.

    Raises `ServiceValidationError` if there is none, or if several agents have one of this name.
    """
    wanted = call.data.get(ATTR_CONVERSATION_ID)
    if wanted is not None:
        validate_conversation_id(wanted)
    found = [
        each
        for each in list_visible_windows(await async_resolve_agents(call, permission), call)
        if (each.stats.exchange_count if wanted is None else WindowKey.parse(each.key).conversation == wanted)
    ]
    if wanted is not None and len({each.entity_id for each in found}) > 1:
        raise build_refusal("agent_needed")
    for _, entity_id, agent, key, _ in found:
        if (window := await agent.windows.load(key)) is not None:
            return ConversationTarget(call, entity_id, agent, key, window)
    if wanted is None:
        raise build_refusal("no_conversation")
    raise build_refusal("unknown_conversation", conversation=wanted)


async def async_resolve_agents(call: ServiceCall, permission: str) -> dict[str, Agent]:
    """Return the agents that are an action's target, or else all loaded ones that the caller may use, by entity id.

    Runs the deferred work of ended turns, so that the action sees them. Raises `Unauthorized`, and
    `ServiceValidationError` for an invalid target.
    """
    user = await async_get_caller(call, permission)
    async_run_deferred_work(call.hass)
    if not has_target(call):
        return {
            entity_id: agent
            for agent in async_loaded_agents(call.hass)
            if (entity_id := find_permitted_entity(call.hass, user, agent.id, permission)) is not None
        }
    targets = _find_target_entity_ids(call)
    for entity_id in targets:
        if user is not None and not user.permissions.check_entity(entity_id, permission):
            raise Unauthorized(context=call.context, entity_id=entity_id, permission=permission)
    return {entity_id: _get_loaded_agent(call.hass, entity_id) for entity_id in targets}


def has_target(call: ServiceCall) -> bool:
    """Return whether an action names its target, even if that is empty."""
    return not _TARGET_KEYS.isdisjoint(call.data)


def _find_target_entity_ids(call: ServiceCall) -> list[str]:
    """Return the target's entity ids: those named, and our agents' in what else is named. Raises a refusal if none."""
    selected = async_extract_referenced_entity_ids(call.hass, TargetSelection(dict(call.data)))
    registry = er.async_get(call.hass)
    inside = {each for each in selected.indirectly_referenced if _is_agent(registry.async_get(each))}
    if not (found := sorted(selected.referenced | inside)):
        named = [str(call.data[key]) for key in _TARGET_KEYS if key in call.data]
        raise build_refusal("unknown_agent", agent=", ".join(named))
    return found


def _is_agent(entry: er.RegistryEntry | None) -> bool:
    return (
        entry is not None
        and entry.platform == DOMAIN
        and entry.domain == CONVERSATION_DOMAIN
        and entry.config_subentry_id is not None
    )


def _get_loaded_agent(hass: HomeAssistant, entity_id: str) -> Agent:
    entry = er.async_get(hass).async_get(entity_id)
    if entry is None or entry.config_subentry_id is None or not _is_agent(entry):
        raise build_refusal("unknown_agent", agent=entity_id)
    if (agent := async_find_agent(hass, entry.config_subentry_id)) is None:
        raise build_refusal("agent_not_loaded", agent=entity_id)
    return agent


async def async_get_caller(call: ServiceCall, permission: str) -> User | None:
    """Return the user who called the action, or None for an automation. Raises `UnknownUser`."""
    if call.context.user_id is None:
        return None
    user = await call.hass.auth.async_get_user(call.context.user_id)
    if user is None:
        raise UnknownUser(context=call.context, permission=permission)
    return user


def find_permitted_entity(hass: HomeAssistant, user: User | None, agent_id: str, permission: str) -> str | None:
    """Return the entity id of an agent, or None if it has no entity or the user lacks the permission for it."""
    entity_id = er.async_get(hass).async_get_entity_id(CONVERSATION_DOMAIN, DOMAIN, agent_id)
    is_permitted = entity_id and (user is None or user.permissions.check_entity(entity_id, permission))
    return entity_id if is_permitted else None


def list_visible_windows(agents: dict[str, Agent], call: ServiceCall) -> list[VisibleWindow]:
    """Return the windows of these agents that the caller may see, newest first.

    A person sees their own conversations and those without an owner; an automation sees all. An action that a model
    calls as a tool does not count as an automation, because the speaker may be unknown.
    """
    user = call.context.user_id
    sees_all = user is None and not is_in_turn()
    by_agent = [
        [
            VisibleWindow(agent.windows.idle_seconds(key), entity_id, agent, key, stats)
            for key, stats in agent.windows.stats().items()
            if sees_all or WindowKey.parse(key).user in {None, user}
        ]
        for entity_id, agent in agents.items()
    ]
    # this keeps the order of each agent's windows, which does not depend on the clock
    return [*merge(*by_agent, key=attrgetter("idle"))]


def validate_conversation_id(conversation: str) -> str:
    """Return a conversation id unchanged. Raises `ServiceValidationError` if it is too long."""
    try:
        check_id(conversation)
    except IdTooLong as err:
        raise build_refusal("id_too_long") from err
    return conversation


@dataclass(frozen=True, slots=True)
class PersonTarget:
    """The person whose memory or turns an action concerns."""

    # None concerns only those of the home.
    person: str | None
    name: str | None
    # Whether the caller is that person and may see private data. False inside a turn, because the result of a model's
    # tool may enter a shared window.
    can_see_private: bool
    # Whether the caller named the person explicitly.
    is_named: bool


async def async_resolve_person(call: ServiceCall, permission: str, *, needs_admin: bool = False) -> PersonTarget:
    """Return the person that an action concerns. Raises `Unauthorized` and `ServiceValidationError`.

    Users act for themselves. Administrators and automations may also name another person, `everyone` or a file. Runs
    the deferred work of ended turns, so that the action sees them.
    """
    user, data = await async_get_caller(call, permission), call.data
    own, name = await async_find_person(call.hass, call.context.user_id) or (None, None)
    named = data.get(ATTR_PERSON)
    person = own if named is None else await _async_find_user_id(call.hass, named)
    needs_admin = needs_admin or person != own or data.get(ATTR_EVERYONE, False) or ATTR_FILENAME in data
    # all agents share the memory
    can_use_memory = any(
        find_permitted_entity(call.hass, user, agent, permission) for agent in async_agent_ids(call.hass)
    )
    if user is not None and ((needs_admin and not user.is_admin) or not can_use_memory):
        raise Unauthorized(context=call.context, permission=permission)
    if named is not None and person is None:
        raise build_refusal("memory_unknown_person", person=named)
    if named is not None and data.get(ATTR_EVERYONE):
        raise build_refusal("memory_person_or_everyone")
    if person != own:
        _, name = await async_find_person(call.hass, person) or (None, None)
    is_own = person is not None and person == own and not is_in_turn()
    async_run_deferred_work(call.hass)
    return PersonTarget(person, name, can_see_private=is_own, is_named=named is not None)


async def _async_find_user_id(hass: HomeAssistant, named: str) -> str | None:
    """Return the user id of a person entity, or the given user id if it is known, or else None.

    An id is also known if its user was removed but still owns something in the store.
    """
    state = hass.states.get(named) if named.startswith("person.") else None
    person, _ = await async_find_person(hass, state.attributes.get("user_id") if state else named) or (None, None)
    if person is None and (store := async_get_store(hass)) is not None:
        with suppress(MemoryUnavailable):
            return named if named in await store.async_read(Memory.get_owner_ids, frozenset[str]()) else None
    return person
