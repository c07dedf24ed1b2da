"""The scripted model's answers about states of the home: from listed states, or else after a look-up.

It answers only with a state from the request: a listed one, or one given for the rest if no entity of that kind is only
counted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import re

from .conversation import Answer, Conversation
from .home_states import ListedHome, Thing, listed_home, things
from .live_context import look, seen
from .named import named
from .outcome import outcome
from .rules import Rule, pattern

_STATES = r"on|off|open|closed|locked|unlocked|playing|running"
# Measurements in a room, and the domain in which a tool finds each.
_MEASURED = {"temperature": "sensor", "humidity": "sensor"}
# For each state in a question: the state that is the answer if the list gives it for the rest.
_OTHER = {
    "on": "off",
    "off": "off",
    "open": "closed",
    "closed": "closed",
    "playing": "off",
    "running": "off",
    "locked": "locked",
    "unlocked": "locked",
}
_UNUSUAL = ("on", "open", "unlocked", "playing", "detected")
_DOMAINS = {"light": "light", "window": "binary_sensor", "door": "binary_sensor", "lock": "lock"}


def _state(match: re.Match[str], conversation: Conversation) -> Answer:
    name = named(match["name"])[0]
    if conversation.rounds:
        found = outcome(conversation.rounds[-1][0])
        if found.error:
            return _failed(found.error)
        state = listed_home((), [found.text]).state_of(name) or seen(found.text).first
        return Answer(text=f"The {name} is {state}.")
    known = _known(name, match.groupdict().get("asked"), conversation)
    return Answer(text=f"The {name} is {known}.") if known else look(conversation, name=name)


def _known(name: str, asked: str | None, conversation: Conversation) -> str | None:
    home = listed_home(conversation.turns)
    state = home.state_of(name)
    usual = _OTHER.get((asked or "").lower())
    if state is None and usual is not None and usual in home.rest and name.lower() in _names(conversation):
        kinds = [kind for kind in (*_DOMAINS, None) if kind is None or kind in name.lower()]
        return None if home.may_be_unlisted(kinds[0], _UNUSUAL) else usual
    return state


def _names(conversation: Conversation) -> set[str]:
    return {thing.name.lower() for thing in things(conversation.turns)}


def _measured(match: re.Match[str], conversation: Conversation) -> Answer:
    """Answer a question about a measurement in a room with the first entity of that room whose name contains it."""
    kind, area = match["kind"].lower(), match["area"].lower()
    if conversation.rounds and (error := outcome(conversation.rounds[-1][0]).error):
        return _failed(error)
    home = listed_home(conversation.turns, _looked_up(conversation))
    known = [state for name, state in home.states.items() if kind in name.lower() and home.areas[name].lower() == area]
    if conversation.rounds and not known:
        known = [seen(outcome(conversation.rounds[-1][0]).text).named(kind)]
    if known:
        return Answer(text=f"The {kind} in the {area} is {known[0]}.")
    return look(conversation, area=area, domain=_MEASURED[kind])


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question about entities of a kind (None for any), in an area (None for any), in one of several states."""

    kind: str | None
    area: str | None
    words: tuple[str, ...]
    yes: str
    no: str

    def answered(self, conversation: Conversation) -> Answer:
        """Answer from the listed states, or else after one look-up."""
        if conversation.rounds and (error := outcome(conversation.rounds[-1][0]).error):
            return _failed(error)
        home = listed_home(conversation.turns, _looked_up(conversation))
        if not conversation.rounds and not self._is_whole(home):
            filters = {"domain": _DOMAINS[self.kind] if self.kind else None, "area": self.area}
            return look(conversation, **{name: value for name, value in filters.items() if value})
        states = home.states if home.is_listed else seen(outcome(conversation.rounds[-1][0]).text).states
        there = [name for name, state in states.items() if self._is_meant(name, state, home, conversation)]
        return Answer(text=f"{self.yes}: {', '.join(there)}." if there else self.no)

    def _is_whole(self, home: ListedHome) -> bool:
        return home.is_listed and not home.may_be_unlisted(self.kind, self.words)

    def _is_meant(self, name: str, state: str, home: ListedHome, conversation: Conversation) -> bool:
        thing = next((each for each in things(conversation.turns) if each.name == name), Thing(name))
        area = home.areas.get(name, thing.area).lower()
        is_there = self.area is None or not area or area == self.area
        return state.partition(" ")[0] in self.words and is_there and (self.kind is None or thing.is_a(self.kind))


def _looked_up(conversation: Conversation) -> list[str]:
    return [result.text for called in conversation.rounds for result in called]


def _on(kind: str | None, area: str | None) -> _Asked:
    return _Asked(kind, area, ("on",), "These are on", "Nothing is on.")


def _open(kind: str | None, area: str | None) -> _Asked:
    return _Asked(kind, area, ("open",), "These are open", "Nothing is open.")


def _unusual(_kind: str | None, area: str | None) -> _Asked:
    return _Asked(None, area, _UNUSUAL, "These are not", "Everything is closed and off.")


# Questions about several entities, without an area; "and in the office?" repeats the question for an area.
_SEVERAL: Mapping[str, Callable[[str | None], _Asked]] = {
    r"which (?:lights|lamps) are on|did (?:anyone|somebody) leave (?:a|any) lights? on": lambda area: _on(
        "light", area
    ),
    r"which windows are open|did (?:anyone|somebody) leave (?:a|any) windows? open": lambda area: _open("window", area),
    r"which doors are open|are all doors closed": lambda area: _open("door", area),
    r"is everything closed and off|is anything (?:still )?(?:on|open)(?: or (?:on|open))?": (
        lambda area: _unusual(None, area)
    ),
}


def _several(match: re.Match[str], conversation: Conversation) -> Answer:
    area = match["area"].lower() if match["area"] else None
    asked = _asked(match["what"] or _before(conversation))
    return asked(area).answered(conversation) if asked else Answer(text="What do you mean?")


def _asked(said: str) -> Callable[[str | None], _Asked] | None:
    return next((make for text, make in _SEVERAL.items() if re.match(text, said, re.IGNORECASE)), None)


def _before(conversation: Conversation) -> str:
    """Return the newest of the earlier questions about several entities."""
    said = (turn.said for turn in reversed(conversation.earlier) if turn.role == "user")
    return next((each for each in said if _asked(each)), "")


def _look_around(_match: re.Match[str], conversation: Conversation) -> Answer:
    """Look up the states with the tool, even if they are listed."""
    return _on(None, None).answered(conversation) if conversation.rounds else look(conversation)


def _everything(_match: re.Match[str], conversation: Conversation) -> Answer:
    return _on(None, None).answered(conversation)


def _failed(error: str) -> Answer:
    return Answer(text=f"I could not look: {error}.")


QUESTIONS: tuple[Rule, ...] = (
    Rule(pattern(rf"(?:tell me|look|check) (?:whether|if) (?P<name>.+?) (?:is|are) (?P<asked>{_STATES}).*"), _state),
    Rule(pattern(rf"is (?P<name>the .+?) (?P<asked>{_STATES})"), _state),
    Rule(pattern(r"what is the state of (?P<name>.+?)"), _state),
    Rule(pattern(r"what is the (?P<kind>temperature|humidity) in the (?P<area>.+?)"), _measured),
    Rule(pattern(rf"(?:(?P<what>{'|'.join(_SEVERAL)})|and)(?: in the (?P<area>.+?))?"), _several),
    Rule(pattern(r"(?:which devices are|what is) on(?: at home)?(?: right now)?"), _everything),
    Rule(pattern(r"look around"), _look_around),
)
