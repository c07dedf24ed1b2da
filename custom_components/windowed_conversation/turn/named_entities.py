"""The entities, areas and kinds of things that a sentence names, and the entities that a model's tool call names."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
import re

from ..memory import Words
from .state_text import EntityState, area_name, one_name

_WORD = re.compile(r"\w+")
# The most words that are read of a sentence, and of a name.
_MOST_WORDS = 60
_MOST_NAME_WORDS = 12
# "lights" names "light": this number of letters may follow a word of at least that number.
_LEAST_LETTERS = 4
_ENDING = 2
_NAMES_IN_USE = 8192
_LONGEST_NAME = 300

type Entities = Mapping[str, EntityState]


@dataclass(frozen=True, slots=True)
class NamedEntities:
    """The entities that a sentence names, by their keys, the areas, and the kinds."""

    entities: tuple[str, ...] = ()
    areas: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


class KindWords:
    """The names of kinds of things, such as "window", in the languages of the home. Not thread-safe."""

    def __init__(self, languages: tuple[str, ...], names: Iterable[tuple[str, str]]) -> None:
        """Index pairs of a kind and one of its names."""
        self._words = Words(languages)
        self._kinds: defaultdict[frozenset[str], set[str]] = defaultdict(set)
        for kind, name in names:
            self._kinds[frozenset(self._words.term_set(name))].add(kind)

    def named(self, sentence: str) -> frozenset[str]:
        """Return the kinds that a sentence names, in any number and case that a stemmer knows."""
        held = self._words.term_set(" ".join(_words(sentence, _MOST_WORDS)))
        return frozenset(kind for words, kinds in self._kinds.items() if words <= held for kind in kinds)


def named_entities(
    sentence: str, entities: Entities, area_names: Mapping[str, Iterable[str]], kinds: KindWords | None
) -> NamedEntities:
    """Return the entities, areas and kinds that a sentence names.

    If entities of one name are in an area that the sentence names, only those are returned.
    """
    forms = {form for word in _words(sentence, _MOST_WORDS) for form in _forms(word)}
    areas = _longest(area for area, names in area_names.items() if any(_is_named(name, forms) for name in names))
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for key, entity in entities.items():
        for name in entity.names:
            if _is_named(name, forms):
                by_name[name.casefold()].append(key)
    found: set[str] = set()
    for keys in by_name.values():
        found.update([key for key in keys if entities[key].area in areas] or keys)
    return NamedEntities(tuple(sorted(found)), areas, kinds.named(sentence) if kinds else frozenset())


def _is_named(name: str, forms: set[str]) -> bool:
    words = _word_forms(name)
    return bool(words) and not any(map(forms.isdisjoint, words))


def _longest(areas: Iterable[str]) -> frozenset[str]:
    """Return the areas whose words are not all in the name of another: "Upper Kitchen" names no "Kitchen"."""
    words = {area: {forms[0] for forms in _word_forms(area)} for area in areas}
    return frozenset(area for area in words if not any(words[area] < other for other in words.values()))


@lru_cache(maxsize=_NAMES_IN_USE)
def _word_forms(name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_forms, _words(name, _MOST_NAME_WORDS)))


def _words(text: str, most: int) -> list[str]:
    found = _WORD.finditer(text)
    return [match[0].casefold() for match, _ in zip(found, range(most), strict=False)]


def _forms(word: str) -> tuple[str, ...]:
    """Return a word, and the word without each ending that it may have."""
    shortest = max(_LEAST_LETTERS, len(word) - _ENDING)
    return (word, *(word[:end] for end in range(len(word) - 1, shortest - 1, -1)))


@dataclass(frozen=True, slots=True)
class EntitySearch:
    """The entities that a tool call names, and the names that no entity has, as one name each."""

    entities: Entities
    missing: tuple[str, ...] = ()


def search_entities(
    entities: Entities, areas: Iterable[str] = (), domains: Iterable[str] = (), names: Iterable[str] = ()
) -> EntitySearch:
    """Return the entities in these areas, of these domains, and with these names; without one of these, all.

    For each name these are the entities that have it as their name, alias or key, else those whose name contains it.
    Letter case does not count.
    """
    if wanted := {area_name(area).casefold() for area in areas}:
        entities = {key: each for key, each in entities.items() if each.area and each.area.casefold() in wanted}
    if wanted := {domain.strip().casefold() for domain in domains}:
        entities = {key: each for key, each in entities.items() if key.partition(".")[0] in wanted}
    called = {one_name(name): name for name in names}
    if not called:
        return EntitySearch(entities)
    folded = {key: (each.name.casefold(), [*map(_folded, each.names)]) for key, each in entities.items()}
    keys = {name: _called(folded, name.casefold(), _folded(given)) if name else [] for name, given in called.items()}
    found = {key: entities[key] for matches in keys.values() for key in matches}
    return EntitySearch(found, tuple(name for name, matches in keys.items() if not matches))


def _called(folded: Mapping[str, tuple[str, list[str]]], name: str, as_given: str) -> list[str]:
    """Return the keys of the entities of a name; aliases are compared with the name as the model gave it."""
    return (
        [key for key, (own, _) in folded.items() if name in (own, key)]
        or [key for key, (_, aliases) in folded.items() if as_given in aliases]
        or [key for key, (own, _) in folded.items() if name in own]
    )


def _folded(name: str) -> str:
    """Return a name in which letter case and white space do not count; this takes much less time than `one_name`."""
    return " ".join(name[:_LONGEST_NAME].casefold().split())
