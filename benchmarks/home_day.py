"""A home of any size and a day in it: state changes, and people's questions and commands. It is always the same.

The home: every area has the same kinds of entities, taken from `_KINDS` in order: 7 in each area of the small home, 17
in the middle one, and 33 in the large one. Each is exposed to Assist, and its name begins with the name of its area.

Changes: 20 times a day for each entity, evenly over the day. 90 % of the changes are measurements that move within
rounding. The others are real: a light, a door, a motion, a degree.

Sentences: a hundred, with the number of each kind in `_MIX`. In one of two cases, a question or command is about an
entity in the speaker's area, otherwise about any entity of the home; three areas have a satellite. All sentences reach
the model, because Home Assistant's own answers cause no request. `TALKS` has the lengths of the conversations, which
begin evenly over the day; two sentences of a conversation are twenty seconds apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import Random
from typing import Any

DAY = 86_400.0
SENTENCES = 100
CHANGES_A_DAY = 20
WITHIN_ROUNDING = 0.9
_PAUSE = 20.0
_SATELLITES = 3
_IN_SPEAKERS_AREA = 0.5
_SEED = 15
# The number of conversations on the second day, and the share of entities that are not in their usual state then.
_SECOND_TALKS = 10
_ODD = 0.05

_THINGS_IN_AREA = {20: 7, 200: 17, 2_000: 33}
_ROOMS = (
    "Kitchen", "Living Room", "Bedroom", "Bathroom", "Hall", "Office", "Garage", "Nursery", "Cellar", "Laundry",
)  # fmt: skip
_FLOORS = ("", "Upper ", "Lower ", "Eastern ", "Western ", "Northern ", "Southern ")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of entity: its possible `states` or its measured value, and the word for its state in a question."""

    domain: str
    name: str
    states: tuple[str, ...] = ()
    value: float = 0.0
    # `jitter` is the range of changes within rounding, `step` is the size of a real change.
    jitter: float = 0.0
    step: float = 0.0
    attributes: dict[str, Any] = field(default_factory=dict, hash=False)
    asked: str = ""


def _sensor(name: str, unit: str, value: float, jitter: float, step: float) -> Kind:
    attributes = {"unit_of_measurement": unit, "device_class": name.rsplit(maxsplit=1)[-1]}
    return Kind("sensor", name, value=value, jitter=jitter, step=step, attributes=attributes)


def _detector(name: str, device_class: str, asked: str) -> Kind:
    return Kind("binary_sensor", name, ("off", "on"), attributes={"device_class": device_class}, asked=asked)


_KINDS = (
    Kind("light", "ceiling light", ("off", "on"), asked="on"),
    _sensor("temperature", "°C", 21.0, 0.2, 1.0),
    _detector("window", "window", "open"),
    Kind("light", "floor light", ("off", "on"), asked="on"),
    _sensor("humidity", "%", 50.0, 0.4, 3.0),
    Kind("switch", "socket", ("off", "on"), asked="on"),
    Kind("cover", "blind", ("closed", "open"), asked="open"),
    _detector("door", "door", "open"),
    _sensor("socket power", "W", 120.0, 0.4, 30.0),
    Kind("lock", "lock", ("locked", "unlocked"), asked="locked"),
    Kind("media_player", "speaker", ("off", "playing"), asked="playing"),
    _detector("motion", "motion", "on"),
)


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity of the home."""

    entity_id: str
    name: str
    area: str
    kind: Kind

    @property
    def initial(self) -> str:
        """The state at the beginning of the day."""
        return self.kind.states[0] if self.kind.states else f"{self.kind.value:.2f}"


@dataclass(frozen=True, slots=True)
class Change:
    """A new state of an entity; `is_real` is False if it rounds to the previous one."""

    entity_id: str
    state: str
    is_real: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its area, its conversation, the state changes before it, and the subject of a right answer.

    `about` has the entities of a question, or the one of a command; `wanted` is the state that a command asks for.
    """

    kind: str
    text: str
    area: str
    conversation: int
    changes: tuple[Change, ...]
    about: tuple[Thing, ...]
    wanted: str = ""

    @property
    def is_question(self) -> bool:
        """Whether the sentence only asks for states; otherwise it is a command."""
        return not self.wanted


# The kinds of a hundred sentences: questions about one entity, questions that name a kind of measurement and a room,
# and questions about several entities; then commands, and commands that depend on the current state.
_MIX = {"state": 50, "measured": 10, "lights in area": 8, "lights": 2, "switch": 18, "make sure": 12}

# The lengths of the conversations that the hundred sentences are divided into.
TALKS: dict[str, tuple[int, ...]] = {
    "single": (1,) * 100,
    "short": (1,) * 15 + (2,) * 10 + (3,) * 7 + (4,) * 5 + (6,) * 4,
    "long": (100,),
}


class Day:
    """A home, and the sentences and state changes of one day in it."""

    def __init__(self, size: int, talk: str = "short", sentences: int = SENTENCES) -> None:
        self.things = tuple(islice(_things(size), size))
        self.areas = tuple(dict.fromkeys(thing.area for thing in self.things))
        self.satellites = self.areas[:_SATELLITES]
        self._random = Random(_SEED)
        self._now = {thing.entity_id: thing.initial for thing in self.things}
        self._base = {thing.entity_id: thing.kind.value for thing in self.things}
        self._measuring = [thing for thing in self.things if not thing.kind.states]
        self.sentences = tuple(self._said(talk))[:sentences]

    def second(self) -> Iterator[Sentence]:
        """Yield the questions of the second day.

        The last one in each conversation repeats the previous question for a single area.
        """
        chance = Random(_SEED + 1)
        for number in range(_SECOND_TALKS):
            area, where = chance.choice(self.satellites), chance.choice(self.areas)
            asked = {
                "unusual": ("is everything closed and off?", self.things),
                "windows": ("which windows are open?", self._named("window")),
                "lights": ("did anyone leave a light on?", self._of("light")),
                "lights in area": (f"and in the {where}?", self._of("light", where)),
            }
            for kind, (text, about) in asked.items():
                yield Sentence(kind, text, area, number, (), about)

    def odd(self) -> set[str]:
        """Return the ids of the entities that are not in their usual state on the second day."""
        ordinary = [thing.entity_id for thing in self.things if thing.kind.states]
        return set(Random(_SEED + 2).sample(ordinary, max(1, round(_ODD * len(ordinary)))))

    def _named(self, name: str) -> tuple[Thing, ...]:
        return tuple(thing for thing in self.things if thing.kind.name == name)

    def _said(self, talk: str) -> Iterator[Sentence]:
        lengths = list(TALKS[talk])
        kinds = [kind for kind, number in _MIX.items() for _ in range(number)]
        self._random.shuffle(lengths)
        self._random.shuffle(kinds)
        of_kind, last = iter(kinds), 0.0
        for number, length in enumerate(lengths):
            area = self._random.choice(self.satellites)
            at = DAY * number / len(lengths)
            pause = DAY / length if len(lengths) == 1 else _PAUSE
            for _ in range(length):
                changes = tuple(self._changes(at - last))
                yield self._sentence(next(of_kind), area, number, changes)
                last, at = at, at + pause

    def _changes(self, seconds: float) -> Iterator[Change]:
        mean = len(self.things) * CHANGES_A_DAY * seconds / DAY
        number = int(mean) + (self._random.random() < mean % 1)
        for _ in range(number):
            if self._random.random() < WITHIN_ROUNDING:
                yield self._jitter(self._random.choice(self._measuring))
            else:
                yield self._real(self._random.choice(self.things))

    def _jitter(self, thing: Thing) -> Change:
        state = self._base[thing.entity_id] + self._random.uniform(-1, 1) * thing.kind.jitter
        return self._set(thing, f"{state:.2f}", is_real=False)

    def _real(self, thing: Thing) -> Change:
        kind, entity_id = thing.kind, thing.entity_id
        if kind.states:
            state = next(each for each in kind.states if each != self._now[entity_id])
        else:
            up = self._base[entity_id] <= kind.value
            self._base[entity_id] += kind.step if up else -kind.step
            state = f"{self._base[entity_id]:.2f}"
        return self._set(thing, state, is_real=True)

    def _set(self, thing: Thing, state: str, *, is_real: bool) -> Change:
        self._now[thing.entity_id] = state
        return Change(thing.entity_id, state, is_real)

    def _sentence(self, kind: str, area: str, conversation: int, changes: tuple[Change, ...]) -> Sentence:
        if kind == "lights":
            return Sentence(kind, "which lights are on?", area, conversation, changes, self._of("light"))
        if kind == "lights in area":
            where = area if self._is_near() else self._random.choice(self.areas)
            about = self._of("light", where)
            return Sentence(kind, f"which lights are on in the {where}?", area, conversation, changes, about)
        things = self._near(area, kind) if self._is_near() else ()
        thing = self._random.choice(things or self._asked(kind))
        if kind == "measured":
            text = f"what is the {thing.kind.name} in the {thing.area}?"
            about = tuple(each for each in self.things if (each.kind, each.area) == (thing.kind, thing.area))
            return Sentence(kind, text, area, conversation, changes, about)
        text, wanted = self._words(kind, thing)
        if wanted:
            self._now[thing.entity_id] = wanted
        return Sentence(kind, text, area, conversation, changes, (thing,), wanted)

    def _words(self, kind: str, thing: Thing) -> tuple[str, str]:
        match kind:
            case "state":
                asked = thing.kind.asked
                return f"is the {thing.name} {asked}?" if asked else f"what is the state of the {thing.name}?", ""
            case "switch":
                wanted = next(each for each in thing.kind.states if each != self._now[thing.entity_id])
                return f"I would like the {thing.name} switched {wanted}", wanted
        wanted = self._random.choice(thing.kind.states)
        return f"make sure the {thing.name} is {wanted}", wanted

    def _is_near(self) -> bool:
        return self._random.random() < _IN_SPEAKERS_AREA

    def _near(self, area: str, kind: str) -> Sequence[Thing]:
        return [thing for thing in self._asked(kind) if thing.area == area]

    def _asked(self, kind: str) -> Sequence[Thing]:
        """Return the entities that a sentence of this kind can be about."""
        if kind in ("switch", "make sure"):
            return self._of("light")
        if kind == "measured":
            return [thing for thing in self.things if thing.kind.name in ("temperature", "humidity")]
        return self.things

    def _of(self, domain: str, area: str | None = None) -> tuple[Thing, ...]:
        return tuple(thing for thing in self.things if thing.kind.domain == domain and area in (None, thing.area))


def _things(size: int) -> Iterator[Thing]:
    in_area = _THINGS_IN_AREA.get(size, 7)
    for area in (f"{floor}{room}" for floor in _FLOORS for room in _ROOMS):
        for at, kind in enumerate(islice(cycle(_KINDS), in_area)):
            number = f" {at // len(_KINDS) + 1}" if at >= len(_KINDS) else ""
            name = f"{area} {kind.name}{number}"
            yield Thing(f"{kind.domain}.day_{name.lower().replace(' ', '_')}", name, area, kind)
