"""Which requests tell the home as it was: what a home has really had, and what a request says of it.

`states_in_one_place`: the system prompt is of now, so no message may tell the home beside it.
`states_in_order`: no state of an entity is older than one that stands before it.
`states_current`: in a request that ends with the user, the last state of an entity is that of the moment, unless the
request says that more has changed there.

The last two need a `HomeHistory`. Order is judged in favour of the request: of states that an entity has had several
times, the earliest counts that fits, so that a history in which each state is another one finds the most.
"""

from collections.abc import Iterator, Sequence

from .conversation import Turn
from .home_states import Known, known_home, tellings
from .violations import Violation

# An entity that is not there.
_GONE = Known("", "")


class HomeHistory:
    """What each entity has been, oldest first, by its name and in the words of the request."""

    def __init__(self) -> None:
        self._states: dict[str, list[str]] = {}

    def note(self, name: str, state: str) -> None:
        """Take in what an entity is from now on; an empty state is one that is not there any more."""
        states = self._states.setdefault(name, [])
        if states[-1:] != [state]:
            states.append(state)

    def violations(self, turns: Sequence[Turn]) -> Iterator[Violation]:
        """Yield where the request tells the home as it was not, or was before."""
        yield from self._disordered(turns)
        if turns and turns[-1].role == "user":
            yield from self._outdated(turns)

    def _disordered(self, turns: Sequence[Turn]) -> Iterator[Violation]:
        reached: dict[str, int] = {}
        for number, telling in enumerate(tellings(turns)):
            for name, known in (telling.states | dict.fromkeys(telling.gone, _GONE)).items():
                at = self._index(name, known, reached.get(name, 0))
                if at is None:
                    yield Violation("states_in_order", f"tellings[{number}]", "an older state follows a newer one")
                else:
                    reached[name] = at

    def _outdated(self, turns: Sequence[Turn]) -> Iterator[Violation]:
        for name, known in known_home(turns).states.items():
            if not known.is_so(self._states.get(name, [""])[-1]):
                yield Violation("states_current", "tellings", "the last state is not so any more")

    def _index(self, name: str, known: Known, start: int) -> int | None:
        """Return where the entity first was in this state from there on, or None if it never was."""
        states = self._states.get(name, ())
        return next((at for at in range(start, len(states)) if known.is_so(states[at])), None)


def home_violations(turns: Sequence[Turn], history: HomeHistory | None) -> Iterator[Violation]:
    """Yield what is wrong with how the request tells the home."""
    roles = {turn.role for turn in turns if any(tellings((turn,)))}
    if "system" in roles and "user" in roles:
        yield Violation("states_in_one_place", "messages", "a message tells the home beside the system prompt")
    if history is not None:
        yield from history.violations(turns)
