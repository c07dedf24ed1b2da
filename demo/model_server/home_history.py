"""The real states of a home, and checks of the states in a request against them.

`states_once`: only the newest message of a person lists states or quotes memory, and not even that one if the system
prompt lists states. `states_current`: in a request that ends with a user message, each listed state is the current one.
`states_rest`: each entity that such a request does not list is in the state that it gives for the rest of this kind, or
is counted; one that is in another state than others of its kind is counted by kind and state.

The last two need a `HomeHistory`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from .conversation import Turn
from .home_states import ListedHome, parse_listed_home
from .violations import Violation

# Such a note of the agent follows an answer, and is of the same turn as the message before.
_AGENT_NOTE_STARTS = ("[The user does not see this.", "Pictures: ")


class HomeHistory:
    """The history of each entity, by its name and with states worded as in the request."""

    def __init__(self) -> None:
        self._state_by_name: dict[str, str] = {}
        self._kind_by_name: dict[str, str] = {}

    def note(self, name: str, state: str, kind: str) -> None:
        """Record an entity's new state; an empty state means that the entity was removed."""
        self._state_by_name[name], self._kind_by_name[name] = state, kind
        if not state:
            del self._state_by_name[name]

    def find_violations(self, turns: Sequence[Turn]) -> Iterator[Violation]:
        """Yield the violations in the states of a request that ends with a user message."""
        if not turns or turns[-1].role != "user":
            return
        home = parse_listed_home(turns)
        if any(self._state_by_name.get(name) != state for name, state in home.state_by_name.items()):
            yield Violation("states_current", "states", "a listed state is not so")
        if home.is_listed and not self._is_rest_true(home):
            yield Violation("states_rest", "states", "what is said of the rest is not true of all")

    def _is_rest_true(self, home: ListedHome) -> bool:
        uncovered = [
            (self._kind_by_name[name], state.partition(" ")[0])
            for name, state in self._state_by_name.items()
            if name not in home.state_by_name
        ]
        rest = home.rest_states_by_kind
        uncovered = [(kind, state) for kind, state in uncovered if state not in rest.get(kind, ())]
        unusual = Counter(f"{kind} {state}" for kind, state in uncovered if kind in rest)
        counted = sum(home.count_by_label.values())
        return len(uncovered) <= counted and all(
            number <= home.count_by_label.get(label, 0) for label, number in unusual.items()
        )


def find_home_violations(turns: Sequence[Turn], history: HomeHistory | None) -> Iterator[Violation]:
    """Yield the violations in the live contexts and the listed states of the request."""
    said = [turn for turn in turns if turn.role == "user" and not turn.text.startswith(_AGENT_NOTE_STARTS)]
    is_in_system = parse_listed_home([turn for turn in turns if turn.role == "system"]).is_listed
    for number, turn in enumerate(said):
        is_newest = number == len(said) - 1
        if (turn.memory_quotes or "states" in turn.context) and (is_in_system or not is_newest):
            yield Violation("states_once", f"user[{number}]", "an older message has a live context")
    if history is not None:
        yield from history.find_violations(turns)
