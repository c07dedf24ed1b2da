"""Keeps Home Assistant's sentence matching prepared, so that no command waits for it."""

from collections.abc import Callable
import logging
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.components.homeassistant.exposed_entities import async_listen_entity_updates
from homeassistant.core import CALLBACK_TYPE, Event, HomeAssistant, callback
from homeassistant.helpers import (
    area_registry as ar,
    device_registry as dr,
    entity_registry as er,
    floor_registry as fr,
)
from homeassistant.helpers.debounce import Debouncer

_LOGGER = logging.getLogger(__name__)

# The names are collected in the event loop, in 0.2 seconds for 2000 entities: once after many changes, not after each.
_QUIET_SECONDS = 5.0

_CHANGES = (
    ar.EVENT_AREA_REGISTRY_UPDATED,
    dr.EVENT_DEVICE_REGISTRY_UPDATED,
    er.EVENT_ENTITY_REGISTRY_UPDATED,
    fr.EVENT_FLOOR_REGISTRY_UPDATED,
)


async def async_prepare_sentences(hass: HomeAssistant, language: str | None = None) -> None:
    """Load the sentences of a language, and collect the names of areas and exposed entities if they have changed."""
    own_agent = async_get_agent(hass)
    if own_agent is not None:
        await own_agent.async_prepare(language)


@callback
def async_keep_prepared(hass: HomeAssistant) -> CALLBACK_TYPE:
    """Collect the names again after each change. Return a function that stops this."""

    async def prepare() -> None:
        await async_prepare_sentences(hass)

    debouncer = Debouncer(hass, _LOGGER, cooldown=_QUIET_SECONDS, immediate=False, function=prepare, background=True)

    @callback
    def changed(_event: Event[Any] | None = None) -> None:
        debouncer.async_schedule_call()

    stops: list[Callable[[], None]] = [hass.bus.async_listen(event, changed) for event in _CHANGES]
    stops.append(async_listen_entity_updates(hass, conversation.DOMAIN, changed))

    @callback
    def stop() -> None:
        for each in (*stops, debouncer.async_shutdown):
            each()

    return stop
