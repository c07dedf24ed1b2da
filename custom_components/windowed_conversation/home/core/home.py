"""The part of the home that a sentence needs: the entities, areas and kinds that it names, and the states to list.

Entities that the sentence names come first, then changes since the conversation's last turn, then unusual states
anywhere, then the speaker's area. The text summarizes everything else: the usual states, and how many other entities
there are.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice

from ...memory.core import Words, clean_text
from ...turn.names import area_name, fold_name, format_name, iter_folded_words
from .state_text import UNKNOWN_STATES, EntityState, StateCategory

# The maximum number of words that are compared in a sentence, and in a name.
_MAX_SENTENCE_WORDS = 60
_MAX_NAME_WORDS = 12
# A word also names the things that it names without its ending: "lights" names "light". These are the minimum length of
# the word without its ending, and the maximum length of the ending.
_MIN_STEM_LETTERS = 4
_MAX_ENDING_LETTERS = 2

type EntitiesByKey = Mapping[str, EntityState]

# The maximum number of tokens that states may take in a live context.
MAX_STATES_TOKENS = 200

# With less room, the text would have nothing but counts.
MIN_STATES_TOKENS = 40

# Appended to the instructions, so that a model does not look up states that the request already contains.
STATES_HINT = (
    "The context before the newest message lists states of the home at this moment, no forecasts or plans; "
    "older messages may be out of date. Answer from these states without a tool. Look up what they do not say."
)

_CHANGED_SUFFIX = " (changed)"
# How many kinds without a usual state have a number of their own.
_MAX_COUNTED_KINDS = 6

_UNRANKED = 7
# How many usual entities of a named area are ranked before unusual ones elsewhere.
_MAX_EARLY_USUAL_COUNT = 5

# The minimum number of tokens that an entity takes; it limits how many entities are considered.
_MIN_ENTITY_TOKENS = 4

# Kinds that have no usual state, but that people like to know about.
_INTERESTING_KINDS = ("alarm control panel", "weather")
# Kinds whose unusual states are checked first, for example at bedtime.
_SAFETY_KINDS = frozenset((
    "alarm control panel", "carbon monoxide", "door", "garage", "garage door", "gas", "gate", "lock", "moisture",
    "opening", "safety", "siren", "smoke", "tamper", "valve", "window",
))  # fmt: skip
# Further kinds that a kind in a sentence may mean: to water the garden, a model needs the valve, not only the water
# meter.
_ACTING_KINDS_BY_KIND: Mapping[str, tuple[str, ...]] = {"door": ("lock",), "water": ("valve",)}

# The domains of the entities that can be controlled.
_CONTROLLABLE_DOMAINS = frozenset((
    "alarm_control_panel", "button", "climate", "cover", "fan", "humidifier", "input_boolean", "input_button",
    "input_number", "input_select", "lawn_mower", "light", "lock", "media_player", "number", "scene", "script",
    "select", "siren", "switch", "todo", "vacuum", "valve", "water_heater",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class SentenceMentions:
    """The entities (by their keys), areas and kinds that a sentence names."""

    entities: tuple[str, ...] = ()
    areas: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


class KindNames:
    """The names of kinds of entities, such as "window", in the languages of the home. Not thread-safe."""

    def __init__(self, languages: tuple[str, ...], names: Iterable[tuple[str, str]]) -> None:
        """Build the index from pairs of a kind and one of its names."""
        self._word_splitter = Words(languages)
        self._kinds_by_terms: defaultdict[frozenset[str], set[str]] = defaultdict(set)
        names = tuple(names)
        self.words = frozenset([word for _, name in names for word in clean_text(name).split()])
        for kind, name in names:
            self._kinds_by_terms[frozenset(self._word_splitter.build_term_set(name))].add(kind)

    def find_kinds(self, sentence: str) -> frozenset[str]:
        """Return the kinds that a sentence names, in any grammatical number and case that a stemmer recognizes."""
        terms = self._word_splitter.build_term_set(" ".join(islice(iter_folded_words(sentence), _MAX_SENTENCE_WORDS)))
        return frozenset([kind for words, kinds in self._kinds_by_terms.items() if words <= terms for kind in kinds])


def _is_mentioned(name: str, forms: set[str]) -> bool:
    words = _get_name_forms(name)
    return bool(words) and not any(map(forms.isdisjoint, words))


def _remove_contained_names(names: Iterable[str]) -> frozenset[str]:
    """Return the names whose words are not all part of another one: "Upper Kitchen" does not name "Kitchen"."""
    words = {name: {forms[0] for forms in _get_name_forms(name)} for name in names}
    return frozenset(words) - {name for name, own in words.items() for other in words.values() if own < other}


@lru_cache(maxsize=8192)
def _get_name_forms(name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_get_word_forms, islice(iter_folded_words(name), _MAX_NAME_WORDS)))


def _get_word_forms(word: str) -> tuple[str, ...]:
    """Return the word as it is, and without each ending that it may have."""
    shortest = max(_MIN_STEM_LETTERS, len(word) - _MAX_ENDING_LETTERS)
    return (word, *[word[:end] for end in range(len(word) - 1, shortest - 1, -1)])


def search_entities(
    entities: EntitiesByKey, areas: Iterable[str] = (), domains: Iterable[str] = (), names: Iterable[str] = ()
) -> tuple[EntitiesByKey, list[str]]:
    """Return the entities in these areas, of these domains, and with these names, and the names that match none.

    An empty filter matches all. A name matches the entities that have it as their name, alias or key, or if there are
    none, those whose name contains it. Letter case is ignored.
    """
    if wanted := {area_name(area).casefold() for area in areas}:
        entities = {key: each for key, each in entities.items() if each.area and each.area.casefold() in wanted}
    if wanted := {domain.strip().casefold() for domain in domains}:
        entities = {key: each for key, each in entities.items() if key.partition(".")[0] in wanted}
    called = {format_name(name): name for name in names}
    if not called:
        return entities, []
    folded = {key: (each.name.casefold(), [*map(fold_name, each.names)]) for key, each in entities.items()}
    keys = {
        name: _keys_named(folded, name.casefold(), fold_name(given)) if name else [] for name, given in called.items()
    }
    found = {key: entities[key] for matches in keys.values() for key in matches}
    return found, [name for name, matches in keys.items() if not matches]


def _keys_named(folded: Mapping[str, tuple[str, list[str]]], name: str, as_given: str) -> list[str]:
    """Return the keys of the entities with a name; aliases are compared with the name as the model wrote it."""
    return (
        [key for key, (own, _) in folded.items() if name in (own, key)]
        or [key for key, (_, aliases) in folded.items() if as_given in aliases]
        or [key for key, (own, _) in folded.items() if name in own]
    )


type TokenCountFunction = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class StatesText:
    """The states that a live context lists, by entity key and as text; `created_at` is their time in epoch seconds."""

    text: str = ""
    tokens: int = 0
    state_by_key: Mapping[str, str] = field(default_factory=dict)
    created_at: float = float("inf")


NO_STATES_TEXT = StatesText()


@dataclass(slots=True)
class Home:
    """The exposed entities by their keys, and the names of areas and kinds that sentences use for them."""

    entities: dict[str, EntityState] = field(default_factory=dict)
    names_by_area: Mapping[str, Iterable[str]] = field(default_factory=dict)
    # Empty until the names are loaded.
    kind_names: KindNames = field(default_factory=lambda: KindNames((), ()))

    def get_name_words(self) -> frozenset[str]:
        """Return the words of the names of areas and kinds, casefolded."""
        names = [name for names in self.names_by_area.values() for name in names]
        return self.kind_names.words.union(clean_text(" ".join(names)).split())

    def find_mentions(self, sentence: str) -> SentenceMentions:
        """Return the entities, areas and kinds that a sentence names.

        If several entities have the same name and some of them are in an area that the sentence names, only those are
        returned.
        """
        words = islice(iter_folded_words(sentence), _MAX_SENTENCE_WORDS)
        forms = {form for word in words for form in _get_word_forms(word)}
        areas = _remove_contained_names(
            {area for area, names in self.names_by_area.items() for name in names if _is_mentioned(name, forms)}
        )
        by_name: defaultdict[str, list[str]] = defaultdict(list)
        for key, entity in self.entities.items():
            for name in entity.names:
                if _is_mentioned(name, forms):
                    by_name[name.casefold()].append(key)
        found: set[str] = set()
        for keys in by_name.values():
            found.update([key for key in keys if self.entities[key].area in areas] or keys)
        return SentenceMentions(tuple(sorted(found)), areas, self.kind_names.find_kinds(sentence))

    def may_claim_change(self, sentence: str, answer: str) -> bool:
        """Return whether an answer may claim a change of an entity that a sentence names by its name, kind or area.

        An answer with the current state of each entity that is named by its name claims no change: "it is already on".
        """
        named = self.find_mentions(sentence)
        controllable = {key: each for key, each in self.entities.items() if each.domain in _CONTROLLABLE_DOMAINS}
        by_name = [controllable[key] for key in named.entities if key in controllable]
        if not by_name:
            return any(
                each.area in named.areas or not named.kinds.isdisjoint((each.kind, each.domain))
                for each in controllable.values()
            )
        whole, words = _remove_contained_names(each.name for each in by_name), {*iter_folded_words(answer)}
        return not all(words.issuperset(iter_folded_words(each.state)) for each in by_name if each.name in whole)


def build_states_text(
    entities: EntitiesByKey,
    named: SentenceMentions,
    area: str,
    before: StatesText,
    *,
    limit: int,
    count: TokenCountFunction,
    now: float = 0.0,
) -> StatesText:
    """Return the states that a live context lists, within a limit in tokens.

    `area` is the speaker's area, and `before` are the states of the conversation's last turn. An entity of an uncommon
    domain is listed only if its state is unusual, or if the sentence names it.
    """
    ranked = {
        key: None
        for key in _iter_ranked_keys(entities, named, area, before)
        if not entities[key].is_uncommon or entities[key].category is StateCategory.UNUSUAL or key in named.entities
    }
    return replace(_fit_states_text(entities, ranked, limit, count, before=before), created_at=now)


def build_entity_listing(entities: EntitiesByKey, area: str, limit: int, count: TokenCountFunction) -> StatesText:
    """Return as many entities as fit: unusual ones first, then those of the area. The others are only counted."""

    def sort_key(key: str) -> tuple[bool, bool, str]:
        entity = entities[key]
        return entity.category is not StateCategory.UNUSUAL, entity.area != area, entity.area

    return _fit_states_text(entities, sorted(entities, key=sort_key), limit, count)


def _iter_ranked_keys(entities: EntitiesByKey, named: SentenceMentions, area: str, before: StatesText) -> Iterator[str]:
    """Yield the keys of the entities that a sentence is likely to need, the most important first; some keys twice."""

    def sort_key(key: str) -> tuple[int, bool, str, str]:
        entity = entities[key]
        return _rank_entity(entity, area), entity.area != area, entity.area, entity.name

    by_place: defaultdict[tuple[str, StateCategory], list[str]] = defaultdict(list)
    for key, entity in entities.items():
        by_place[entity.area, entity.category].append(key)
    areas = sorted(named.areas)
    # a sentence that names an entity does not ask for the rest of its area, and one that names a kind does not ask for
    # other usual entities
    open_areas = [each for each in areas if each not in {entities[key].area for key in named.entities}]
    usual = [key for each in open_areas if not named.kinds for key in by_place[each, StateCategory.USUAL]]
    return chain(
        named.entities,
        sorted(_find_keys_of_kinds(entities, named), key=sort_key) if named.kinds else (),
        [key for key, state in before.state_by_key.items() if key in entities and entities[key].state != state],
        *[by_place[each, StateCategory.UNUSUAL] for each in areas],
        *[by_place[each, StateCategory.NEUTRAL] for each in open_areas],
        usual[:_MAX_EARLY_USUAL_COUNT],
        sorted([key for key, each in entities.items() if _rank_entity(each, area) < _UNRANKED], key=sort_key),
        usual,
    )


def _rank_entity(entity: EntityState, area: str) -> int:
    """Return the place in the list of an entity that the sentence does not name, or `_UNRANKED`."""
    is_unusual, is_unknown = entity.category is StateCategory.UNUSUAL, entity.state in UNKNOWN_STATES
    return (
        is_unusual and not is_unknown and entity.kind in _SAFETY_KINDS,
        entity.domain == "person",
        # a cover without a device class is mostly a blind
        is_unusual and not is_unknown and entity.kind != "cover",
        is_unusual and is_unknown,
        bool(area) and entity.area == area and entity.category is not StateCategory.USUAL,
        entity.kind in _INTERESTING_KINDS,
        is_unusual,
        True,
    ).index(True)


def _find_keys_of_kinds(entities: EntitiesByKey, named: SentenceMentions) -> list[str]:
    kinds = named.kinds.union(*[_ACTING_KINDS_BY_KIND.get(kind, ()) for kind in named.kinds])
    return [
        key
        for key, entity in entities.items()
        if (entity.area in named.areas if named.areas else entity.category is not StateCategory.USUAL)
        and (entity.kind in kinds or entity.domain in kinds)
    ]


def _fit_states_text(
    entities: EntitiesByKey,
    ranked: Iterable[str],
    limit: int,
    count: TokenCountFunction,
    *,
    before: StatesText = NO_STATES_TEXT,
) -> StatesText:
    """Return the text with as many of the entities as fit, or an empty text if not even one fits.

    Without room for counts by kind, the text only says how many entities are not listed.
    """
    total = Counter([(each.category, each.label) for each in entities.values()])
    ranked = list(islice(ranked, max(1, limit // _MIN_ENTITY_TOKENS)))
    names = _find_listed_names(entities, ranked)
    for counts_kinds in (True, False):
        chosen = ranked
        while chosen or counts_kinds:
            rest = total - Counter([(entities[key].category, entities[key].label) for key in chosen])
            rest = rest if counts_kinds else Counter({(StateCategory.NEUTRAL, "entities"): rest.total()})
            text = _format_states({key: entities[key] for key in chosen}, names, before, rest)
            tokens = count(text) if text else 0
            if tokens <= limit:
                return StatesText(text, tokens, {key: entities[key].state for key in chosen})
            if not chosen:
                break
            chosen = chosen[: min(len(chosen) - 1, int(len(chosen) * limit / tokens) + 1)]
    return NO_STATES_TEXT


def _find_listed_names(entities: EntitiesByKey, keys: Iterable[str]) -> dict[str, str]:
    """Return the names to list by key. The kind or domain follows a name that several entities of an area share."""
    by_name = Counter([(each.area, each.name) for each in entities.values()])
    by_kind = Counter([(each.area, each.name, each.kind) for each in entities.values()])
    names: dict[str, str] = {}
    for key in keys:
        each = entities[key]
        kind = each.kind if by_kind[each.area, each.name, each.kind] == 1 else each.domain.replace("_", " ")
        names[key] = f"{each.name} ({kind})" if by_name[each.area, each.name] > 1 else each.name
    return names


def _format_states(
    listed: EntitiesByKey, names: Mapping[str, str], before: StatesText, rest: Counter[tuple[StateCategory, str]]
) -> str:
    """Return the listed states by area, then the counts of the remaining unusual entities and the usual states."""
    areas: defaultdict[str, list[str]] = defaultdict(list)
    for key, entity in listed.items():
        areas[entity.area].append(
            f"{names[key]}={entity.state}{_CHANGED_SUFFIX if _has_changed(key, entity, before) else ''}"
        )
    groups = [f"{area or 'no area'}: {', '.join(states)}" for area, states in areas.items()]
    if counts := list(_iter_count_texts(rest)):
        groups.append("not listed: " + ", ".join(counts))
    if usual := _format_usual([label for category, label in rest if category is StateCategory.USUAL]):
        groups.append(f"rest {usual}")
    return " | ".join(groups)


def _has_changed(key: str, entity: EntityState, before: StatesText) -> bool:
    """Return whether a state differs from that in the last turn; a state that was not listed then counts as usual."""
    if key in before.state_by_key:
        return before.state_by_key[key] != entity.state
    return entity.category is StateCategory.UNUSUAL and entity.changed_at > before.created_at


def _iter_count_texts(rest: Counter[tuple[StateCategory, str]]) -> Iterator[str]:
    """Yield the number of entities for each unusual state, then for each kind without a usual state.

    Those without a known state, and those of rare kinds, have one number together: "5 lock/light unavailable".
    """
    numbers, measured = (
        Counter({label: rest[category, label] for category, label in rest if category is each})
        for each in (StateCategory.UNUSUAL, StateCategory.NEUTRAL)
    )
    for state in sorted(UNKNOWN_STATES):
        unknown = [label for label in numbers if label.endswith(f" {state}")]
        if len(unknown) > 1:
            kinds = "/".join(sorted([label.removesuffix(f" {state}") for label in unknown]))
            numbers[f"{kinds} {state}"] = sum(map(numbers.pop, unknown))
    named = measured.most_common(_MAX_COUNTED_KINDS)
    for label, number in (*numbers.most_common(), *named):
        yield f"{number} {label}"
    if others := sorted(measured.keys() - dict(named)):
        yield f"{sum(map(measured.pop, others))} {'/'.join(others)}"


def _format_usual(labels: Iterable[str]) -> str:
    """Return the usual states by kind: "door/window closed, light/switch off"."""
    states_by_kind: defaultdict[str, list[str]] = defaultdict(list)
    for label in sorted(labels):
        kind, _, state = label.rpartition(" ")
        states_by_kind[kind].append(state)
    kinds_by_states: defaultdict[str, list[str]] = defaultdict(list)
    for kind, states in states_by_kind.items():
        kinds_by_states["/".join(states)].append(kind)
    return ", ".join([f"{'/'.join(kinds)} {states}" for states, kinds in kinds_by_states.items()])
