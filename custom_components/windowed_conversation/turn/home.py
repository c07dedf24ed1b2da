"""What a turn tells of the home: all of it at first, then what has changed since what the window still holds."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import chain

from ..window import Exchange, Told, all_told, outdated, tells, told_by
from .asked import Asked

# The most tokens of states at first, and of changes in a later turn.
SNAPSHOT_TOKENS = 300
CHANGES_TOKENS = 50
# The part of a window's budget that a snapshot may take.
SNAPSHOT_SHARE = 0.15

# Follows the states in the message, so that a model does not look them up again.
HINT = (
    "The context before a message may list states of the home. They are live context of the moment of that message, "
    "and what a later message lists replaces them. Answer from them without a tool; use one for what is not listed."
)

_STATES, _CHANGED, _GONE = "states", "states changed", "no longer there"
_MORE, _MORE_CHANGED = "more, not listed", "more changed"
_NO_AREA, _ELSEWHERE = "no area", "elsewhere"
_BETWEEN_AREAS = " | "
_MOST_AREAS_COUNTED = 6
# The least tokens that an entity costs, so that no more than fit are looked at.
_LEAST_TOKENS = 3
# This number of entities appears at once only when a home starts.
_MANY = 10

NOT_ASKED = Asked()

type Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class EntityState:
    """An entity as it may be told: names and state hold nothing that separates. `changed` is when, in seconds."""

    area: str
    name: str
    state: str
    changed: float = 0.0
    # The state's text, as a window records it.
    told: str = field(init=False)

    def __post_init__(self) -> None:
        """Write how it is noted."""
        object.__setattr__(self, "told", f"{self.area}|{self.name}={self.state}")

    @property
    def doubtful(self) -> str:
        """How it is noted when the window may say more than one thing of it: the next turn tells its state."""
        return f"{self.area}|{self.name}=?"


@dataclass(frozen=True, slots=True)
class Home:
    """The home of one moment: the entities that may be told, and of those that may not, whether they exist.

    `asked` returns what a sentence names.
    """

    entities: Mapping[str, EntityState]
    exists: Callable[[str], bool] = lambda key: False
    asked: Callable[[str], Asked] = lambda said: NOT_ASKED


@dataclass(frozen=True, slots=True)
class Limits:
    """How many tokens states and changes may cost."""

    snapshot: int = SNAPSHOT_TOKENS
    changes: int = CHANGES_TOKENS

    def within(self, history_tokens: int) -> Limits:
        """Return the limits in a window with this budget."""
        most = int(history_tokens * SNAPSHOT_SHARE)
        return Limits(min(self.snapshot, most), min(self.changes, most))


@dataclass(frozen=True, slots=True)
class Held:
    """The states that a window holds for certain, as they were told, empty for an entity that was removed.

    `sent` are those of all exchanges, also of those that may be evicted in the turn. `doubted` are entities of which a
    model cannot know whether they have changed, because a later message only counted changes. `is_complete` is True if
    the snapshot left no entity out.
    """

    states: Mapping[str, str] = field(default_factory=dict)
    sent: Mapping[str, str] = field(default_factory=dict)
    has_snapshot: bool = False
    is_complete: bool = False
    doubted: AbstractSet[str] = frozenset()

    def missing(self, entities: Mapping[str, EntityState]) -> dict[str, str]:
        """Return the entities that the model was told about and that are not among these, with what it was told."""
        known = [each for each in (self.sent, self.states) if each.keys() - entities.keys()]
        return {key: told for each in known for key, told in each.items() if told and key not in entities}

    def stale(self, entities: Mapping[str, EntityState]) -> list[str]:
        """Return the entities whose states differ from what the model was told."""
        both = (*self.states.items(), *self.sent.items())
        return list({key: None for key, told in both if key in entities and entities[key].told != told})


@dataclass(frozen=True, slots=True)
class Telling:
    """What a turn tells the model about the home. With `anew`, everything told before leaves the window."""

    text: str = ""
    tokens: int = 0
    states: Mapping[str, str] = field(default_factory=dict)
    is_snapshot: bool = False
    is_complete: bool = False
    anew: bool = False

    def told(self, start: int) -> Told | None:
        """Return what an exchange notes of it if it begins there in the text, or None if there is nothing to say."""
        if not self.text:
            return None
        end = start + len(self.text)
        return Told(start, end, self.tokens, self.states, self.is_snapshot, self.is_complete)


NOTHING = Telling()


def held(exchanges: Sequence[Exchange], staying: Iterable[Exchange], excluded_tags: Collection[str] = ()) -> Held:
    """Return what is held of these exchanges when only some of them stay, and those with an excluded tag are not sent.

    All are given oldest first.
    """
    telling = [exchange for exchange in exchanges if tells(exchange)]
    if not telling:
        return Held()
    numbers = {exchange.number for exchange in staying}
    evicted = [exchange for exchange in telling if exchange.number not in numbers]
    leaving = {exchange.number for exchange in (*evicted, *outdated(telling, evicted))}
    sent = [exchange for exchange in telling if exchange.tags.isdisjoint(excluded_tags)]
    kept = [exchange for exchange in sent if exchange.number not in leaving]
    snapshots = [told for told in map(told_by, kept) if told is not None and told.is_snapshot]
    is_complete = bool(snapshots) and snapshots[-1].is_complete
    return Held(_folded(kept), _folded(sent), bool(snapshots), is_complete, _doubted(kept))


def _doubted(exchanges: Iterable[Exchange]) -> set[str]:
    """Return the entities that were told before changes were only counted, and not since."""
    states, doubted = set[str](), set[str]()
    for exchange in exchanges:
        changes = told_by(exchange)
        if changes is not None and not changes.is_snapshot and not changes.is_complete:
            doubted |= states
        for told in all_told(exchange):
            states.update(told.states)
            doubted.difference_update(told.states)
    return doubted


def _folded(exchanges: Iterable[Exchange]) -> dict[str, str]:
    """Return the states as they were told last."""
    states: dict[str, str] = {}
    for told in chain.from_iterable(map(all_told, exchanges)):
        states.update(told.states)
    return states


@dataclass(frozen=True, slots=True)
class Focus:
    """What matters most in a turn: the entities that are asked for, then those of some areas, then the newest."""

    entities: AbstractSet[str] = frozenset()
    areas: AbstractSet[str] = frozenset()

    def rank(self, key: str, entity: EntityState) -> tuple[int, float]:
        """Return what sorts entities, what matters most first."""
        return 0 if key in self.entities else 1 if entity.area in self.areas else 2, -entity.changed


def tell(home: Home, known: Held, area: str, limits: Limits, count: Count, *, asked: Asked = NOT_ASKED) -> Telling:
    """Return what a turn tells; `area` is the speaker's, empty if that is unknown.

    It includes what is asked for if the window does not hold it for certain.
    """
    focus = Focus(asked.entities, asked.areas | {area} if area else asked.areas)
    missing = known.missing(home.entities)
    new = home.entities.keys() - known.states.keys() if known.is_complete else set[str]()
    is_hidden = any(map(home.exists, missing))
    if is_hidden or not known.has_snapshot or len(new) > max(len(known.states), _MANY):
        telling = _snapshot(home.entities, focus, limits.snapshot, count)
        # remove from the window what must not be told, and what the snapshot does not replace
        return replace(telling, anew=bool(missing) or not telling.states.keys() >= set(known.stale(home.entities)))
    stale = known.stale(home.entities)
    new |= (asked.entities & home.entities.keys()) - (known.states.keys() - known.doubted)
    return _changes(_Changes(home.entities, missing, stale, new.difference(stale)), focus, limits.changes, count)


def listing(entities: Mapping[str, EntityState], area: str, limit: int, count: Count) -> Telling:
    """Return as many of these entities as fit, as a snapshot lists them; the text has only them and the counts."""
    telling = _snapshot(entities, Focus(areas=frozenset({area} if area else ())), limit, count)
    return replace(telling, text=telling.text.removeprefix(f"; {_STATES}: "))


def _snapshot(entities: Mapping[str, EntityState], focus: Focus, limit: int, count: Count) -> Telling:
    if not entities:
        return NOTHING
    most = max(1, limit // _LEAST_TOKENS)
    chosen = nsmallest(most, entities, key=lambda key: focus.rank(key, entities[key]))
    counts = Counter(entity.area for entity in entities.values())
    while True:
        rest = counts - Counter(entities[key].area for key in chosen)
        text = _text(_STATES, (entities[key] for key in chosen), (), rest, _MORE)
        tokens = count(text)
        if tokens <= limit:
            break
        if not chosen:
            return NOTHING
        chosen = chosen[: _fewer(len(chosen), tokens, limit)]
    states = {key: entities[key].told for key in chosen}
    return Telling(text, tokens, states, is_snapshot=True, is_complete=not rest)


@dataclass(frozen=True, slots=True)
class _Changes:
    """Which entities have changed since they were told, are no longer there, or are new."""

    entities: Mapping[str, EntityState]
    missing: Mapping[str, str]
    stale: Collection[str]
    new: AbstractSet[str]

    def ranked(self, focus: Focus) -> list[str]:
        """Return them all, what matters most first."""

        def rank(key: str) -> tuple[int, float]:
            return focus.rank(key, self.entities[key])

        asked = self.new & focus.entities
        return [*sorted((*self.stale, *asked), key=rank), *self.missing, *sorted(self.new - asked, key=rank)]

    def area_of(self, key: str) -> str:
        """Return the area of an entity, or the one that it was in."""
        return self.entities[key].area if key in self.entities else self.missing[key].partition("|")[0]

    def name_of(self, key: str) -> str:
        """Return the name that an entity had which is no longer there."""
        return self.missing[key].partition("|")[2].partition("=")[0]


def _changes(changes: _Changes, focus: Focus, limit: int, count: Count) -> Telling:
    chosen = ranked = changes.ranked(focus)
    if not ranked:
        return NOTHING
    chosen = ranked[: max(1, limit // _LEAST_TOKENS)]
    while True:
        there = [changes.entities[key] for key in chosen if key in changes.entities]
        removed = [changes.name_of(key) for key in chosen if key not in changes.entities]
        rest = Counter(changes.area_of(key) for key in ranked[len(chosen) :])
        text = _text(_CHANGED, there, removed, rest, _MORE_CHANGED)
        tokens = count(text)
        if tokens <= limit or not chosen:
            break
        chosen = chosen[: _fewer(len(chosen), tokens, limit)]
    if tokens > limit:
        text = f"; {_CHANGED}: {len(ranked)}"
        tokens = count(text)
    states = {key: changes.entities[key].told if key in changes.entities else "" for key in chosen}
    return Telling(text, tokens, states, is_complete=len(chosen) == len(ranked))


def _fewer(chosen: int, tokens: int, limit: int) -> int:
    """Return how many to try next when this number has cost too much."""
    return min(chosen - 1, int(chosen * limit / tokens) + 1)


def _text(
    name: str, entities: Iterable[EntityState], removed: Sequence[str], rest: Mapping[str, int], more: str
) -> str:
    """Return the part of the prefix that lists these entities by area, and counts the rest."""
    areas: dict[str, list[str]] = {}
    for entity in entities:
        areas.setdefault(entity.area, []).append(f"{entity.name}={entity.state}")
    groups = [f"{area or _NO_AREA}: {', '.join(states)}" for area, states in areas.items()]
    if removed:
        groups.append(f"{_GONE}: {', '.join(removed)}")
    if any(rest.values()):
        groups.append(f"{more}: {', '.join(_counts(rest))}")
    return f"; {name}: {_BETWEEN_AREAS.join(groups)}"


def _counts(rest: Mapping[str, int]) -> list[str]:
    most = Counter(rest).most_common()
    elsewhere = sum(number for _, number in most[_MOST_AREAS_COUNTED:])
    counted = [f"{area or _NO_AREA} {number}" for area, number in most[:_MOST_AREAS_COUNTED]]
    return [*counted, f"{_ELSEWHERE} {elsewhere}"] if elsewhere else counted
