"""The areas and domains that a tool call has touched, as `context:*` tags, from its arguments and its result.

Areas are tagged by their id (`context:living_room`), domains by their name (`context:light`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from homeassistant.core import HomeAssistant, split_entity_id, valid_domain, valid_entity_id
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er, llm

from ..window import MAX_TAG_LENGTH

# The most names of one slot that become tags: the model may list any number.
_MOST_NAMES = 20


def tags_of_call(hass: HomeAssistant, arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the tags for the areas and domains that a tool call names."""
    areas = (ar.async_get(hass).async_get_area_by_name(name) for name in _names(arguments.get("area")))
    domains = filter(valid_domain, _names(arguments.get("domain")))
    return _tags({area.id for area in areas if area}.union(domains))


def tags_of_result(hass: HomeAssistant, result: llm.ToolResult) -> frozenset[str]:
    """Return the tags for what an intent acted on (`IntentResponse.as_dict`), none for other results."""
    return _tags(name for target in _targets(result) for name in _touched(hass, target))


def _targets(result: llm.ToolResult) -> list[Mapping[str, Any]]:
    outcome = result.data.get("data")
    targets = outcome.get("success") if isinstance(outcome, dict) else None
    return [target for target in targets if isinstance(target, dict)] if isinstance(targets, list) else []


def _tags(names: Iterable[str]) -> frozenset[str]:
    """Return the tags for names from a model or a tool; a name that makes no valid tag is skipped."""
    tags = (f"context:{name}" for name in names if name.strip())
    return frozenset(tag for tag in tags if len(tag) <= MAX_TAG_LENGTH)


def _touched(hass: HomeAssistant, target: Mapping[str, Any]) -> Iterator[str]:
    kind, target_id = target.get("type"), target.get("id")
    if not isinstance(target_id, str):
        return
    if kind == "entity" and valid_entity_id(target_id):
        yield split_entity_id(target_id)[0]
        if area_id := _area_of_entity(hass, target_id):
            yield area_id
    elif kind == "area" or (kind == "domain" and valid_domain(target_id)):
        yield target_id


def _area_of_entity(hass: HomeAssistant, entity_id: str) -> str | None:
    entry = er.async_get(hass).async_get(entity_id)
    if entry is None or entry.area_id:
        return entry.area_id if entry else None
    device = dr.async_get(hass).async_get(entry.device_id) if entry.device_id else None
    return dr.async_get_effective_area_id(hass, device) if device else None


def _names(value: object) -> list[str]:
    """Return the names in a slot: a text, or several, of which only the first few are read."""
    names = value[:_MOST_NAMES] if isinstance(value, list) else [value]
    return [name.strip() for name in names if isinstance(name, str) and name.strip()]
