"""What the context lines of a request say of the home: a list of states first, then what has changed since.

[CONTEXT: time: ...; states: Kitchen: Lamp=on 60%, Door=closed | more, not listed: Garage 12]
[CONTEXT: time: ...; states changed: Kitchen: Lamp=off | no longer there: Blind | more changed: Garage 3]
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .conversation import Turn

_ALL, _CHANGED = "states", "states changed"
_GONE, _REST = "no longer there", ("more, not listed", "more changed")


@dataclass(slots=True)
class KnownHome:
    """The states by name, as they were told last; `is_whole` is False if there are more, or others have changed."""

    states: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False

    def state_of(self, name: str) -> str | None:
        """Return the state of an entity, or None if it is not known for certain; letter case does not count."""
        found = [state for known, state in self.states.items() if known.lower() == name.lower()]
        return found[0] if len(found) == 1 else None


def known_home(turns: Iterable[Turn]) -> KnownHome:
    """Return what the user's messages tell of the home; what stands later counts."""
    home = KnownHome()
    for kind, areas in _told(turns):
        home.is_whole = (home.is_whole or kind == _ALL) and not any(rest in areas for rest in _REST)
        for gone in areas.pop(_GONE, ()):
            home.states.pop(gone, None)
        for area, states in areas.items():
            home.states |= dict(state.split("=", 1) for state in states if area not in _REST and "=" in state)
    return home


def _told(turns: Iterable[Turn]) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield of each message that tells of the home whether it lists or says what has changed, and what by area."""
    for turn in turns:
        for kind in (_ALL, _CHANGED):
            if turn.role == "user" and (text := turn.context.get(kind)):
                groups = (group.partition(": ") for group in text.split(" | "))
                yield kind, {area: states.split(", ") for area, _, states in groups}
