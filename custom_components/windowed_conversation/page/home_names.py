"""The names of a home, and the comparison of a tool call with Home Assistant's own match of a sentence."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hassil.recognize import RecognizeResult
from homeassistant.components import conversation
from homeassistant.core import HomeAssistant, State
from homeassistant.helpers import area_registry as ar, entity_registry as er, floor_registry as fr, intent

# The slots that select entities; all others are values.
TARGET_SLOTS = frozenset({"name", "area", "floor", "domain", "device_class", "preferred_area_id", "preferred_floor_id"})
_PLACE_SLOTS = frozenset({"name", "area", "floor"})
# Each takes up to a tenth of a millisecond.
_ENTITIES_PER_STEP = 100
_MAX_TARGET_VALUES = 20


@dataclass(frozen=True, slots=True)
class Command:
    """A tool that a model called, and its arguments, or None if they are unknown or there were several calls."""

    tool: str
    arguments: Mapping[str, Any] | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The arguments that select no entity, such as a brightness."""
        return {name: value for name, value in (self.arguments or {}).items() if name not in TARGET_SLOTS}


@dataclass(frozen=True, slots=True)
class Target:
    """The entity or the area that a command is about. `alias` is another name that it might get."""

    name: str
    entity_id: str | None = None
    area_id: str | None = None
    alias: str | None = None

    @property
    def slot(self) -> str:
        """The slot of a sentence that has its name."""
        return "area" if self.entity_id is None else "name"

    @property
    def domain(self) -> str | None:
        """The domain of the entity."""
        return self.entity_id and self.entity_id.partition(".")[0]


def normalize_name(name: str) -> str:
    """Return a name as Home Assistant compares it."""
    return name.strip().casefold()


def list_texts(value: object) -> list[str]:
    """Return the texts in an argument that is a text or a list of texts."""
    values = value if isinstance(value, list | tuple | set) else [value]
    return [each for each in values if isinstance(each, str)][:_MAX_TARGET_VALUES]


class HomeNames:
    """The entities of a home by their names and aliases."""

    def __init__(self, hass: HomeAssistant, states_by_name: Mapping[str, list[State]]) -> None:
        """Keep the states by normalized name."""
        self.hass = hass
        self._states_by_name = states_by_name
        places: list[ar.AreaEntry | fr.FloorEntry] = [
            *ar.async_get(hass).async_list_areas(),
            *fr.async_get(hass).async_list_floors(),
        ]
        self._place_names = {normalize_name(name) for each in places for name in (each.name, *each.aliases)}

    def is_taken(self, name: str) -> bool:
        """Return whether an entity, an area or a floor has this name."""
        wanted = normalize_name(name)
        return wanted in self._states_by_name or wanted in self._place_names

    def find_target(self, command: Command) -> Target | None:
        """Return the one entity or area that a tool call selects, or None."""
        arguments = command.arguments or {}
        name, area = arguments.get("name"), arguments.get("area")
        if isinstance(name, str) and name:
            found = self._match(arguments, self._list_named(name))
            if len(found) != 1:
                return None
            entity = er.async_get(self.hass).async_get(found[0].entity_id)
            names = intent.async_get_entity_aliases(self.hass, entity, state=found[0])
            return Target(next(filter(None, names), found[0].name), found[0].entity_id)
        if not isinstance(area, str) or arguments.get("floor"):
            return None
        areas = list(intent.find_areas(area, ar.async_get(self.hass)))
        return Target(areas[0].name, area_id=areas[0].id) if len(areas) == 1 else None

    def is_same(self, result: RecognizeResult, command: Command, target: Target | None) -> bool:
        """Return whether Home Assistant's match has the same result as the tool call, if the target has its alias.

        Of a call without known arguments only the intent is compared.
        """
        slots = {name: each.value for name, each in result.entities.items()}
        values = {name: value for name, value in slots.items() if name not in TARGET_SLOTS}
        if command.arguments is None or result.intent.name != command.tool:
            return result.intent.name == command.tool
        if _normalize_values(values) != _normalize_values(command.values):
            return False
        if target is None:
            return _PLACE_SLOTS.isdisjoint(slots.keys() | {name for name, value in command.arguments.items() if value})
        if target.entity_id is not None:
            return self._is_same_entity(slots, target)
        return self._is_same_area(slots, command.arguments, target)

    def _is_same_entity(self, slots: Mapping[str, Any], target: Target) -> bool:
        name = slots.get("name")
        if not isinstance(name, str) or target.entity_id is None:
            return False
        named = self._list_named(name)
        if target.alias is not None and normalize_name(name) == normalize_name(target.alias):
            named = self._list_named(target.entity_id)
        return [each.entity_id for each in self._match(slots, named)] == [target.entity_id]

    def _is_same_area(self, slots: Mapping[str, Any], arguments: Mapping[str, Any], target: Target) -> bool:
        area = slots.get("area")
        if not isinstance(area, str) or slots.get("name") or slots.get("floor"):
            return False
        if any(set(list_texts(slots.get(each))) != set(list_texts(arguments.get(each))) for each in _KIND_SLOTS):
            return False
        if target.alias is not None and normalize_name(area) == normalize_name(target.alias):
            return True
        return [each.id for each in intent.find_areas(area, ar.async_get(self.hass))] == [target.area_id]

    def _list_named(self, name: str) -> list[State]:
        state = self.hass.states.get(name) if "." in name else None
        return self._states_by_name.get(normalize_name(name), []) if state is None else [state]

    def _match(self, slots: Mapping[str, Any], states: list[State]) -> list[State]:
        """Return those of the states that the slots select, except by name, as Home Assistant's intents do."""
        if not states:
            return []
        constraints = intent.MatchTargetsConstraints(
            area_name=next(iter(list_texts(slots.get("area"))), None),
            floor_name=next(iter(list_texts(slots.get("floor"))), None),
            domains=list_texts(slots.get("domain")) or None,
            device_classes=list_texts(slots.get("device_class")) or None,
            assistant=conversation.DOMAIN,
        )
        found = intent.async_match_targets(self.hass, constraints, states=states)
        return found.states if found.is_match else []


_KIND_SLOTS = ("domain", "device_class")


def _normalize_values(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _normalize_value(value) for name, value in values.items() if value not in (None, "")}


def _normalize_value(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return normalize_name(str(value))


async def async_list_names(hass: HomeAssistant) -> HomeNames:
    """Return the names of the home. They are collected in steps, which leave the event loop free."""
    registry, found = er.async_get(hass), dict[str, list[State]]()
    for number, state in enumerate(hass.states.async_all(), 1):
        for name in _list_names(hass, registry, state):
            found.setdefault(normalize_name(name), []).append(state)
        if number % _ENTITIES_PER_STEP == 0:
            await asyncio.sleep(0)
    return HomeNames(hass, found)


def _list_names(hass: HomeAssistant, registry: er.EntityRegistry, state: State) -> Iterable[str]:
    return dict.fromkeys(intent.async_get_entity_aliases(hass, registry.async_get(state.entity_id), state=state))
