"""The caller of an action on memory, the person whose memory it is about, and the caller's rights."""

from contextlib import suppress
from dataclasses import dataclass

from homeassistant.auth.models import User
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.core import HomeAssistant, ServiceCall
from homeassistant.exceptions import ServiceValidationError, Unauthorized
from homeassistant.helpers import entity_registry as er

from ..bridge.memory_action_schemas import ATTR_EVERYONE, ATTR_FILENAME, ATTR_PERSON
from ..bridge.persons import async_person
from ..const import DOMAIN
from ..memory import Memory, MemoryUnavailable
from ..window import is_in_turn
from .access import async_caller
from .lookup import async_agent_ids
from .store import async_store

# the domain of Home Assistant's person entities
_PERSON = "person"
_USER_ID = "user_id"


@dataclass(frozen=True, slots=True)
class Whose:
    """The memory that an action is about: a person's and the home's, or the home's only if `person` is None.

    `is_own`: whether the caller is that person and may see private things. It is False inside a turn, because the
    result of a model's tool may enter a shared window. `is_named`: whether the caller has named the person.
    """

    person: str | None
    name: str | None
    is_own: bool
    is_named: bool


async def async_whose(call: ServiceCall, permission: str, *, is_for_trusted: bool = False) -> Whose:
    """Return the `Whose` of an action on memory; raises `Unauthorized` and `ServiceValidationError`.

    People act for themselves. Administrators and automations may also name a person, `everyone` and a file.
    """
    user = await async_caller(call, permission)
    own, name = await async_person(call.hass, call.context.user_id) or (None, None)
    named = call.data.get(ATTR_PERSON)
    person = own if named is None else await _async_named(call.hass, named)
    asked = call.data
    needs_trust = is_for_trusted or person != own or asked.get(ATTR_EVERYONE, False) or ATTR_FILENAME in asked
    if user is not None and not _may(call.hass, user, permission, needs_trust=needs_trust):
        raise Unauthorized(context=call.context, permission=permission)
    if named is not None and person is None:
        raise memory_error("memory_unknown_person", person=named)
    if named is not None and call.data.get(ATTR_EVERYONE):
        raise memory_error("memory_person_or_everyone")
    if person != own:
        _, name = await async_person(call.hass, person) or (None, None)
    return Whose(
        person, name, is_own=person is not None and person == own and not is_in_turn(), is_named=named is not None
    )


def memory_error(key: str, **placeholders: str) -> ServiceValidationError:
    """Return the error of an action on memory by the key of its translation."""
    return ServiceValidationError(translation_domain=DOMAIN, translation_key=key, translation_placeholders=placeholders)


def _may(hass: HomeAssistant, user: User, permission: str, *, needs_trust: bool) -> bool:
    """Return whether somebody may read or control one of our agents, which share the memory."""
    if needs_trust and not user.is_admin:
        return False
    registry = er.async_get(hass)
    found = (registry.async_get_entity_id(CONVERSATION_DOMAIN, DOMAIN, each) for each in async_agent_ids(hass))
    return any(entity_id and user.permissions.check_entity(entity_id, permission) for entity_id in found)


async def _async_named(hass: HomeAssistant, named: str) -> str | None:
    """Return the user of a person's entity, or the user of this id; None if there is none.

    Somebody who was removed and still owns something in the store is found by the id.
    """
    state = hass.states.get(named) if named.startswith(f"{_PERSON}.") else None
    person, _ = await async_person(hass, state.attributes.get(_USER_ID) if state else named) or (None, None)
    if person is None and (store := async_store(hass)) is not None:
        with suppress(MemoryUnavailable):
            return named if named in await store.async_read(Memory.people, frozenset[str]()) else None
    return person
