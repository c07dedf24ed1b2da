"""What the scripted model answers about the states of the home: from what it was told, else after a look."""

from collections.abc import Mapping
import re

from .conversation import Answer, Conversation
from .home_states import known_home
from .live_context import look, seen
from .named import named
from .outcome import outcome
from .rules import Rule, pattern

_STATES = r"on|off|open|closed|locked|unlocked|playing|running"
# What is asked for in a room, and the domain in which a tool finds it.
_MEASURED = {"temperature": "sensor", "humidity": "sensor"}


def _state(match: re.Match[str], conversation: Conversation) -> Answer:
    name = named(match["name"])[0]
    if conversation.rounds:
        found = outcome(conversation.rounds[-1][0])
        return _failed(found.error) if found.error else Answer(text=f"The {name} is {seen(found.text).first}.")
    known = known_home(conversation.turns).state_of(name)
    return Answer(text=f"The {name} is {known}.") if known else look(conversation, name=name)


def _measured(match: re.Match[str], conversation: Conversation) -> Answer:
    """Answer what something in a room is, with the first entity of that room that has its name."""
    kind, area = match["kind"].lower(), match["area"].lower()
    if conversation.rounds:
        found = outcome(conversation.rounds[-1][0])
        state = seen(found.text).named(kind)
        return _failed(found.error) if found.error else Answer(text=f"The {kind} in the {area} is {state}.")
    known = list(known_home(conversation.turns).states_in(area, kind).values())
    if known:
        return Answer(text=f"The {kind} in the {area} is {known[0]}.")
    return look(conversation, area=area, domain=_MEASURED[kind])


def _lights(match: re.Match[str], conversation: Conversation) -> Answer:
    area = match["area"].lower() if match["area"] else None
    if conversation.rounds:
        return _seen_on(conversation)
    home = known_home(conversation.turns)
    if home.knows_all(area):
        return _are_on(home.states_in(area, "light"))
    return look(conversation, domain="light", **({"area": area} if area else {}))


def _look_around(_match: re.Match[str], conversation: Conversation) -> Answer:
    """Look with the tool, whatever is known."""
    return _seen_on(conversation) if conversation.rounds else look(conversation)


def _everything(match: re.Match[str], conversation: Conversation) -> Answer:
    home = known_home(conversation.turns)
    return _are_on(home.states_in(None, "")) if home.knows_all() else _look_around(match, conversation)


def _seen_on(conversation: Conversation) -> Answer:
    found = outcome(conversation.rounds[-1][0])
    return _failed(found.error) if found.error else _are_on(seen(found.text).states)


def _are_on(states: Mapping[str, str]) -> Answer:
    on = [name for name, state in states.items() if state.partition(" ")[0] == "on"]
    return Answer(text=f"These are on: {', '.join(on)}." if on else "Nothing is on.")


def _failed(error: str) -> Answer:
    return Answer(text=f"I could not look: {error}.")


QUESTIONS: tuple[Rule, ...] = (
    Rule(pattern(rf"(?:tell me|look|check) (?:whether|if) (?P<name>.+?) (?:is|are) (?:{_STATES}).*"), _state),
    Rule(pattern(rf"is (?P<name>the .+?) (?:{_STATES})"), _state),
    Rule(pattern(r"what is the state of (?P<name>.+?)"), _state),
    Rule(pattern(r"what is the (?P<kind>temperature|humidity) in the (?P<area>.+?)"), _measured),
    Rule(pattern(r"which lights are on(?: in the (?P<area>.+?))?"), _lights),
    Rule(pattern(r"(?:which devices are|what is) on(?: at home)?(?: right now)?"), _everything),
    Rule(pattern(r"look around"), _look_around),
)
