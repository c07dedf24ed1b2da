"""The overview of the home in a system prompt: a line for each area, with the names of its entities by domain.

    Kitchen (Ground floor): light: Kitchen ceiling light, Worktop strip; climate: Kitchen radiator; switch: Oven/cooker

A name that contains a separator is quoted as in JSON. If there is little room, domains whose entities people rarely
name get numbers instead of names, then all domains, then whole areas.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
import json
import re
from typing import NamedTuple

from ...turn.context import PREFIX_START, replace_prefixes

_HEADING = "Devices by area and domain, name/alias"
_NUMBERS_HEADING = "{heading}; a number is how many there are, {tool} finds their names"
_NO_AREA = "no area"
# A name that is a number would look like a number of entities.
_SEPARATOR_PATTERN = re.compile(r'[,;:/"\\]|^\s|\s$|^\d+$|^$')
# The name of an area is followed by its floor in brackets.
_PLACE_SEPARATOR_PATTERN = re.compile(rf"[,;:/()\"\\]|^\s|\s$|^{_NO_AREA}$|^$", re.IGNORECASE)

# The order of the domains in a line, and that in which they get names if there is little room. Domains that are in
# neither list come between the two.
_FIRST_DOMAINS = (
    "light", "cover", "climate", "lock", "switch", "media_player", "fan", "vacuum", "scene", "alarm_control_panel",
    "todo", "person", "weather",
)  # fmt: skip
_LAST_DOMAINS = ("binary_sensor", "sensor")
_RANK_BY_DOMAIN = {
    **{domain: rank for rank, domain in enumerate(_FIRST_DOMAINS, -len(_FIRST_DOMAINS))},
    **{domain: rank for rank, domain in enumerate(_LAST_DOMAINS, 1)},
}


class Place(NamedTuple):
    """An area: its names, the first of which is not an alias, and its floor. Without names, it stands for no area."""

    names: tuple[str, ...] = ()
    floor: str = ""

    @property
    def label(self) -> str:
        """The place as the beginning of its line."""
        if not self.names:
            return _NO_AREA
        names = "/".join([_quote(name, _PLACE_SEPARATOR_PATTERN) for name in self.names])
        return f"{names} ({_quote(self.floor, _PLACE_SEPARATOR_PATTERN)})" if self.floor else names


type NamesByDomain = Mapping[str, Sequence[str]]
type TokenCountFunction = Callable[[str], int]


@dataclass(slots=True)
class Overview:
    """The exposed entities by place and domain. Its texts are the same for the same entities, in any order."""

    _names: dict[Place, dict[str, list[str]]] = field(default_factory=dict)

    def add_entity(self, place: Place, domain: str, names: Iterable[str]) -> None:
        """Add an entity; its first name is not an alias."""
        self._names.setdefault(place, {}).setdefault(domain, []).append(format_names(tuple(names)))

    def build_text(self, limit: int | None, tool: str, count: TokenCountFunction) -> str:
        """Return the overview, with as many names as fit in `limit` tokens, or all of them if that is None.

        `tool` finds the entities whose names do not fit. If it is empty, the limit does not apply.
        """
        names = self._sort_names()
        text = _format_overview(names, {domain for by_domain in names.values() for domain in by_domain}, _HEADING)
        if limit is None or not tool:
            return text
        smaller = _iter_smaller_texts(names, limit, _NUMBERS_HEADING.format(heading=_HEADING, tool=tool), count)
        while count(text) > limit and (shorter := next(smaller, None)) is not None:
            text = shorter
        return text

    def _sort_names(self) -> dict[Place, NamesByDomain]:
        places = sorted(self._names, key=lambda place: (not place.names, not place.floor, place.floor, place.names))
        return {
            place: {domain: sorted(self._names[place][domain]) for domain in _sort_domains(self._names[place])}
            for place in places
        }


@lru_cache(maxsize=8192)
def format_names(names: tuple[str, ...]) -> str:
    """Return the names of an entity as the overview has them."""
    return "/".join([_quote(name, _SEPARATOR_PATTERN) for name in names])


def _quote(name: str, separators: re.Pattern[str]) -> str:
    """Return a name as the overview has it. One that imitates the stamp loses the bracket before it."""
    name = replace_prefixes(name, PREFIX_START.removeprefix("["))
    if name.isprintable():
        return json.dumps(name, ensure_ascii=False) if separators.search(name) else name
    return json.dumps(name)


def _sort_domains(domains: Iterable[str]) -> list[str]:
    return sorted(domains, key=lambda domain: (_RANK_BY_DOMAIN.get(domain, 0), domain))


def _iter_smaller_texts(
    names: Mapping[Place, NamesByDomain], limit: int, heading: str, count: TokenCountFunction
) -> Iterator[str]:
    """Yield shorter and shorter overviews: names of fewer domains, only numbers, and a number for each area."""
    named = _choose_named_domains(names, limit - count(_format_overview(names, (), heading)), count)
    for number in range(len(named), -1, -1):
        yield _format_overview(names, named[:number], heading)
    numbers = [f"{place.label}: {sum(map(len, by_domain.values()))}" for place, by_domain in names.items()]
    yield "\n".join([f"{heading}:", *numbers])
    yield f"{heading}: {sum(len(entities) for by_domain in names.values() for entities in by_domain.values())}"


def _choose_named_domains(names: Mapping[Place, NamesByDomain], left: int, count: TokenCountFunction) -> Sequence[str]:
    """Return the domains whose names fit together in `left` tokens, the important ones first."""
    chosen: list[str] = []
    for domain in _sort_domains({domain for by_domain in names.values() for domain in by_domain}):
        tokens = count(", ".join([", ".join(by_domain.get(domain, ())) for by_domain in names.values()]))
        if tokens <= left:
            left -= tokens
            chosen.append(domain)
    return chosen


def _format_overview(names: Mapping[Place, NamesByDomain], named: Collection[str], heading: str) -> str:
    """Return the overview with the names of the entities of some domains, and the numbers of the others."""
    lines = [f"{heading}:"]
    for place, by_domain in names.items():
        parts = [f"{each}: {', '.join(has) if each in named else len(has)}" for each, has in by_domain.items()]
        lines.append(f"{place.label}: {'; '.join(parts)}")
    return "\n".join(lines)
