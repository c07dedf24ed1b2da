"""The reach of a speaker with limits, decided by the targets of a sentence, of an intent and of a tool call.

An action whose targets cannot be determined is refused: scripts, automations, the sentence triggers of users, and
intents of unknown kinds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeassistant.components.conversation import DOMAIN as CONVERSATION, ConversationInput
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er, intent, llm

from ..const import DOMAIN
from ..memory.turn.speaker import Permission
from . import openings
from .tools import read_annotations, unwrap_tool

# Intents that say something and change nothing.
_TALKING_INTENTS = ("HassNevermind", "HassRespond", "HassGetCurrentDate", "HassGetCurrentTime", "HassGetWeather")
# The modules of the handlers whose actions are known, of those for timers on the speaker's device, and of users' own.
_KNOWN_MODULES, _TIMERS_MODULE = "homeassistant.components.", "homeassistant.components.intent.timers"
_SCRIPTS_MODULE = "homeassistant.components.intent_script"
# Domains whose entities may do anything.
_OPAQUE_DOMAINS = ("automation", "script")


@dataclass(frozen=True, slots=True)
class Reach:
    """The entities, tools and intents that the speaker of an input may use. Without limits, they may use all."""

    hass: HomeAssistant
    user_input: ConversationInput
    limits: frozenset[Permission]

    @property
    def sees(self) -> Callable[[str], bool] | None:
        """The function that returns whether an entity with an id may be seen, or None if all may."""
        return self.has_entity if self.limits else None

    @property
    def is_talk_only(self) -> bool:
        """Whether the speaker may neither control nor see anything in the home."""
        return Permission.TALK in self.limits

    def has_entity(self, entity_id: str, depth: int = openings.MAX_DEPTH) -> bool:
        """Return whether the limits allow an entity and each one in its group or scene."""
        state = self.hass.states.get(entity_id)
        if self.is_talk_only or state is None or state.domain in _OPAQUE_DOMAINS or not depth:
            return False
        if Permission.NO_LOCKS in self.limits and openings.guards_house(self.hass, state):
            return False
        members = state.attributes.get(ATTR_ENTITY_ID)
        if members and isinstance(members, (list, tuple)):
            return all(self.has_entity(each, depth - 1) for each in members)
        if state.domain == "scene" or Permission.OWN_AREA not in self.limits:
            return state.domain != "scene"
        entry = er.async_get(self.hass).async_get(entity_id)
        area_id = er.async_get_effective_area_id(self.hass, entry) if entry else None
        return area_id is not None and area_id == openings.find_area_id(self.hass, self.user_input)

    def has_tool(self, tool: llm.Tool) -> bool:
        """Return whether a tool may be offered. Our own tools only show entities that the limits allow."""
        if not self.limits or tool.integration == DOMAIN:
            return True
        if self.is_talk_only or isinstance(unwrap_tool(tool), llm.IntentTool):
            return not self.is_talk_only
        is_reading = read_annotations(tool).read_only and tool.integration != "homeassistant"
        return is_reading and Permission.OWN_AREA not in self.limits

    async def async_has_call(self, api: llm.APIInstance, call: llm.ToolInput) -> bool:
        """Return whether the limits allow a call of a tool."""
        tool = next((each for each in api.tools if each.name == call.tool_name), None)
        if tool is None or not self.has_tool(tool):
            return tool is None
        origin = unwrap_tool(tool)
        if not isinstance(origin, llm.IntentTool):
            return True
        return await self.async_has_intent(origin.intent_type, openings.get_call_slots(api, call))

    async def async_has_no_trigger(self) -> bool:
        """Return whether the input matches no sentence trigger of a user, which may do anything."""
        agent: Any = async_get_agent(self.hass)
        return await agent.async_recognize_sentence_trigger(self.user_input) is None

    async def async_has_loose_intents(self) -> bool:
        """Return whether the limits allow all that Home Assistant's own agent would do for the input."""
        found = await openings.async_find_loose_intents(self.hass, self.user_input)
        return all([await self.async_has_intent(name, slots) for name, slots in found])

    async def async_has_intent(self, name: str, slots: Mapping[str, Any]) -> bool:
        """Return whether the limits allow an intent with these slots."""
        if not self.limits or name in _TALKING_INTENTS:
            return True
        if self.is_talk_only:
            return False
        if name == intent.INTENT_START_TIMER and (command := slots.get(openings.COMMAND_SLOT)):
            later = replace(self, user_input=replace(self.user_input, text=str(command)))
            is_known = bool(await openings.async_find_loose_intents(self.hass, later.user_input))
            return is_known and await later.async_has_no_trigger() and await later.async_has_loose_intents()
        targets = await openings.async_find_targets(self.hass, name, slots, self.user_input)
        if targets is None:
            return self._has_own_way(name, slots)
        return all(self.has_entity(state.entity_id) for state, _, _ in targets)

    def _has_own_way(self, name: str, slots: Mapping[str, Any]) -> bool:
        """Return whether the limits allow every target that an intent may have, if its handler finds targets itself."""
        module = next((type(each).__module__ for each in intent.async_get(self.hass) if each.intent_type == name), "")
        if not module.startswith(_KNOWN_MODULES) or module == _SCRIPTS_MODULE:
            return False
        if module == _TIMERS_MODULE or (self.limits == {Permission.NO_LOCKS} and name != intent.INTENT_GET_STATE):
            return True
        called = slots.get("name")
        constraints = intent.MatchTargetsConstraints(
            name=None if called == openings.EVERY_NAME else called,
            area_name=slots.get("area"),
            floor_name=slots.get("floor"),
            domains=_as_set(slots.get("domain")),
            device_classes=_as_set(slots.get("device_class")),
            assistant=CONVERSATION,
            allow_duplicate_names=True,
        )
        states = intent.async_match_targets(self.hass, constraints).states
        return bool(states) and all(self.has_entity(each.entity_id) for each in states)


def _as_set(value: Any) -> set[str] | None:
    return {value} if isinstance(value, str) else set(value or ()) or None
