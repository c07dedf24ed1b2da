"""Speakers, as memory and prompts know them, the owners of devices, and the places of people in the user's words."""

from collections.abc import Callable, Mapping
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.config_entries import ConfigEntry
from homeassistant.const import STATE_HOME, STATE_NOT_HOME
from homeassistant.core import HomeAssistant, State, callback
from homeassistant.helpers import entity_registry as er, intent
from homeassistant.helpers.translation import async_get_translations

from ..const import ATTR_DEVICE, ATTR_PERSON, CONF_DEVICE_OWNERS, DOMAIN
from ..turn.context import plain_name, readable
from ..turn.speaker import Speaker

_PERSON = "person"
_ZONE = "zone"
_ENTITY_ID_HOME = "zone.home"


class Person(NamedTuple):
    """A person: the id of their user, and their name if they have one."""

    id: str
    name: str | None


async def async_person(hass: HomeAssistant, user_id: str | None) -> Person | None:
    """Return the person of a user, or None for an unknown one and for those that Home Assistant has made for itself."""
    user = await hass.auth.async_get_user(user_id) if user_id else None
    if user is None or user.system_generated:
        return None
    return Person(user.id, plain_name(user.name or "") or None)


async def async_speaker(hass: HomeAssistant, user_input: ConversationInput, owners: Mapping[str, str]) -> Speaker:
    """Return the speaker of an input, without the window yet. `owners` has the users who own devices, by device."""
    person = await async_person(hass, user_input.context.user_id)
    owner = None if person else await async_person(hass, owners.get(_device_id(hass, user_input) or ""))
    person = person or owner
    return Speaker(
        said=readable(user_input.text),
        language=user_input.language,
        person=person and person.id,
        name=person and person.name,
        device=user_input.satellite_id or user_input.device_id,
        by_device=owner is not None,
        has_device=person is not None and person.id in owners.values(),
    )


def _device_id(hass: HomeAssistant, user_input: ConversationInput) -> str | None:
    """Return the device of an input, or that of its satellite."""
    if user_input.device_id or not user_input.satellite_id:
        return user_input.device_id
    satellite = er.async_get(hass).async_get(user_input.satellite_id)
    return satellite.device_id if satellite else None


if TYPE_CHECKING:
    from hassil.models import MatchEntity
    from hassil.recognize import RecognizeResult


@callback
def async_exposed_persons(hass: HomeAssistant) -> list[State]:
    """Return the persons that are exposed to conversation agents."""
    persons = hass.states.async_all(_PERSON)
    return [person for person in persons if async_should_expose(hass, conversation.DOMAIN, person.entity_id)]


async def async_state_at(hass: HomeAssistant, place: str, language: str) -> str | None:
    """Return the state of a person who is at a place, or None if the home has no such place.

    Home Assistant compares the words of the sentence with the state: "zu Hause" with "home", which never match.
    """
    states = _states_by_name(hass)
    for state in (STATE_HOME, STATE_NOT_HOME):
        states.setdefault(_squeezed(state), state)
    if (state_at_place := states.get(_squeezed(place))) is not None:
        return state_at_place
    translated = await async_get_translations(hass, language, "entity_component", [_PERSON])
    for state in (STATE_HOME, STATE_NOT_HOME):
        if _is_end_of(place, translated.get(f"component.{_PERSON}.entity_component._.state.{state}", "")):
            return state
    return None


async def async_put_states(
    hass: HomeAssistant, language: str, result: RecognizeResult
) -> Callable[[RecognizeResult], bool]:
    """Return a filter for `async_handle_intents` that accepts a result and sets states for the places in it."""
    states = {entity.text: await async_state_at(hass, entity.text, language) for entity in _places(result)}

    def put_states(result: RecognizeResult) -> bool:
        for entity in _places(result):
            entity.value = states.get(entity.text) or entity.value
        return False

    return put_states


def _places(result: RecognizeResult) -> list[MatchEntity]:
    if result.intent.name != intent.INTENT_GET_STATE:
        return []
    return [entity for entity in result.entities_list if entity.is_wildcard and entity.name == "state"]


def _states_by_name(hass: HomeAssistant) -> dict[str, str]:
    states = {_squeezed(person.state): person.state for person in async_exposed_persons(hass)}
    for zone in hass.states.async_all(_ZONE):
        states[_squeezed(zone.name)] = STATE_HOME if zone.entity_id == _ENTITY_ID_HOME else zone.name
    return states


def _is_end_of(place: str, name: str) -> bool:
    """Return whether a name ends in the words of a place: the template has consumed "en" of "en casa"."""
    words, ending = _words(name), _words(place)
    return _squeezed(place) == _squeezed(name) or (bool(ending) and words[-len(ending) :] == ending)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _squeezed(text: str) -> str:
    return "".join(_words(text))


@callback
def async_device_owners(hass: HomeAssistant) -> dict[str, str]:
    """Return the users who own devices, by device. The first account that names a device counts."""
    owners: dict[str, str] = {}
    for entry in hass.config_entries.async_entries(DOMAIN):
        for owned in entry.options.get(CONF_DEVICE_OWNERS, ()):
            owners.setdefault(owned[ATTR_DEVICE], owned[ATTR_PERSON])
    return owners


@callback
def async_share_device_owners(hass: HomeAssistant, account: ConfigEntry[Any]) -> None:
    """Have an account keep the list, so that the others can be removed."""
    if owners := async_device_owners(hass):
        hass.config_entries.async_update_entry(account, options=with_device_owners(account.options, owners))


def with_device_owners(options: Mapping[str, Any], owners: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of an account with this list."""
    listed = [{ATTR_DEVICE: device, ATTR_PERSON: person} for device, person in owners.items()]
    others = {name: value for name, value in options.items() if name != CONF_DEVICE_OWNERS}
    return {**others, CONF_DEVICE_OWNERS: listed} if listed else others
