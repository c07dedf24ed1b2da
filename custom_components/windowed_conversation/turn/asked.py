"""What a sentence asks for of the home: the entities and the areas that it names."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
import re

_WORD = re.compile(r"\w+")
# The most words that are read of a sentence, and of a name.
_MOST_WORDS = 60
_MOST_NAME_WORDS = 12
# "lights" names "light": this number of letters may follow a word of at least that number.
_LEAST_LETTERS = 4
_ENDING = 2
_AREAS_IN_USE = 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """The entities that a sentence names, by their keys, and the areas."""

    entities: frozenset[str] = frozenset()
    areas: frozenset[str] = frozenset()


class NameIndex:
    """The names of the entities by their words, so that a turn need not read them all."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._areas: dict[str, str] = {}
        # by the form of a word: the entities that have it, and which of their words it is, as bits
        self._keys: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._whole: dict[str, int] = {}

    def put(self, key: str, name: str, area: str) -> None:
        """Take in an entity, or its new name or area."""
        self._areas[key] = area
        if self._names.get(key) == name:
            return
        self.drop(key)
        self._names[key], self._areas[key] = name, area
        words = _words(name, _MOST_NAME_WORDS)
        if not words:
            return
        self._whole[key] = (1 << len(words)) - 1
        for at, word in enumerate(words):
            for form in _forms(word):
                self._keys[form][key] = self._keys[form].get(key, 0) | 1 << at

    def drop(self, key: str) -> None:
        """Forget an entity."""
        name = self._names.pop(key, None)
        self._areas.pop(key, None)
        self._whole.pop(key, None)
        for form in {form for word in _words(name or "", _MOST_NAME_WORDS) for form in _forms(word)}:
            keys = self._keys[form]
            keys.pop(key, None)
            if not keys:
                del self._keys[form]

    def asked(self, said: str) -> Asked:
        """Return what the sentence names: if it names an area, of entities with the same name those that are there."""
        forms = {form for word in _words(said, _MOST_WORDS) for form in _forms(word)}
        found: dict[str, int] = {}
        for form in forms:
            for key, words in self._keys.get(form, {}).items():
                found[key] = found.get(key, 0) | words
        named = {key for key, words in found.items() if words == self._whole[key]}
        areas = frozenset(area for area in {*self._areas.values()} if area and _is_named(area, forms))
        return Asked(frozenset(self._in_their_areas(named, areas)), areas)

    def _in_their_areas(self, named: Iterable[str], areas: frozenset[str]) -> Iterator[str]:
        by_name: defaultdict[str, list[str]] = defaultdict(list)
        for key in named:
            by_name[self._names[key]].append(key)
        for keys in by_name.values():
            there = [key for key in keys if self._areas[key] in areas]
            yield from there or keys


def _is_named(area: str, forms: set[str]) -> bool:
    return all(not forms.isdisjoint(word) for word in _area_forms(area))


@lru_cache(maxsize=_AREAS_IN_USE)
def _area_forms(area: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_forms, _words(area, _MOST_NAME_WORDS)))


def _words(text: str, most: int) -> list[str]:
    found = _WORD.finditer(text)
    return [match[0].casefold() for match, _ in zip(found, range(most), strict=False)]


def _forms(word: str) -> tuple[str, ...]:
    """Return a word and what is left of it without an ending."""
    shortest = max(_LEAST_LETTERS, len(word) - _ENDING)
    return (word, *(word[:end] for end in range(len(word) - 1, shortest - 1, -1)))
