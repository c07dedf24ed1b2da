"""The base class of an agent's entities, which sets their device and name."""

from homeassistant.config_entries import ConfigSubentry
from homeassistant.helpers.device_registry import DeviceEntryType, DeviceInfo
from homeassistant.helpers.entity import Entity

from .agents.agent import Agent
from .const import DOMAIN


class AgentEntity(Entity):
    """Base class of the entities on an agent's device."""

    _attr_has_entity_name = True
    _attr_should_poll = False

    def __init__(self, agent: Agent, subentry: ConfigSubentry) -> None:
        self.agent = agent
        self._attr_device_info = DeviceInfo(
            identifiers={(DOMAIN, subentry.subentry_id)},
            name=subentry.title,
            manufacturer="Windowed Conversation",
            model=agent.config.model or None,
            entry_type=DeviceEntryType.SERVICE,
        )
