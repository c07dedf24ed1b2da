"""Speakers, as memory and prompts know them: people who sign in, and no users of integrations."""

from collections.abc import Mapping
from typing import NamedTuple

from homeassistant.components.conversation import ConversationInput
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er

from ..turn.context import plain_name, readable
from ..turn.speaker import Speaker


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
