"""The real states of a home, and checks of the states in a request against them.

`states_once`: only the newest user message lists states or quotes memory, and not even that one if the system prompt
lists states. `states_current`: in a request that ends with a user message, each listed state is the current one.
`states_rest`: the states that such a request gives for the rest are true of every entity that it neither lists nor
counts.

The last two need a `HomeHistory`.
"""

from collections.abc import Iterator, Sequence

from .conversation import Turn
from .home_states import parse_listed_home
from .violations import Violation


class HomeHistory:
    """The history of each entity, by its name and with states worded as in the request."""

    def __init__(self) -> None:
        self._state_by_name: dict[str, str] = {}

    def note(self, name: str, state: str) -> None:
        """Record an entity's new state; an empty state means that the entity was removed."""
        self._state_by_name[name] = state
        if not state:
            del self._state_by_name[name]

    def find_violations(self, turns: Sequence[Turn]) -> Iterator[Violation]:
        """Yield the violations in the states of a request that ends with a user message."""
        if not turns or turns[-1].role != "user":
            return
        home = parse_listed_home(turns)
        if any(self._state_by_name.get(name) != state for name, state in home.state_by_name.items()):
            yield Violation("states_current", "states", "a listed state is not so")
        left = [state for name, state in self._state_by_name.items() if name not in home.state_by_name]
        unsaid = [state for state in left if state.partition(" ")[0] not in home.rest_states]
        if home.is_listed and len(unsaid) > sum(home.count_by_label.values()):
            yield Violation("states_rest", "states", "what is said of the rest is not true of all")


def find_home_violations(turns: Sequence[Turn], history: HomeHistory | None) -> Iterator[Violation]:
    """Yield the violations in the live contexts and the listed states of the request."""
    said = [turn for turn in turns if turn.role == "user"]
    is_in_system = parse_listed_home([turn for turn in turns if turn.role == "system"]).is_listed
    for number, turn in enumerate(said):
        is_newest = number == len(said) - 1
        if (turn.memory_quotes or "states" in turn.context) and (is_in_system or not is_newest):
            yield Violation("states_once", f"user[{number}]", "an older message has a live context")
    if history is not None:
        yield from history.find_violations(turns)
