"""A home of any size and a day in it: state changes, and people's questions and commands. It is always the same.

The home: every area has the same kinds of entities, taken from `_ENTITY_KINDS` in order: 7 in each area of a small
home, 17 in a middle one, and 33 in the large one. Each is exposed to Assist, and its name begins with the name of its
area.

Changes: 20 times a day for each entity, evenly over the day. 90 % of the changes are measurements that move within
rounding. The others are real: a light, a door, a motion, a degree.

Sentences: a hundred, with the number of each kind in `_COUNT_BY_SENTENCE_KIND`. In one of two cases, a question or
command is about an entity in the speaker's area, otherwise about any entity of the home; three areas have a satellite.
All sentences reach the model, because Home Assistant's own answers cause no request. `CONVERSATION_LENGTHS` has the
lengths of the conversations, which begin evenly over the day; two sentences of a conversation are twenty seconds apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import Random
from typing import Any

DAY_SECONDS = 86_400.0
SENTENCE_COUNT = 100
CHANGES_PER_ENTITY = 20
ROUNDING_SHARE = 0.9
_PAUSE_SECONDS = 20.0
_SATELLITE_COUNT = 3
_SPEAKER_AREA_SHARE = 0.5
_RANDOM_SEED = 15
# The number of conversations on the second day, and the share of entities that are not in their usual state then.
_SECOND_DAY_CONVERSATIONS = 10
_UNUSUAL_SHARE = 0.05

_ENTITIES_PER_AREA = {20: 7, 60: 7, 200: 17, 600: 17, 2_000: 33}
_ROOM_NAMES = (
    "Kitchen", "Living Room", "Bedroom", "Bathroom", "Hall", "Office", "Garage", "Nursery", "Cellar", "Laundry",
)  # fmt: skip
_FLOOR_PREFIXES = ("", "Upper ", "Lower ", "Eastern ", "Western ", "Northern ", "Southern ")


@dataclass(frozen=True, slots=True)
class EntityKind:
    """A kind of entity: its possible `states` or its measured value, and the word for its state in a question."""

    domain: str
    name: str
    states: tuple[str, ...] = ()
    initial_value: float = 0.0
    # `rounding_jitter` is the range of changes within rounding, `real_step` is the size of a real change.
    rounding_jitter: float = 0.0
    real_step: float = 0.0
    attributes: dict[str, Any] = field(default_factory=dict, hash=False)
    asked_state: str = ""


def _build_sensor(name: str, unit: str, value: float, jitter: float, step: float) -> EntityKind:
    attributes = {"unit_of_measurement": unit, "device_class": name.rsplit(maxsplit=1)[-1]}
    return EntityKind(
        "sensor", name, initial_value=value, rounding_jitter=jitter, real_step=step, attributes=attributes
    )


def _build_detector(name: str, device_class: str, asked: str) -> EntityKind:
    return EntityKind(
        "binary_sensor", name, ("off", "on"), attributes={"device_class": device_class}, asked_state=asked
    )


_ENTITY_KINDS = (
    EntityKind("light", "ceiling light", ("off", "on"), asked_state="on"),
    _build_sensor("temperature", "°C", 21.0, 0.2, 1.0),
    _build_detector("window", "window", "open"),
    EntityKind("light", "floor light", ("off", "on"), asked_state="on"),
    _build_sensor("humidity", "%", 50.0, 0.4, 3.0),
    EntityKind("switch", "socket", ("off", "on"), asked_state="on"),
    EntityKind("cover", "blind", ("closed", "open"), asked_state="open"),
    _build_detector("door", "door", "open"),
    _build_sensor("socket power", "W", 120.0, 0.4, 30.0),
    EntityKind("lock", "lock", ("locked", "unlocked"), asked_state="locked"),
    EntityKind("media_player", "speaker", ("off", "playing"), asked_state="playing"),
    _build_detector("motion", "motion", "on"),
)


@dataclass(frozen=True, slots=True)
class HomeEntity:
    """An entity of the home."""

    entity_id: str
    name: str
    area: str
    kind: EntityKind

    @property
    def initial_state(self) -> str:
        """The state at the beginning of the day."""
        return self.kind.states[0] if self.kind.states else f"{self.kind.initial_value:.2f}"


@dataclass(frozen=True, slots=True)
class Change:
    """A new state of an entity; `is_real` is False if it rounds to the previous one."""

    entity_id: str
    state: str
    is_real: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its area, its conversation, the state changes before it, and the subject of a right answer.

    `subjects` has the entities of a question, or the one of a command; `wanted_state` is the state that a command asks
    for.
    """

    kind: str
    text: str
    area: str
    conversation_number: int
    changes: tuple[Change, ...]
    subjects: tuple[HomeEntity, ...]
    wanted_state: str = ""

    @property
    def is_question(self) -> bool:
        """Whether the sentence only asks for states; otherwise it is a command."""
        return not self.wanted_state


# The kinds of a hundred sentences: questions about one entity, questions that name a kind of measurement and a room,
# and questions about several entities; then commands, and commands that depend on the current state.
_COUNT_BY_SENTENCE_KIND = {"state": 50, "measured": 10, "lights in area": 8, "lights": 2, "switch": 18, "make sure": 12}

# The lengths of the conversations that the hundred sentences are divided into.
CONVERSATION_LENGTHS: dict[str, tuple[int, ...]] = {
    "single": (1,) * 100,
    "short": (1,) * 15 + (2,) * 10 + (3,) * 7 + (4,) * 5 + (6,) * 4,
    "long": (100,),
}


class SimulatedDay:
    """A home, and the sentences and state changes of one day in it."""

    def __init__(self, size: int, talk: str = "short", sentences: int = SENTENCE_COUNT) -> None:
        self.entities = tuple(islice(_iter_entities(size), size))
        self.areas = tuple(dict.fromkeys(thing.area for thing in self.entities))
        self.satellite_areas = self.areas[:_SATELLITE_COUNT]
        self._random = Random(_RANDOM_SEED)
        self._current_states = {thing.entity_id: thing.initial_state for thing in self.entities}
        self._base_values = {thing.entity_id: thing.kind.initial_value for thing in self.entities}
        self._measured_entities = [thing for thing in self.entities if not thing.kind.states]
        self.sentences = tuple(self._iter_sentences(talk))[:sentences]

    def iter_second_day(self, *, is_bright: bool = False) -> Iterator[Sentence]:
        """Yield the questions of the second day, or of a bright one, on which all blinds are open.

        The last one in each conversation repeats the previous question for a single area.
        """
        chance = Random(_RANDOM_SEED + 1)
        for number in range(_SECOND_DAY_CONVERSATIONS):
            area, where = chance.choice(self.satellite_areas), chance.choice(self.areas)
            asked = {
                **(
                    {"doors": ("are all doors closed?", self._find_by_kind("door"))}
                    if is_bright
                    else {"unusual": ("is everything closed and off?", self.entities)}
                ),
                "windows": ("which windows are open?", self._find_by_kind("window")),
                "lights": ("did anyone leave a light on?", self._find_by_domain("light")),
                "lights in area": (f"and in the {where}?", self._find_by_domain("light", where)),
            }
            for kind, (text, about) in asked.items():
                yield Sentence(kind, text, area, number, (), about)

    def choose_unusual_ids(self) -> set[str]:
        """Return the ids of the entities that are not in their usual state on the second day."""
        ordinary = [thing.entity_id for thing in self.entities if thing.kind.states]
        return set(Random(_RANDOM_SEED + 2).sample(ordinary, max(1, round(_UNUSUAL_SHARE * len(ordinary)))))

    def find_blind_ids(self) -> set[str]:
        """Return the ids of the blinds, which are covers without a device class."""
        return {thing.entity_id for thing in self._find_by_domain("cover")}

    def _find_by_kind(self, name: str) -> tuple[HomeEntity, ...]:
        return tuple(thing for thing in self.entities if thing.kind.name == name)

    def _iter_sentences(self, talk: str) -> Iterator[Sentence]:
        lengths = list(CONVERSATION_LENGTHS[talk])
        kinds = [kind for kind, number in _COUNT_BY_SENTENCE_KIND.items() for _ in range(number)]
        self._random.shuffle(lengths)
        self._random.shuffle(kinds)
        of_kind, last = iter(kinds), 0.0
        for number, length in enumerate(lengths):
            area = self._random.choice(self.satellite_areas)
            at = DAY_SECONDS * number / len(lengths)
            pause = DAY_SECONDS / length if len(lengths) == 1 else _PAUSE_SECONDS
            for _ in range(length):
                changes = tuple(self._iter_changes(at - last))
                yield self._make_sentence(next(of_kind), area, number, changes)
                last, at = at, at + pause

    def _iter_changes(self, seconds: float) -> Iterator[Change]:
        mean = len(self.entities) * CHANGES_PER_ENTITY * seconds / DAY_SECONDS
        number = int(mean) + (self._random.random() < mean % 1)
        for _ in range(number):
            if self._random.random() < ROUNDING_SHARE:
                yield self._make_rounding_change(self._random.choice(self._measured_entities))
            else:
                yield self._make_real_change(self._random.choice(self.entities))

    def _make_rounding_change(self, thing: HomeEntity) -> Change:
        state = self._base_values[thing.entity_id] + self._random.uniform(-1, 1) * thing.kind.rounding_jitter
        return self._record_change(thing, f"{state:.2f}", is_real=False)

    def _make_real_change(self, thing: HomeEntity) -> Change:
        kind, entity_id = thing.kind, thing.entity_id
        if kind.states:
            state = next(each for each in kind.states if each != self._current_states[entity_id])
        else:
            up = self._base_values[entity_id] <= kind.initial_value
            self._base_values[entity_id] += kind.real_step if up else -kind.real_step
            state = f"{self._base_values[entity_id]:.2f}"
        return self._record_change(thing, state, is_real=True)

    def _record_change(self, thing: HomeEntity, state: str, *, is_real: bool) -> Change:
        self._current_states[thing.entity_id] = state
        return Change(thing.entity_id, state, is_real)

    def _make_sentence(self, kind: str, area: str, conversation: int, changes: tuple[Change, ...]) -> Sentence:
        if kind == "lights":
            return Sentence(kind, "which lights are on?", area, conversation, changes, self._find_by_domain("light"))
        if kind == "lights in area":
            where = area if self._is_in_speaker_area() else self._random.choice(self.areas)
            about = self._find_by_domain("light", where)
            return Sentence(kind, f"which lights are on in the {where}?", area, conversation, changes, about)
        things = self._find_subjects_in_area(area, kind) if self._is_in_speaker_area() else ()
        thing = self._random.choice(things or self._find_subjects(kind))
        if kind == "measured":
            text = f"what is the {thing.kind.name} in the {thing.area}?"
            about = tuple(each for each in self.entities if (each.kind, each.area) == (thing.kind, thing.area))
            return Sentence(kind, text, area, conversation, changes, about)
        text, wanted = self._word_sentence(kind, thing)
        if wanted:
            self._current_states[thing.entity_id] = wanted
        return Sentence(kind, text, area, conversation, changes, (thing,), wanted)

    def _word_sentence(self, kind: str, thing: HomeEntity) -> tuple[str, str]:
        match kind:
            case "state":
                asked = thing.kind.asked_state
                return f"is the {thing.name} {asked}?" if asked else f"what is the state of the {thing.name}?", ""
            case "switch":
                wanted = next(each for each in thing.kind.states if each != self._current_states[thing.entity_id])
                return f"I would like the {thing.name} switched {wanted}", wanted
        wanted = self._random.choice(thing.kind.states)
        return f"make sure the {thing.name} is {wanted}", wanted

    def _is_in_speaker_area(self) -> bool:
        return self._random.random() < _SPEAKER_AREA_SHARE

    def _find_subjects_in_area(self, area: str, kind: str) -> Sequence[HomeEntity]:
        return [thing for thing in self._find_subjects(kind) if thing.area == area]

    def _find_subjects(self, kind: str) -> Sequence[HomeEntity]:
        """Return the entities that a sentence of this kind can be about."""
        if kind in ("switch", "make sure"):
            return self._find_by_domain("light")
        if kind == "measured":
            return [thing for thing in self.entities if thing.kind.name in ("temperature", "humidity")]
        return self.entities

    def _find_by_domain(self, domain: str, area: str | None = None) -> tuple[HomeEntity, ...]:
        return tuple(thing for thing in self.entities if thing.kind.domain == domain and area in (None, thing.area))


def _iter_entities(size: int) -> Iterator[HomeEntity]:
    in_area = _ENTITIES_PER_AREA[size]
    for area in (f"{floor}{room}" for floor in _FLOOR_PREFIXES for room in _ROOM_NAMES):
        for at, kind in enumerate(islice(cycle(_ENTITY_KINDS), in_area)):
            number = f" {at // len(_ENTITY_KINDS) + 1}" if at >= len(_ENTITY_KINDS) else ""
            name = f"{area} {kind.name}{number}"
            yield HomeEntity(f"{kind.domain}.day_{name.lower().replace(' ', '_')}", name, area, kind)
