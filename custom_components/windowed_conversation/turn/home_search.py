"""The entities that the areas, domains and names mean that a model gives. Letter case does not count."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from .home import EntityState
from .state_text import area_name, one_name

_LONGEST_NAME = 300

type Entities = Mapping[str, EntityState]
# Further names of an entity, by its key.
type Aliases = Callable[[str], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Found:
    """The entities that are meant, and the names that none of them has, as one name each."""

    entities: Entities
    missed: tuple[str, ...] = ()


def in_areas(entities: Entities, areas: Iterable[str]) -> Entities:
    """Return the entities in these areas, or all if there are none."""
    wanted = {area_name(area).casefold() for area in areas}
    if not wanted:
        return entities
    return {key: each for key, each in entities.items() if each.area and each.area.casefold() in wanted}


def of_domains(entities: Entities, domains: Iterable[str]) -> Entities:
    """Return the entities of these domains, or all if there are none."""
    wanted = {domain.strip().casefold() for domain in domains}
    return {key: each for key, each in entities.items() if key.partition(".")[0] in wanted} if wanted else entities


def named(entities: Entities, names: Iterable[str], aliases: Aliases) -> Found:
    """Return the entities with these names, or all if there are none.

    For each name these are the entities that have it as their name, alias or key, else those whose name contains it.
    """
    wanted = {one_name(name): name for name in names}
    if not wanted:
        return Found(entities)
    folded = {key: each.name.casefold() for key, each in entities.items()}
    known = _Names(folded, cache(lambda key: tuple(map(_folded, aliases(key)))))
    keys = {name: known.keys_of(name.casefold(), _folded(given)) if name else [] for name, given in wanted.items()}
    found = {key: entities[key] for name in wanted for key in keys[name]}
    return Found(found, tuple(name for name in wanted if not keys[name]))


def _folded(name: str) -> str:
    """Return a name in which letter case and white space do not count; this takes much less time than `one_name`."""
    return " ".join(name[:_LONGEST_NAME].casefold().split())


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of entities by their keys, and their aliases."""

    names: Mapping[str, str]
    aliases: Aliases

    def keys_of(self, wanted: str, as_given: str) -> list[str]:
        """Return the entities that are called this; aliases are compared with the name as it was given."""
        return (
            [key for key, name in self.names.items() if wanted in (name, key)]
            or [key for key in self.names if as_given in self.aliases(key)]
            or [key for key, name in self.names.items() if wanted in name]
        )
