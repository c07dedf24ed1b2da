"""The overview of the exposed entities in a system prompt: Home Assistant's list, or the compact one of our agents.

Devices by area and domain, name/alias:
Kitchen/cookery (Ground floor): light: Ceiling light, "Lamp, left"; switch: Oven/cooker; sensor: 4
no area: weather: Home

A name that contains a separator is quoted as in JSON. A number is the number of entities without a name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import json
import re

from .conversation import Turn

_CORE_ENTITY_PATTERN = re.compile(
    r"^- names: (?P<names>.+)\n  domain: (?P<domain>\w+)(?:\n  areas: (?P<area>.+))?", re.MULTILINE
)
_COMPACT_PATTERN = re.compile(r"^Devices by area and domain, .*:\n(?P<lines>(?:.+\n?)*)", re.MULTILINE)
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAME = rf"(?:{_QUOTED}|[^\",;:/()\n]+)"
_PLACE_PATTERN = re.compile(rf"(?P<names>{_NAME}(?:/{_NAME})*)(?P<floor> \({_NAME}\))?: (?P<rest>.+)")
_DOMAIN_PATTERN = re.compile(rf'(?P<domain>\w+): (?P<entities>(?:{_QUOTED}|[^";])+)(?:; |$)')
_ENTITY_PATTERN = re.compile(rf'(?P<names>(?:{_QUOTED}|[^",])+)(?:, |$)')
_NAME_PATTERN = re.compile(rf'(?P<name>{_QUOTED}|[^"/]+)(?:/|$)')


@dataclass(frozen=True, slots=True)
class OverviewEntity:
    """An entity of the overview or a listed one; domain, area and floor are empty if they are not known."""

    name: str
    domain: str = ""
    area: str = ""
    floor: str = ""
    aliases: tuple[str, ...] = ()
    area_aliases: tuple[str, ...] = ()

    def is_of_kind(self, kind: str) -> bool:
        """Return whether the entity is of this kind, according to its domain or its name."""
        return kind.replace(" ", "_") in (self.domain, *self.name.lower().split())


def find_entities(turns: Iterable[Turn]) -> list[OverviewEntity]:
    """Return the entities in the overview of the system prompt."""
    return [each for turn in turns if turn.role == "system" for each in parse_overview(turn.text)]


def parse_overview(text: str) -> list[OverviewEntity]:
    """Return the entities of the overview in a text, in the form that it has."""
    compact = _COMPACT_PATTERN.search(text)
    return list(_iter_compact_entities(compact["lines"]) if compact else _iter_core_entities(text))


def _iter_core_entities(text: str) -> Iterator[OverviewEntity]:
    for each in _CORE_ENTITY_PATTERN.finditer(text):
        yield OverviewEntity(_get_first_name(each["names"]), each["domain"], _get_first_name(each["area"] or ""))


def _get_first_name(names: str) -> str:
    return names.split(",", maxsplit=1)[0].strip(" '\"")


def _iter_compact_entities(lines: str) -> Iterator[OverviewEntity]:
    for place in filter(None, map(_PLACE_PATTERN.fullmatch, lines.splitlines())):
        area, *area_aliases = _split_names("" if place["names"] == "no area" else place["names"]) or [""]
        floor = _unquote(place["floor"].removeprefix(" (").removesuffix(")")) if place["floor"] else ""
        for domain in _DOMAIN_PATTERN.finditer(place["rest"]):
            for entity in _ENTITY_PATTERN.finditer(domain["entities"]):
                if not entity["names"].isdecimal():
                    name, *aliases = _split_names(entity["names"])
                    yield OverviewEntity(name, domain["domain"], area, floor, tuple(aliases), tuple(area_aliases))


def _split_names(names: str) -> list[str]:
    return [_unquote(each["name"]) for each in _NAME_PATTERN.finditer(names)]


def _unquote(name: str) -> str:
    return str(json.loads(name)) if name.startswith('"') else name
