"""The states of the home that a live context lists, because a sentence is likely to need them.

Entities that the sentence names come first, then changes since the conversation's last turn, then unusual states
anywhere, then the speaker's area. The text sums up all the rest: its usual states, and how many others there are.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from .named_entities import Entities, KindWords, NamedEntities, named_entities
from .state_text import UNKNOWN_STATES, EntityState, Standing

# The most tokens of states in a live context.
STATES_TOKENS = 200

# Follows the instructions, so that a model does not look up states that it has.
HINT = (
    "The context before the newest message lists states of the home at this moment; older messages may be out of date. "
    "Answer from these states without a tool. Look up what they do not say."
)

_NO_AREA = "no area"
_BETWEEN = " | "
_CHANGED = " (changed)"
_NOT_LISTED, _REST = "not listed: ", "rest "
_OTHERS = "others"
_MOST_COUNTS = 6
# How many things of a named area are listed as usual before unusual ones elsewhere.
_MOST_USUAL = 5
# The least tokens that an entity costs, so that no more than fit are looked at.
_LEAST_TOKENS = 4
# Kinds that people like to know about although they have no usual state.
_OF_INTEREST = ("person", "alarm control panel", "weather")

type Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class StatesText:
    """The states that a live context lists, by the keys of their entities, as text; `at` is when, in seconds."""

    text: str = ""
    tokens: int = 0
    listed: Mapping[str, str] = field(default_factory=dict)
    at: float = float("inf")


NO_STATES = StatesText()


@dataclass(slots=True)
class Home:
    """The exposed entities by their keys, and the names of areas and kinds by which a sentence asks for them.

    `kinds` is None until the names of kinds have been read.
    """

    entities: dict[str, EntityState] = field(default_factory=dict)
    area_names: Mapping[str, Iterable[str]] = field(default_factory=dict)
    kinds: KindWords | None = None

    def named(self, sentence: str) -> NamedEntities:
        """Return the entities, areas and kinds that a sentence names."""
        return named_entities(sentence, self.entities, self.area_names, self.kinds)


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

    `area` is the speaker's, `before` the states in the conversation's last turn, and `domains` are those that the
    agent gets besides the common ones.
    """
    ranked = dict.fromkeys(
        key
        for key in _ranked(entities, named, area, before)
        if not entities[key].extra or entities[key].extra in domains or key in named.entities
    )
    return replace(_fitting(entities, ranked, limit, count, before=before, domains=domains), at=now)


def build_listing(entities: Entities, area: str, limit: int, count: Count) -> StatesText:
    """Return as many of these entities as fit, the unusual ones first, then those of an area, and how many are left."""

    def order(key: str) -> tuple[bool, bool, str]:
        entity = entities[key]
        return entity.standing is not Standing.UNUSUAL, entity.area != area, entity.area

    return _fitting(entities, sorted(entities, key=order), limit, count)


def _ranked(entities: Entities, named: NamedEntities, area: str, before: StatesText) -> Iterator[str]:
    """Yield the keys of the entities that a sentence is likely to need, the first ones first; some twice."""

    def order(key: str) -> tuple[bool, bool, str, str]:
        entity = entities[key]
        return entity.state in UNKNOWN_STATES, entity.area != area, entity.area, entity.name

    def in_area(area: str, standing: Standing) -> Iterator[str]:
        return (key for key, each in entities.items() if area and each.area == area and each.standing is standing)

    areas = sorted(named.areas)
    # who names a thing asks for no more of its area, and who names a kind for nothing else that is as usual
    open_areas = [each for each in areas if each not in {entities[key].area for key in named.entities}]
    usual = chain.from_iterable(in_area(each, Standing.USUAL) for each in open_areas if not named.kinds)
    return chain(
        named.entities,
        sorted(_of_named_kinds(entities, named), key=order),
        (key for key, state in before.listed.items() if key in entities and entities[key].state != state),
        *(in_area(each, Standing.UNUSUAL) for each in areas),
        *(in_area(each, Standing.MEASURED) for each in open_areas),
        islice(usual, _MOST_USUAL),
        sorted((key for key, each in entities.items() if each.standing is Standing.UNUSUAL), key=order),
        in_area(area, Standing.MEASURED),
        *((key for key, each in entities.items() if each.kind == kind) for kind in _OF_INTEREST),
        usual,
    )


def _of_named_kinds(entities: Entities, named: NamedEntities) -> Iterator[str]:
    for key, entity in entities.items():
        is_meant = entity.area in named.areas if named.areas else entity.standing is not Standing.USUAL
        if is_meant and (entity.kind in named.kinds or entity.domain in named.kinds):
            yield key


def _fitting(
    entities: Entities,
    ranked: Iterable[str],
    limit: int,
    count: Count,
    *,
    before: StatesText = NO_STATES,
    domains: Collection[str] | None = None,
) -> StatesText:
    """Return the text with as many of the entities as fit, or no text if not even the counts do."""
    total = _counted(entities.values(), domains)
    chosen = list(islice(ranked, max(1, limit // _LEAST_TOKENS)))
    while True:
        rest = total - _counted((entities[key] for key in chosen), domains)
        text = _text({key: entities[key] for key in chosen}, before, rest)
        tokens = count(text) if text else 0
        if tokens <= limit:
            return StatesText(text, tokens, {key: entities[key].state for key in chosen})
        if not chosen:
            return NO_STATES
        chosen = chosen[: min(len(chosen) - 1, int(len(chosen) * limit / tokens) + 1)]


def _counted(entities: Iterable[EntityState], domains: Collection[str] | None) -> Counter[tuple[bool, str]]:
    """Return the number of entities by whether they are as usual, and by label.

    Those of domains that the agent does not get are counted as others. Without `domains` it gets all.
    """
    return Counter(
        (False, _OTHERS)
        if each.extra and domains is not None and each.extra not in domains
        else (each.standing is Standing.USUAL, each.label)
        for each in entities
    )


def _text(listed: Entities, before: StatesText, rest: Counter[tuple[bool, str]]) -> str:
    """Return the states by area, the counts of the unusual rest, and the states of the usual rest."""
    areas: defaultdict[str, list[str]] = defaultdict(list)
    for key, entity in listed.items():
        areas[entity.area].append(
            f"{entity.name}={entity.state}{_CHANGED if _has_changed(key, entity, before) else ''}"
        )
    groups = [f"{area or _NO_AREA}: {', '.join(states)}" for area, states in areas.items()]
    if counts := Counter({label: number for (is_usual, label), number in rest.items() if not is_usual}):
        groups.append(_NOT_LISTED + ", ".join(_counts(counts)))
    if usual := sorted(label for is_usual, label in rest if is_usual):
        groups.append(_REST + ", ".join(usual))
    return _BETWEEN.join(groups)


def _has_changed(key: str, entity: EntityState, before: StatesText) -> bool:
    """Return whether a state is another than in the last turn; one that was not listed then was as usual."""
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
