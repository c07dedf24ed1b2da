"""The states of the home in the newest message of a request, and those in the results of look-ups.

[CONTEXT: time: ...; states: Kitchen: Lamp=on 60%, Door=open (changed) | not listed: 3 light on | rest off, closed]

An agent may write the list into the system prompt instead, below "## States". Results of `get_states` have the same
form. The entities, with their domains and areas, are in Home Assistant's overview in the system prompt.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
import json
import re

from .conversation import Turn

_CHANGED = " (changed)"
_COUNTS, _REST = "not listed: ", "rest "
_COUNT = re.compile(r"(?P<number>\d+) (?P<label>.+)")
_SECTION = re.compile(r"^## States\n(?P<text>.+)$", re.MULTILINE)
_THING = re.compile(r"^- names: (?P<names>.+)\n  domain: (?P<domain>\w+)(?:\n  areas: (?P<area>.+))?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity of the overview or a listed one; domain and area are empty if they are not known."""

    name: str
    domain: str = ""
    area: str = ""

    def is_a(self, kind: str) -> bool:
        """Return whether the entity is of this kind, according to its domain or its name."""
        return kind in (self.domain, *self.name.lower().split())


@dataclass(slots=True)
class ListedHome:
    """The listed states and their areas by name, the number of unlisted entities by label, and the rest's states."""

    states: dict[str, str] = field(default_factory=dict)
    areas: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    rest: frozenset[str] = frozenset()
    is_listed: bool = False

    def read(self, text: str) -> None:
        """Add the states of a list; entities that it only counts keep their known state."""
        self.is_listed = True
        self.counts = {}
        for part in text.split(" | "):
            if part.startswith(_COUNTS):
                found = map(_COUNT.fullmatch, part.removeprefix(_COUNTS).split(", "))
                self.counts = {each["label"]: int(each["number"]) for each in found if each}
            elif part.startswith(_REST):
                self.rest = frozenset(part.removeprefix(_REST).split(", "))
            else:
                self._read_area(part)

    def _read_area(self, part: str) -> None:
        area, _, listed = part.partition(": ")
        for each in listed.split(", "):
            name, is_state, state = each.partition("=")
            if is_state:
                self.states[name], self.areas[name] = state.removesuffix(_CHANGED), area

    def state_of(self, name: str) -> str | None:
        """Return the state of the entity with this name, ignoring case, or None if it is not listed."""
        return next((state for each, state in self.states.items() if each.lower() == name.lower()), None)

    def may_be_unlisted(self, kind: str | None, words: Iterable[str]) -> bool:
        """Return whether an unlisted entity of a kind (None for any) may be in one of these states."""
        labels = [label for label in self.counts if label.rpartition(" ")[2] in words or label == "others"]
        return any(kind is None or label == "others" or kind in label.split() for label in labels)


def listed_home(turns: Sequence[Turn], results: Iterable[str] = ()) -> ListedHome:
    """Return the states listed by the newest message and the system prompt, updated with the results of look-ups."""
    home = ListedHome()
    for text in (*_listed(turns), *filter(None, map(_in_result, results))):
        home.read(text)
    return home


def _listed(turns: Sequence[Turn]) -> Iterator[str]:
    newest = next((turn for turn in reversed(turns) if turn.role == "user"), None)
    if newest is not None and "states" in newest.context:
        yield newest.context["states"]
    for turn in turns:
        if turn.role == "system" and (found := _SECTION.search(turn.text)):
            yield found["text"]


def _in_result(text: str) -> str:
    """Return the list of states in a tool result, or an empty text if it has none."""
    try:
        data = json.loads(text)
    except ValueError:
        return ""
    found = data.get("states") if isinstance(data, dict) else None
    return found if isinstance(found, str) else ""


def things(turns: Iterable[Turn]) -> list[Thing]:
    """Return the entities in the overview of the system prompt."""
    found = (each for turn in turns if turn.role == "system" for each in _THING.finditer(turn.text))
    return [Thing(_first(each["names"]), each["domain"], _first(each["area"] or "")) for each in found]


def _first(names: str) -> str:
    return names.split(",", maxsplit=1)[0].strip(" '\"")
