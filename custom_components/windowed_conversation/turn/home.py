"""What a turn tells of the home: all of it at first, then what has changed since what the window still holds."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import chain

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
class Telling:
    """What a turn tells the model about the home. With `anew`, everything told before leaves the window."""

    text: str = ""
    tokens: int = 0
    states: Mapping[str, str] = field(default_factory=dict)
    is_snapshot: bool = False
    is_complete: bool = False
    anew: bool = False


NOTHING = Telling()


@dataclass(frozen=True, slots=True)
class Focus:
    """What matters most in a turn: the entities that are asked for, then those of some areas, then the newest."""

    entities: AbstractSet[str] = frozenset()
    areas: AbstractSet[str] = frozenset()

    def rank(self, key: str, entity: EntityState) -> tuple[int, float]:
        """Return what sorts entities, what matters most first."""
        return 0 if key in self.entities else 1 if entity.area in self.areas else 2, -entity.changed


@dataclass(frozen=True, slots=True)
class States:
    text: str = ""
    tokens: int = 0
    listed: Mapping[str, str] = field(default_factory=dict)


NO_STATES = States()
STATES_TOKENS = 200


def states_of(home, asked, area, before, limit, count):
    t = _snapshot(home.entities, Focus(asked.entities, asked.areas | ({area} if area else set())), limit, count)
    return States(t.text.removeprefix("; states: "), t.tokens, t.states)


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
