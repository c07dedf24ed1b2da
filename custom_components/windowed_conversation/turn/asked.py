"""The entities, areas and kinds of things of the home that a sentence names."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
import re

from ..memory import Words

_WORD = re.compile(r"\w+")
# The most words that are read of a sentence, and of a name.
_MOST_WORDS = 60
_MOST_NAME_WORDS = 12
# "lights" names "light": this number of letters may follow a word of at least that number.
_LEAST_LETTERS = 4
_ENDING = 2
_NAMES_IN_USE = 4096

type _Name = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Asked:
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

    def named(self, said: str) -> frozenset[str]:
        """Return the kinds that a sentence names, in any number and case that a stemmer knows."""
        held = self._words.term_set(" ".join(_words(said, _MOST_WORDS)))
        return frozenset(kind for words, kinds in self._kinds.items() if words <= held for kind in kinds)


class NameIndex:
    """The names of the entities by their words, so that a turn need not read them all."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, ...]] = {}
        self._areas: dict[str, str] = {}
        self._area_names: Mapping[str, Iterable[str]] = {}
        # by the form of a word: the names that have it, and which of their words it is, as bits
        self._found: defaultdict[str, dict[_Name, int]] = defaultdict(dict)

    def put(self, key: str, names: tuple[str, ...], area: str) -> None:
        """Add an entity, or replace its names and its area."""
        if self._names.get(key) != names:
            self.drop(key)
            self._names[key] = names
            for form, name, bit in _places(key, names):
                self._found[form][name] = self._found[form].get(name, 0) | bit
        self._areas[key] = area

    def put_areas(self, names: Mapping[str, Iterable[str]]) -> None:
        """Replace the names of all areas."""
        self._area_names = names

    def drop(self, key: str) -> None:
        """Forget an entity."""
        self._areas.pop(key, None)
        for form, name, _ in _places(key, self._names.pop(key, ())):
            self._found[form].pop(name, None)
            if not self._found[form]:
                del self._found[form]

    def asked(self, said: str, kinds: frozenset[str] = frozenset()) -> Asked:
        """Return the entities and areas that a sentence names; if one of these has entities of a name, those alone."""
        forms = {form for word in _words(said, _MOST_WORDS) for form in _forms(word)}
        found: defaultdict[_Name, int] = defaultdict(int)
        for form in forms:
            for name, words in self._found.get(form, {}).items():
                found[name] |= words
        named = [name for name, words in found.items() if words == _whole(self._names[name[0]][name[1]])]
        areas = _longest(area for area, names in self._area_names.items() if _is_any_named(names, forms))
        return Asked(tuple(sorted(set(self._in_their_areas(named, areas)))), areas, kinds)

    def _in_their_areas(self, named: Iterable[_Name], areas: frozenset[str]) -> Iterator[str]:
        by_name: defaultdict[str, list[str]] = defaultdict(list)
        for key, number in named:
            by_name[self._names[key][number].casefold()].append(key)
        for keys in by_name.values():
            there = [key for key in keys if self._areas[key] in areas]
            yield from there or keys


def _places(key: str, names: tuple[str, ...]) -> Iterator[tuple[str, _Name, int]]:
    """Yield each form of each word of the names, with the name and the word's place in it as a bit."""
    for number, name in enumerate(names):
        for at, forms in enumerate(_word_forms(name)):
            for form in forms:
                yield form, (key, number), 1 << at


def _whole(name: str) -> int:
    return (1 << len(_word_forms(name))) - 1


def _is_any_named(names: Iterable[str], forms: set[str]) -> bool:
    words = map(_word_forms, names)
    return any(each and all(not forms.isdisjoint(word) for word in each) for each in words)


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
    """Return a word and what is left of it without an ending."""
    shortest = max(_LEAST_LETTERS, len(word) - _ENDING)
    return (word, *(word[:end] for end in range(len(word) - 1, shortest - 1, -1)))
