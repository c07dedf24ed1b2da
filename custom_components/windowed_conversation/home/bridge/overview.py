"""Home Assistant's list of the exposed entities in a prompt, replaced by the compact overview of `core.overview`.

The list is replaced only if the prompt contains all of it: a copy is made with Home Assistant's own functions.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache

from homeassistant.components import conversation
from homeassistant.components.homeassistant import llm as home_llm
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import area_registry as ar, entity_registry as er, floor_registry as fr, llm
from homeassistant.util import yaml as yaml_util

from ...window import EstimatedCounter
from ..core.overview import Overview, Place

# The line before Home Assistant's list. A line with another text is not removed.
_CORE_HEADING = "Static Context: An overview of the areas and the devices in this smart home:\n"
# The beginnings of the lines in Home Assistant's list.
_CORE_LINE_STARTS = ("- ", "  ")
# Home Assistant joins the names of an entity with this, which they may contain themselves.
_CORE_SEPARATOR = ", "
# Tools that find the entities whose names do not fit, the preferred one first.
_LOOKUP_TOOL_NAMES = ("get_states", "GetLiveContext")
# The most texts that are cached, one for each size of a model.
_MAX_CACHED_TEXTS = 16

_NOWHERE = Place()

type _ExposedEntities = Mapping[str, Mapping[str, str]]


class HomeOverview:
    """The overview of the exposed entities, made again only after the registries, exposure or a name have changed."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass
        self._entities: _ExposedEntities = {}
        # Home Assistant's list. Empty until it is made, if it cannot be made, and without exposed entities.
        self._core_list = ""
        self._overview = Overview()
        self._texts: dict[tuple[int | None, str], str] = {}
        self.is_outdated = True
        # The last prompt that does not contain the list.
        self._unmatched_prompt = ""
        # A text that is too long or short by some tokens is better than one that changes with every learned factor.
        self._count_tokens = EstimatedCounter().count

    @callback
    def shorten_prompt(self, api: llm.APIInstance, limit: int | None, sees: Callable[[str], bool] | None = None) -> str:
        """Return the prompt of an API's tools with the overview instead of Home Assistant's list.

        `limit` is in tokens; None means no limit. A prompt without the list is returned unchanged. With `sees`, which
        takes an entity id, the overview has only the entities that it accepts, and a prompt without the list becomes
        empty, because it may show others.
        """
        prompt = api.api_prompt
        if not self.is_outdated and prompt == self._unmatched_prompt:
            return prompt if sees is None else ""
        start = self._find_core_list(prompt)
        # no registry event announces a new or a renamed state, but the list then differs
        if self.is_outdated or start < 0:
            self._make()
            start = self._find_core_list(prompt)
        if start < 0:
            self._unmatched_prompt = prompt
            return prompt if sees is None else ""
        end = start + len(self._core_list)
        if prompt.endswith(_CORE_HEADING, 0, start):
            start -= len(_CORE_HEADING)
        name_by_end = {tool.name.rpartition("__")[2]: tool.name for tool in api.tools}
        tool = next((name_by_end[each] for each in _LOOKUP_TOOL_NAMES if each in name_by_end), "")
        if sees is None:
            text = self._get_text(limit, tool)
        else:
            seen = {entity_id: each for entity_id, each in self._entities.items() if sees(entity_id)}
            text = build_overview(self._hass, seen).build_text(limit, tool, self._count_tokens)
        return f"{prompt[:start]}{text}\n{prompt[end:]}"

    def _find_core_list(self, prompt: str) -> int:
        """Return the index of Home Assistant's list in a prompt, or -1 if it has none or a longer one."""
        start = prompt.find(self._core_list) if self._core_list else -1
        line_before = prompt[:start].rpartition("\n")[0].rpartition("\n")[2]
        is_longer = line_before.startswith(_CORE_LINE_STARTS) or prompt.startswith(
            _CORE_LINE_STARTS, start + len(self._core_list)
        )
        return -1 if is_longer else start

    def _make(self) -> None:
        """Make Home Assistant's list and the overview. The list stays empty if Home Assistant works differently."""
        self.is_outdated, self._core_list, self._unmatched_prompt = False, "", ""
        self._texts.clear()
        with suppress(Exception):
            entities = home_llm.async_get_exposed_entities(self._hass, conversation.DOMAIN, include_state=False)
            self._entities, self._overview = entities, build_overview(self._hass, entities)
            self._core_list = dump_core_list(entities)

    def _get_text(self, limit: int | None, tool: str) -> str:
        if (limit, tool) not in self._texts:
            if len(self._texts) >= _MAX_CACHED_TEXTS:
                self._texts.clear()
            self._texts[limit, tool] = self._overview.build_text(limit, tool, self._count_tokens)
        return self._texts[limit, tool]


def dump_core_list(entities: _ExposedEntities) -> str:
    """Return Home Assistant's list of these entities, empty for none. Each entity is only converted once."""
    return "".join([_dump_entity(*entity.items()) for entity in entities.values()])


@lru_cache(maxsize=8192)
def _dump_entity(*items: tuple[str, str]) -> str:
    return yaml_util.dump([dict(items)])


def build_overview(hass: HomeAssistant, entities: _ExposedEntities) -> Overview:
    """Return the overview of these entities, which are as Home Assistant lists them. Raises any error."""
    overview, registry, floors = Overview(), er.async_get(hass), fr.async_get(hass)
    place_by_area_id: dict[str | None, Place] = {}
    for area in ar.async_get(hass).async_list_areas():
        floor = floors.async_get_floor(area.floor_id) if area.floor_id else None
        place_by_area_id[area.id] = Place((area.name, *sorted(area.aliases)), floor.name if floor else "")
    for entity_id, entity in entities.items():
        entry, names = registry.async_get(entity_id), [entity["names"]]
        if entry is not None and _CORE_SEPARATOR in entity["names"]:
            names = er.async_get_entity_aliases(hass, entry)
        area_id = er.async_get_effective_area_id(hass, entry) if entry is not None and "areas" in entity else None
        overview.add_entity(place_by_area_id.get(area_id, _NOWHERE), entity["domain"], names)
    return overview
