"""The home of one moment, and which of its states a sentence is likely to need: the live context lists these.

What the sentence names comes first, then what has changed since the conversation's last turn, then what is not as
usual anywhere, then the speaker's area. Of all the rest the text says what is true, or how many there are.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, islice

from .asked import Asked, KindWords, NameIndex

# The most tokens of states in a live context.
STATES_TOKENS = 200

# Follows the instructions, so that a model does not look up what it has.
HINT = (
    "The context before the newest message lists states of the home at this moment; older messages may be out of date. "
    "Answer from these states without a tool. Look up what they do not say."
)

_NO_AREA = "no area"
_BETWEEN = " | "
_CHANGED = " (changed)"
_NOT_LISTED, _REST = "not listed: ", "rest "
_MEASUREMENTS, _OTHERS = "measurements", "others"
_MOST_COUNTS = 6
# How many things of a named area are listed as usual before what is unusual elsewhere.
_MOST_USUAL = 5
# The least tokens that an entity costs, so that no more than fit are looked at.
_LEAST_TOKENS = 4
# What people like to know although it has no usual state.
_OF_INTEREST = ("person", "alarm control panel", "weather")
_SAYS_NOTHING = frozenset({"unavailable", "unknown"})

type Count = Callable[[str], int]


class Standing(StrEnum):
    """The standing of an entity: as usual, not as usual, or without a usual state."""

    USUAL = "usual"
    UNUSUAL = "unusual"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class EntityState:
    """An entity as a request lists it: its texts hold no separators.

    `kind` is its device class or domain. `extra` is its domain if only agents that were given this domain get it.
    `changed` is when its text has changed, in seconds since the epoch.
    """

    area: str
    name: str
    state: str
    kind: str = ""
    standing: Standing = Standing.MEASURED
    changed: float = 0.0
    domain: str = ""
    extra: str = ""

    @property
    def word(self) -> str:
        """The state without its details, such as "on" of "on 50%"."""
        return self.state.partition(" ")[0]

    @property
    def label(self) -> str:
        """What it is counted as: "measurements", "light on", or for a usual one "off"."""
        if self.standing is Standing.USUAL:
            return self.word
        if self.standing is Standing.UNUSUAL:
            is_low = self.kind == "battery" and self.state not in _SAYS_NOTHING
            return f"{self.kind} {'low' if is_low else self.word}"
        return _MEASUREMENTS if self.domain == "sensor" else self.kind


@dataclass(frozen=True, slots=True)
class States:
    """The states that a live context lists, by the keys of their entities, as text; `at` is when, in seconds."""

    text: str = ""
    tokens: int = 0
    listed: Mapping[str, str] = field(default_factory=dict)
    at: float = float("inf")


NO_STATES = States()


class Home:
    """The exposed entities, by what sentences ask for, so that a turn need not look at all of them."""

    def __init__(self) -> None:
        self.entities: dict[str, EntityState] = {}
        self.names = NameIndex()
        # The names of kinds, None until they are known.
        self.kinds: KindWords | None = None
        self._unusual: dict[str, None] = {}
        self._in_area: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._of_kind: defaultdict[str, dict[str, None]] = defaultdict(dict)
        # How many entities there are of each domain that only some agents get, standing and label.
        self._counts = Counter[tuple[str, Standing, str]]()

    def put(self, key: str, entity: EntityState) -> None:
        """Add an entity, or replace its state."""
        before = self.entities.get(key)
        if before is not None and (before.area, before.kind, before.domain) != (
            entity.area,
            entity.kind,
            entity.domain,
        ):
            self.drop(key)
        elif before is not None:
            self._count(before, -1)
        self.entities[key] = entity
        self._count(entity, 1)
        self._in_area[entity.area][key] = None
        for kind in (entity.kind, entity.domain):
            self._of_kind[kind][key] = None
        if entity.standing is Standing.UNUSUAL:
            self._unusual[key] = None
        else:
            self._unusual.pop(key, None)

    def drop(self, key: str) -> None:
        """Forget an entity."""
        entity = self.entities.pop(key, None)
        if entity is not None:
            self._count(entity, -1)
            for group in (
                self._unusual,
                self._in_area[entity.area],
                *(self._of_kind[kind] for kind in (entity.kind, entity.domain)),
            ):
                group.pop(key, None)

    def _count(self, entity: EntityState, number: int) -> None:
        self._counts[entity.extra, entity.standing, entity.label] += number

    def asked(self, said: str) -> Asked:
        """Return the entities, areas and kinds that a sentence names."""
        return self.names.asked(said, self.kinds.named(said) if self.kinds else frozenset())

    def ranked(self, asked: Asked, area: str, changed: Iterable[str]) -> Iterator[str]:
        """Yield the keys of the entities that a sentence is likely to need, the first ones first; some twice."""
        unusual = sorted(self._unusual, key=lambda key: self._order(key, area))
        # who names a thing asks for no more of its area, and who names a kind for nothing else that is as usual
        areas = sorted(asked.areas)
        whole = [each for each in areas if each not in {self.entities[key].area for key in asked.entities}]
        usual = chain.from_iterable(self._in(each, Standing.USUAL) for each in whole if not asked.kinds)
        return chain(
            asked.entities,
            sorted(self._asked_by_kind(asked), key=lambda key: self._order(key, area)),
            changed,
            *(self._in(each, Standing.UNUSUAL) for each in areas),
            *(self._in(each, Standing.MEASURED) for each in whole),
            islice(usual, _MOST_USUAL),
            unusual,
            self._in(area, Standing.MEASURED),
            *(self._of_kind[kind] for kind in _OF_INTEREST),
            usual,
        )

    def _in(self, area: str, standing: Standing) -> Iterator[str]:
        """Return the entities of an area with this standing, none of no area."""
        keys = self._in_area[area] if area else ()
        return (key for key in keys if self.entities[key].standing is standing)

    def _asked_by_kind(self, asked: Asked) -> Iterator[str]:
        for key in chain.from_iterable(self._of_kind[kind] for kind in asked.kinds if kind in self._of_kind):
            entity = self.entities[key]
            if entity.area in asked.areas if asked.areas else entity.standing is not Standing.USUAL:
                yield key

    def _order(self, key: str, area: str) -> tuple[bool, bool, str, str]:
        entity = self.entities[key]
        return entity.state in _SAYS_NOTHING, entity.area != area, entity.area, entity.name

    def left(self, listed: Collection[str], domains: Collection[str]) -> tuple[Counter[str], list[str]]:
        """Return the number of entities that are not listed, by label, and the usual states of the rest.

        Those of domains that the agent does not get are counted as others, as nothing is said of them.
        """
        counts = self._counts.copy()
        counts.subtract((each.extra, each.standing, each.label) for each in (self.entities[key] for key in listed))
        left, usual = Counter[str](), set[str]()
        for (extra, standing, label), number in (+counts).items():
            if extra and extra not in domains:
                left[_OTHERS] += number
            elif standing is Standing.USUAL:
                usual.add(label)
            else:
                left[label] += number
        return left, sorted(usual)


def states_of(
    home: Home,
    asked: Asked,
    area: str,
    before: States,
    *,
    limit: int,
    count: Count,
    domains: Collection[str] = (),
    now: float = 0.0,
) -> States:
    """Return the states that a live context lists, within a limit in tokens.

    `area` is the speaker's, `before` what the conversation's last turn has listed, and `domains` are those that the
    agent gets besides what people often ask about.
    """
    entities = home.entities
    changed = [key for key, text in before.listed.items() if key in entities and entities[key].state != text]

    def is_sent(key: str) -> bool:
        return not entities[key].extra or entities[key].extra in domains or key in asked.entities

    ranked = dict.fromkeys(filter(is_sent, home.ranked(asked, area, changed)))
    chosen = list(islice(ranked, max(1, limit // _LEAST_TOKENS)))
    marked = {key for key in chosen if key in changed or _is_new(key, entities[key], before)}

    def text(chosen: Collection[str]) -> str:
        return _text(entities, chosen, marked, *home.left(chosen, domains))

    return replace(_fitting(entities, chosen, text, limit, count), at=now)


def _is_new(key: str, entity: EntityState, before: States) -> bool:
    """Return whether an entity that the last turn did not list, because it was usual, has changed since."""
    return key not in before.listed and entity.standing is Standing.UNUSUAL and entity.changed > before.at


def listing(entities: Mapping[str, EntityState], area: str, limit: int, count: Count) -> States:
    """Return as many of these entities as fit, the unusual ones first, then those of an area, and how many are left."""

    def order(key: str) -> tuple[bool, bool, str]:
        entity = entities[key]
        return entity.standing is not Standing.UNUSUAL, entity.area != area, entity.area

    ranked = sorted(entities, key=order)

    def text(chosen: Collection[str]) -> str:
        rest = [entities[key] for key in entities.keys() - chosen]
        left = Counter(each.label for each in rest if each.standing is not Standing.USUAL)
        usual = sorted({each.label for each in rest if each.standing is Standing.USUAL})
        return _text(entities, chosen, (), left, usual)

    return _fitting(entities, ranked[: max(1, limit // _LEAST_TOKENS)], text, limit, count)


def _fitting(
    entities: Mapping[str, EntityState],
    chosen: list[str],
    text: Callable[[Collection[str]], str],
    limit: int,
    count: Count,
) -> States:
    """Return the text with as many of the chosen entities as fit, or no text if not even the counts do."""
    while True:
        written = text(chosen)
        tokens = count(written) if written else 0
        if tokens <= limit:
            return States(written, tokens, {key: entities[key].state for key in chosen})
        if not chosen:
            return NO_STATES
        chosen = chosen[: min(len(chosen) - 1, int(len(chosen) * limit / tokens) + 1)]


def _text(
    entities: Mapping[str, EntityState],
    chosen: Iterable[str],
    marked: Collection[str],
    left: Mapping[str, int],
    usual: Collection[str],
) -> str:
    """Return the states by area, the counts of what is not listed, and what is true of the rest."""
    areas: defaultdict[str, list[str]] = defaultdict(list)
    for key in chosen:
        entity = entities[key]
        areas[entity.area].append(f"{entity.name}={entity.state}{_CHANGED if key in marked else ''}")
    groups = [f"{area or _NO_AREA}: {', '.join(states)}" for area, states in areas.items()]
    if left:
        groups.append(_NOT_LISTED + ", ".join(_counts(left)))
    if usual:
        groups.append(_REST + ", ".join(usual))
    return _BETWEEN.join(groups)


def _counts(left: Mapping[str, int]) -> Iterator[str]:
    named = Counter({label: number for label, number in left.items() if label != _OTHERS})
    most = named.most_common(_MOST_COUNTS)
    for label, number in most:
        yield f"{number} {label}"
    if others := sum(left.values()) - sum(number for _, number in most):
        yield f"{others} {_OTHERS}"
