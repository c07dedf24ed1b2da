"""The states of the home in the newest message of a request, and those in the results of look-ups.

[CONTEXT: time: ...; states: Kitchen: Lamp=on 60%, Door=open (changed) | not listed: 3 light on | rest light/tv off]

An agent may write the list into the system prompt instead, below "## States". Results of "get_states" have the same
form. The entities, with their domains and areas, are in the overview in the system prompt, see `home_overview.py`.

A number of "entities" may be of any kind and in any state.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
import json
import re

from .conversation import Turn

_CHANGED_SUFFIX = " (changed)"
_COUNTS_PREFIX, _REST_PREFIX = "not listed: ", "rest "
_COUNT_PATTERN = re.compile(r"(?P<number>\d+) (?P<label>.+)")
_SECTION_PATTERN = re.compile(r"^## States\n(?P<text>.+)$", re.MULTILINE)


@dataclass(slots=True)
class ListedHome:
    """The listed states and areas by name, the number of unlisted entities by label, the states of the rest by kind."""

    state_by_name: dict[str, str] = field(default_factory=dict)
    area_by_name: dict[str, str] = field(default_factory=dict)
    count_by_label: dict[str, int] = field(default_factory=dict)
    rest_states_by_kind: dict[str, frozenset[str]] = field(default_factory=dict)
    is_listed: bool = False

    def read_list(self, text: str) -> None:
        """Add the states of a list; entities that it only counts keep their known state."""
        self.is_listed = True
        self.count_by_label, self.rest_states_by_kind = {}, {}
        for part in text.split(" | "):
            if part.startswith(_COUNTS_PREFIX):
                found = map(_COUNT_PATTERN.fullmatch, part.removeprefix(_COUNTS_PREFIX).split(", "))
                self.count_by_label = {each["label"]: int(each["number"]) for each in found if each}
            elif part.startswith(_REST_PREFIX):
                self.rest_states_by_kind = dict(_iter_rest_states(part.removeprefix(_REST_PREFIX)))
            else:
                self._read_area(part)

    def _read_area(self, part: str) -> None:
        area, _, listed = part.partition(": ")
        for each in listed.split(", "):
            name, is_state, state = each.partition("=")
            if is_state:
                # tools find entities in any case, and an entity keeps the spelling that it was first listed with
                name = next((each for each in self.state_by_name if each.lower() == name.lower()), name)
                self.state_by_name[name], self.area_by_name[name] = state.removesuffix(_CHANGED_SUFFIX), area

    def find_state(self, name: str) -> str | None:
        """Return the state of the entity with this name, ignoring case, or None if it is not listed."""
        return next((state for each, state in self.state_by_name.items() if each.lower() == name.lower()), None)

    def find_name(self, beginning: str, states: Collection[str]) -> str | None:
        """Return the only name with this beginning whose entity is in one of these states.

        None if there are several, or if the beginning is the whole name of an entity.
        """
        if self.find_state(beginning) is not None:
            return None
        start = f"{beginning.lower()} "
        names = [
            each for each, state in self.state_by_name.items() if each.lower().startswith(start) and state in states
        ]
        return names[0] if len(names) == 1 else None

    def can_be_unlisted(self, kind: str | None, words: Iterable[str]) -> bool:
        """Return whether an unlisted entity of a kind (None for any) may be in one of these states."""
        if "entities" in self.count_by_label:
            return True
        labels = [label.replace("/", " ") for label in self.count_by_label if label.rpartition(" ")[2] in words]
        return any(kind is None or f" {kind} " in f" {label} " for label in labels)


def _iter_rest_states(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each kind with its states of a clause such as "light/switch off, tv idle/off"."""
    for part in text.split(", "):
        kinds, _, states = part.rpartition(" ")
        for kind in kinds.split("/"):
            yield kind, frozenset(states.split("/"))


def parse_listed_home(turns: Sequence[Turn], results: Iterable[str] = ()) -> ListedHome:
    """Return the states listed by the newest message and the system prompt, updated with the results of look-ups."""
    home = ListedHome()
    for text in (*_iter_state_lists(turns), *filter(None, map(_get_states_text, results))):
        home.read_list(text)
    return home


def _iter_state_lists(turns: Sequence[Turn]) -> Iterator[str]:
    newest = next((turn for turn in reversed(turns) if turn.role == "user"), None)
    if newest is not None and "states" in newest.context:
        yield newest.context["states"]
    for turn in turns:
        if turn.role == "system" and (found := _SECTION_PATTERN.search(turn.text)):
            yield found["text"]


def _get_states_text(text: str) -> str:
    """Return the list of states in a tool result, or an empty text if it has none."""
    try:
        data = json.loads(text)
    except ValueError:
        return ""
    found = data.get("states") if isinstance(data, dict) else None
    return found if isinstance(found, str) else ""
