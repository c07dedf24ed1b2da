"""What the context of a request says of the home: a list of states first, then what has changed since.

[CONTEXT: time: ...; states: Kitchen: Lamp=on 60%, Door=closed | more, not listed: Garage 12]
[CONTEXT: time: ...; states changed: Kitchen: Lamp=off | no longer there: Blind | more changed: Garage 3]

An agent may write the list into the system prompt instead, below "## States".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
import re

from .conversation import Call, Result, Turn
from .outcome import outcome

_ALL, _CHANGED = "states", "states changed"
_GONE, _REST, _REST_CHANGED = "no longer there", "more, not listed", "more changed"
_NO_ENTITIES = frozenset({_GONE, _REST, _REST_CHANGED})
_SWITCHES = {"HassTurnOn": "on", "HassTurnOff": "off"}
_ELSEWHERE = "elsewhere"
_COUNTED = re.compile(r"(?P<area>.+) \d+")
_SECTION = re.compile(r"^## States\n(?P<kind>states): (?P<text>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Known:
    """A state as it was told, with the area that it was listed under; a call says only whether something is on."""

    area: str
    state: str
    by_call: bool = False

    def is_so(self, state: str) -> bool:
        """Return whether an entity that is in this state is as it was told."""
        return self.state == (state.partition(" ")[0] if self.by_call else state)


@dataclass(frozen=True, slots=True)
class Telling:
    """What one message tells: `states` by name, names that are gone, and the areas of which not all was told.

    `more` is None if it is not said where more has changed. `is_list` is whether it lists the home.
    """

    is_list: bool
    states: dict[str, Known]
    gone: tuple[str, ...] = ()
    more: frozenset[str] | None = frozenset()


@dataclass(slots=True)
class KnownHome:
    """What is known for certain: the states by name, and the areas of which more is there than is known.

    `incomplete` is None as long as nothing was listed.
    """

    states: dict[str, Known] = field(default_factory=dict)
    incomplete: frozenset[str] | None = None

    def state_of(self, name: str) -> str | None:
        """Return the state of an entity, or None if it is not known for certain; letter case does not count."""
        found = [known.state for each, known in self.states.items() if each.lower() == name.lower()]
        return found[0] if len(found) == 1 else None

    def states_in(self, area: str | None, word: str) -> dict[str, str]:
        """Return the states of an area, None for all, of those with the word in their name."""
        return {
            name: known.state
            for name, known in self.states.items()
            if area in (None, known.area.lower()) and word in name.lower()
        }

    def knows_all(self, area: str | None = None) -> bool:
        """Return whether every state of an area, None for all areas, is known."""
        if self.incomplete is None:
            return False
        incomplete = {each.lower() for each in self.incomplete}
        return not incomplete if area is None else incomplete.isdisjoint({area, _ELSEWHERE})

    def learn(self, told: Telling) -> None:
        """Take in what a later message tells: what may have changed without being told is not known any more."""
        if not told.is_list:
            self.states = {name: each for name, each in self.states.items() if _is_sure(each, told.more)}
        for name in told.gone:
            self.states.pop(name, None)
        # what is switched before anything was told is looked at again
        if self.states or self.incomplete is not None or not any(each.by_call for each in told.states.values()):
            self.states |= {name: self._in_its_area(name, each) for name, each in told.states.items()}
        more = frozenset({_ELSEWHERE}) if told.more is None else told.more
        if told.is_list:
            self.incomplete = more
        elif self.incomplete is not None:
            self.incomplete |= more

    def _in_its_area(self, name: str, known: Known) -> Known:
        before = self.states.get(name)
        return replace(known, area=before.area) if known.by_call and before else known


def _is_sure(known: Known, more: frozenset[str] | None) -> bool:
    # where something stands that was only switched is not known
    return more is not None and not (more and not known.area) and more.isdisjoint({known.area, _ELSEWHERE})


def known_home(turns: Iterable[Turn]) -> KnownHome:
    """Return what the messages tell of the home; what stands later counts."""
    home = KnownHome()
    for told in tellings(turns):
        home.learn(told)
    return home


def tellings(turns: Iterable[Turn]) -> Iterator[Telling]:
    """Yield what each message tells of the home, those that tell nothing left out.

    A call that has switched something tells how it is since then.
    """
    turns = tuple(turns)
    results = {turn.call_id: turn.text for turn in turns if turn.role == "tool"}
    for turn in turns:
        if turn.role == "system":
            yield from (_telling(found["kind"], found["text"]) for found in _SECTION.finditer(turn.text))
        elif turn.role == "user":
            yield from (_telling(kind, turn.context[kind]) for kind in (_ALL, _CHANGED) if kind in turn.context)
        else:
            yield from (_switching(call) for call in turn.calls if _has_switched(call, results.get(call.id)))


def _has_switched(call: Call, result: str | None) -> bool:
    switches = call.name.split("__")[-1] in _SWITCHES and isinstance(call.arguments.get("name"), str)
    return switches and result is not None and not outcome(Result(call, result)).error


def _switching(call: Call) -> Telling:
    state = _SWITCHES[call.name.split("__")[-1]]
    return Telling(is_list=False, states={str(call.arguments["name"]): Known("", state, by_call=True)})


def _telling(kind: str, text: str) -> Telling:
    if text.isdigit():
        return Telling(is_list=False, states={}, more=None)
    groups = {area: listed.split(", ") for area, _, listed in (each.partition(": ") for each in text.split(" | "))}
    areas = groups.keys() - _NO_ENTITIES
    told = ((area, *each.split("=", 1)) for area in areas for each in groups[area] if "=" in each)
    counted = (_COUNTED.fullmatch(each) for rest in (_REST, _REST_CHANGED) for each in groups.get(rest, ()))
    return Telling(
        is_list=kind == _ALL,
        states={name: Known(area, state) for area, name, state in told},
        gone=tuple(groups.get(_GONE, ())),
        more=frozenset(found["area"] for found in counted if found),
    )
