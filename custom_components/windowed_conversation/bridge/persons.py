"""Who speaks, as memory and prompts know it: people who sign in, and no users of integrations."""

from typing import NamedTuple

from homeassistant.components.conversation import ConversationInput
from homeassistant.core import HomeAssistant

from ..turn.context import plain_name, readable
from ..turn.speaker import Speaker


class Person(NamedTuple):
    """A person: the id of their user, and their name if they have one."""

    id: str
    name: str | None


async def async_person(hass: HomeAssistant, user_id: str | None) -> Person | None:
    """Return whose user this is, or None for an unknown one and for those that Home Assistant has made for itself."""
    user = await hass.auth.async_get_user(user_id) if user_id else None
    if user is None or user.system_generated:
        return None
    return Person(user.id, plain_name(user.name or "") or None)


async def async_speaker(hass: HomeAssistant, user_input: ConversationInput) -> Speaker:
    """Return who speaks; in which window is not known yet."""
    person = await async_person(hass, user_input.context.user_id)
    return Speaker(
        said=readable(user_input.text),
        language=user_input.language,
        person=person and person.id,
        name=person and person.name,
        device=user_input.satellite_id or user_input.device_id,
    )
