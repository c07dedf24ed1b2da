"""The base class of an agent's entities, and the accounts that own the entities of the whole household."""

from collections.abc import Callable, Collection

from homeassistant.config_entries import ConfigEntry, ConfigEntryState, ConfigSubentry
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import device_registry as dr, entity_registry as er
from homeassistant.helpers.device_registry import DeviceEntryType, DeviceInfo
from homeassistant.helpers.entity import Entity
from homeassistant.util.hass_dict import HassKey

from .agents.agent import AccountConfigEntry, Agent
from .const import DOMAIN, FRONTEND, PANEL_PATH

# By platform.
_OWNERSHIP_KEY: HassKey[dict[str, _Ownership]] = HassKey(f"{DOMAIN}_shared_entities")

# An account in one of these states has a platform that entities can be added to.
_READY_STATES = (ConfigEntryState.SETUP_IN_PROGRESS, ConfigEntryState.LOADED)


class AgentEntity(Entity):
    """Base class of the entities on an agent's device."""

    _attr_has_entity_name = True
    _attr_should_poll = False

    def __init__(self, agent: Agent, subentry: ConfigSubentry) -> None:
        self.agent = agent
        has_page = FRONTEND in agent.hass.config.components and agent.id in agent.entry.runtime_data.agents
        self._attr_device_info = DeviceInfo(
            identifiers={(DOMAIN, subentry.subentry_id)},
            name=subentry.title,
            manufacturer="Windowed Conversation",
            model=agent.config.model or None,
            entry_type=DeviceEntryType.SERVICE,
            configuration_url=f"homeassistant://{PANEL_PATH}/{agent.id}" if has_page else None,
        )


class _Ownership:
    """The accounts that can own the shared entities of a platform, and the current owner.

    Each account has the function that adds the entities.
    """

    def __init__(self) -> None:
        self.owner: AccountConfigEntry | None = None
        self.candidates: dict[str, tuple[AccountConfigEntry, Callable[[], None]]] = {}


@callback
def async_share_entities(
    hass: HomeAssistant,
    entry: AccountConfigEntry,
    platform: str,
    unique_ids: Collection[str],
    add_entities: Callable[[], None],
) -> None:
    """Let one of the loaded accounts own the entities. `add_entities` is called when this account becomes the owner.

    If the owner is unloaded, disabled or removed, another loaded account becomes the owner. The entries of the
    registries move with it, so that names, settings and history of the entities remain.
    """
    ownership = hass.data.setdefault(_OWNERSHIP_KEY, {}).setdefault(platform, _Ownership())
    ownership.candidates[entry.entry_id] = (entry, add_entities)

    @callback
    def choose_owner() -> None:
        if ownership.owner is not None:
            return
        for candidate, add in ownership.candidates.values():
            if candidate.state in _READY_STATES:
                ownership.owner = candidate
                _move_to_owner(hass, candidate, platform, unique_ids)
                add()
                return

    @callback
    def leave() -> None:
        del ownership.candidates[entry.entry_id]
        if ownership.owner is entry:
            ownership.owner = None
            choose_owner()

    # called when the entities of this account have been removed, and before its entries leave the registries
    entry.async_on_unload(leave)
    choose_owner()


def _move_to_owner(hass: HomeAssistant, owner: ConfigEntry, platform: str, unique_ids: Collection[str]) -> None:
    """Move the registered entities and their device to the new owner."""
    entities, devices = er.async_get(hass), dr.async_get(hass)
    registered = [entities.async_get_entity_id(platform, DOMAIN, unique_id) for unique_id in unique_ids]
    moved = [
        entities.async_update_entity(entity_id, config_entry_id=owner.entry_id) for entity_id in registered if entity_id
    ]
    # the entities have to move first, because a device takes those of its earlier account away with it
    for device_id in {entity.device_id for entity in moved if entity.device_id is not None}:
        devices.async_update_device(device_id, new_config_entry_id=owner.entry_id)
