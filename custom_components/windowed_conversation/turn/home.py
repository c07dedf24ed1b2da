"""The part of the home that a sentence needs: the entities, areas and kinds that it names, and the states to list.

Entities that the sentence names come first, then changes since the conversation's last turn, then unusual states
anywhere, then the speaker's area. The text summarizes everything else: the usual states, and how many other entities
there are.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
import re

from ..memory import Words
from .state_text import UNKNOWN_STATES, EntityState, Standing, area_name, one_name

_WORD = re.compile(r"\w+")
# The maximum number of words that are compared of a sentence, and of a name.
_MOST_WORDS = 60
_MOST_NAME_WORDS = 12
# A word also names whatever it names without its ending: "lights" names "light". These are the minimum length of the
# word without its ending, and the maximum length of the ending.
_LEAST_LETTERS = 4
_ENDING = 2
_LONGEST_NAME = 300

type Entities = Mapping[str, EntityState]

# The maximum number of tokens that states may take in a live context.
STATES_TOKENS = 200

# Appended to the instructions, so that a model does not look up states that the request already contains.
HINT = (
    "The context before the newest message lists states of the home at this moment; older messages may be out of date. "
    "Answer from these states without a tool. Look up what they do not say."
)

_CHANGED = " (changed)"
_OTHERS = "others"
_MOST_COUNTS = 6

# How many usual entities of a named area are ranked before unusual ones elsewhere.
_MOST_USUAL = 5

# The minimum number of tokens that an entity takes; it limits how many entities are considered.
_LEAST_TOKENS = 4

# Kinds that have no usual state, but that people like to know about.
_OF_INTEREST = ("person", "alarm control panel", "weather")


@dataclass(frozen=True, slots=True)
class NamedEntities:
    """The entities (by their keys), areas and kinds that a sentence names."""

    entities: tuple[str, ...] = ()
    areas: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


class KindWords:
    """The names of kinds of entities, such as "window", in the languages of the home. Not thread-safe."""

    def __init__(self, languages: tuple[str, ...], names: Iterable[tuple[str, str]]) -> None:
        """Build the index from pairs of a kind and one of its names."""
        self._words = Words(languages)
        self._kinds: defaultdict[frozenset[str], set[str]] = defaultdict(set)
        for kind, name in names:
            self._kinds[frozenset(self._words.term_set(name))].add(kind)

    def named(self, sentence: str) -> frozenset[str]:
        """Return the kinds that a sentence names, in any grammatical number and case that a stemmer recognizes."""
        terms = self._words.term_set(" ".join(_words(sentence, _MOST_WORDS)))
        return frozenset([kind for words, kinds in self._kinds.items() if words <= terms for kind in kinds])


def _is_named(name: str, forms: set[str]) -> bool:
    words = _word_forms(name)
    return bool(words) and not any(map(forms.isdisjoint, words))


def _longest(areas: Iterable[str]) -> frozenset[str]:
    """Return the areas whose words are not all part of another area's name: "Upper Kitchen" does not name "Kitchen"."""
    words = {area: {forms[0] for forms in _word_forms(area)} for area in areas}
    return frozenset(words) - {area for area, own in words.items() for other in words.values() if own < other}


@lru_cache(maxsize=8192)
def _word_forms(name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_forms, _words(name, _MOST_NAME_WORDS)))


def _words(text: str, most: int) -> list[str]:
    found = _WORD.finditer(text)
    return [match[0].casefold() for match, _ in zip(found, range(most), strict=False)]


def _forms(word: str) -> tuple[str, ...]:
    """Return the word as it is, and without each ending that it may have."""
    shortest = max(_LEAST_LETTERS, len(word) - _ENDING)
    return (word, *[word[:end] for end in range(len(word) - 1, shortest - 1, -1)])


@dataclass(frozen=True, slots=True)
class EntitySearch:
    """The entities that a tool call names, and the names that match no entity, each cleaned by `one_name`."""

    entities: Entities
    missing: tuple[str, ...] = ()


def search_entities(
    entities: Entities, areas: Iterable[str] = (), domains: Iterable[str] = (), names: Iterable[str] = ()
) -> EntitySearch:
    """Return the entities in these areas, of these domains, and with these names; an empty filter matches all.

    A name matches the entities that have it as their name, alias or key, or if there are none, those whose name
    contains it. Letter case is ignored.
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
    """Return the keys of the entities with a name; aliases are compared with the name as the model wrote it."""
    return (
        [key for key, (own, _) in folded.items() if name in (own, key)]
        or [key for key, (_, aliases) in folded.items() if as_given in aliases]
        or [key for key, (own, _) in folded.items() if name in own]
    )


def _folded(name: str) -> str:
    """Return a name with letter case and white space normalized; this is much faster than `one_name`."""
    return " ".join(name[:_LONGEST_NAME].casefold().split())


type Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class StatesText:
    """The states that a live context lists, by entity key and as text; `at` is their time in epoch seconds."""

    text: str = ""
    tokens: int = 0
    listed: Mapping[str, str] = field(default_factory=dict)
    at: float = float("inf")


NO_STATES = StatesText()


@dataclass(slots=True)
class Home:
    """The exposed entities by their keys, and the names of areas and kinds that sentences use for them.

    `kinds` is None until the names of kinds have been read.
    """

    entities: dict[str, EntityState] = field(default_factory=dict)
    area_names: Mapping[str, Iterable[str]] = field(default_factory=dict)
    kinds: KindWords | None = None

    def named(self, sentence: str) -> NamedEntities:
        """Return the entities, areas and kinds that a sentence names.

        If several entities have the same name and some of them are in an area that the sentence names, only those are
        returned.
        """
        forms = {form for word in _words(sentence, _MOST_WORDS) for form in _forms(word)}
        areas = _longest({area for area, names in self.area_names.items() for name in names if _is_named(name, forms)})
        by_name: defaultdict[str, list[str]] = defaultdict(list)
        for key, entity in self.entities.items():
            for name in entity.names:
                if _is_named(name, forms):
                    by_name[name.casefold()].append(key)
        found: set[str] = set()
        for keys in by_name.values():
            found.update([key for key in keys if self.entities[key].area in areas] or keys)
        return NamedEntities(tuple(sorted(found)), areas, self.kinds.named(sentence) if self.kinds else frozenset())


def build_states_text(
    entities: Entities,
    named: NamedEntities,
    area: str,
    before: StatesText,
    *,
    limit: int,
    count: Count,
    domains: Collection[str] = (),
    now: float = 0.0,
) -> StatesText:
    """Return the states that a live context lists, within a limit in tokens.

    `area` is the speaker's area, `before` are the states of the conversation's last turn, and `domains` are the domains
    that the agent may see in addition to the common ones.
    """
    ranked = {
        key: None
        for key in _ranked(entities, named, area, before)
        if not entities[key].extra or entities[key].extra in domains or key in named.entities
    }
    return replace(_fitting(entities, ranked, limit, count, before=before, domains=domains), at=now)


def build_listing(entities: Entities, area: str, limit: int, count: Count) -> StatesText:
    """Return as many entities as fit: unusual ones first, then those of the area. The others are only counted."""

    def order(key: str) -> tuple[bool, bool, str]:
        entity = entities[key]
        return entity.standing is not Standing.UNUSUAL, entity.area != area, entity.area

    return _fitting(entities, sorted(entities, key=order), limit, count)


def _ranked(entities: Entities, named: NamedEntities, area: str, before: StatesText) -> Iterator[str]:
    """Yield the keys of the entities that a sentence is likely to need, the most important first; some keys twice."""

    def order(key: str) -> tuple[bool, bool, str, str]:
        entity = entities[key]
        return entity.state in UNKNOWN_STATES, entity.area != area, entity.area, entity.name

    by_place: defaultdict[tuple[str, Standing], list[str]] = defaultdict(list)
    for key, entity in entities.items():
        by_place[entity.area, entity.standing].append(key)
    areas = sorted(named.areas)
    # a sentence that names an entity does not ask for the rest of its area, and one that names a kind does not ask for
    # other usual entities
    open_areas = [each for each in areas if each not in {entities[key].area for key in named.entities}]
    usual = [key for each in open_areas if not named.kinds for key in by_place[each, Standing.USUAL]]
    return chain(
        named.entities,
        sorted(_of_named_kinds(entities, named), key=order) if named.kinds else (),
        [key for key, state in before.listed.items() if key in entities and entities[key].state != state],
        *[by_place[each, Standing.UNUSUAL] for each in areas],
        *[by_place[each, Standing.MEASURED] for each in open_areas],
        usual[:_MOST_USUAL],
        sorted([key for key, each in entities.items() if each.standing is Standing.UNUSUAL], key=order),
        by_place[area, Standing.MEASURED] if area else (),
        *[[key for key, each in entities.items() if each.kind == kind] for kind in _OF_INTEREST],
        usual,
    )


def _of_named_kinds(entities: Entities, named: NamedEntities) -> list[str]:
    return [
        key
        for key, entity in entities.items()
        if (entity.area in named.areas if named.areas else entity.standing is not Standing.USUAL)
        and (entity.kind in named.kinds or entity.domain in named.kinds)
    ]


def _fitting(
    entities: Entities,
    ranked: Iterable[str],
    limit: int,
    count: Count,
    *,
    before: StatesText = NO_STATES,
    domains: Collection[str] | None = None,
) -> StatesText:
    """Return the text with as many of the entities as fit, or an empty text if not even the counts fit."""
    total = _counted(entities.values(), domains)
    chosen = list(islice(ranked, max(1, limit // _LEAST_TOKENS)))
    while True:
        rest = total - _counted([entities[key] for key in chosen], domains)
        text = _text({key: entities[key] for key in chosen}, before, rest)
        tokens = count(text) if text else 0
        if tokens <= limit:
            return StatesText(text, tokens, {key: entities[key].state for key in chosen})
        if not chosen:
            return NO_STATES
        chosen = chosen[: min(len(chosen) - 1, int(len(chosen) * limit / tokens) + 1)]


def _counted(entities: Iterable[EntityState], domains: Collection[str] | None) -> Counter[tuple[bool, str]]:
    """Return the number of entities by whether they are usual, and by label.

    Entities of domains that the agent does not see are counted as others. Without `domains`, the agent sees all.
    """
    return Counter(
        [
            (False, _OTHERS)
            if each.extra and domains is not None and each.extra not in domains
            else (each.standing is Standing.USUAL, each.label)
            for each in entities
        ]
    )


def _text(listed: Entities, before: StatesText, rest: Counter[tuple[bool, str]]) -> str:
    """Return the listed states by area, then the counts of the remaining unusual entities and the usual states."""
    areas: defaultdict[str, list[str]] = defaultdict(list)
    for key, entity in listed.items():
        areas[entity.area].append(
            f"{entity.name}={entity.state}{_CHANGED if _has_changed(key, entity, before) else ''}"
        )
    groups = [f"{area or 'no area'}: {', '.join(states)}" for area, states in areas.items()]
    if counts := Counter({label: number for (is_usual, label), number in rest.items() if not is_usual}):
        groups.append("not listed: " + ", ".join(_counts(counts)))
    if usual := sorted([label for is_usual, label in rest if is_usual]):
        groups.append("rest " + ", ".join(usual))
    return " | ".join(groups)


def _has_changed(key: str, entity: EntityState, before: StatesText) -> bool:
    """Return whether a state differs from that in the last turn; a state that was not listed then counts as usual."""
    if key in before.listed:
        return before.listed[key] != entity.state
    return entity.standing is Standing.UNUSUAL and entity.changed > before.at


def _counts(counts: Counter[str]) -> Iterator[str]:
    others = counts.pop(_OTHERS, 0)
    named = counts.most_common(_MOST_COUNTS)
    for label, number in named:
        yield f"{number} {label}"
    if others := others + counts.total() - sum(number for _, number in named):
        yield f"{others} {_OTHERS}"
