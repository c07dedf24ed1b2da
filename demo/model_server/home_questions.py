"""The scripted model's answers about states of the home: from listed states, or else after a look-up.

It answers only with a state from the request: a listed one, or one given for the rest if no entity of that kind is only
counted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import re

from .conversation import Answer, Conversation
from .home_overview import OverviewEntity, find_entities
from .home_states import ListedHome, parse_listed_home
from .live_context import look_up_states, parse_states
from .named import parse_names
from .outcome import parse_outcome
from .rules import Rule, compile_pattern

_STATE_ALTERNATIVES = r"on|off|open|closed|locked|unlocked|playing|running"
# Measurements in a room, and the domain in which a tool finds each.
_DOMAIN_BY_MEASUREMENT = {"temperature": "sensor", "humidity": "sensor"}
# For each state in a question: the state that is the answer if the list gives it for the rest.
_USUAL_STATE_BY_ASKED = {
    "on": "off",
    "off": "off",
    "open": "closed",
    "closed": "closed",
    "playing": "off",
    "running": "off",
    "locked": "locked",
    "unlocked": "locked",
}
_OPPOSITES = (("open", "closed"), ("locked", "unlocked"))
_UNUSUAL_STATES = ("on", "open", "unlocked", "playing", "detected")
_DOMAIN_BY_KIND = {"light": "light", "window": "binary_sensor", "door": "binary_sensor", "lock": "lock"}


def _answer_state(match: re.Match[str], conversation: Conversation) -> Answer:
    name = parse_names(match["name"])[0]
    if conversation.tool_rounds:
        found = parse_outcome(conversation.tool_rounds[-1][0])
        if found.error:
            return _report_failure(found.error)
        state = parse_listed_home((), [found.text]).find_state(name) or parse_states(found.text).first_state
        return Answer(text=f"The {name} is {state}.")
    asked = match.groupdict().get("asked")
    # "the garage" may be the garage door
    name = parse_listed_home(conversation.turns).find_name(name, _get_opposites(asked)) or name
    known = _find_known_state(name, asked, conversation)
    return Answer(text=f"The {name} is {known}.") if known else look_up_states(conversation, name=name)


def _get_opposites(state: str | None) -> tuple[str, ...]:
    """Return the pair of states to which this one belongs, or nothing."""
    return next((pair for pair in _OPPOSITES if (state or "").lower() in pair), ())


def _find_known_state(name: str, asked: str | None, conversation: Conversation) -> str | None:
    home = parse_listed_home(conversation.turns)
    state = home.find_state(name)
    usual = _USUAL_STATE_BY_ASKED.get((asked or "").lower())
    thing = next((each for each in find_entities(conversation.turns) if each.name.lower() == name.lower()), None)
    if state is not None or usual is None or thing is None:
        return state
    kinds = [kind for kind, states in home.rest_states_by_kind.items() if thing.is_of_kind(kind) and usual in states]
    return usual if kinds and not home.can_be_unlisted(kinds[0], _UNUSUAL_STATES) else None


def _answer_measurement(match: re.Match[str], conversation: Conversation) -> Answer:
    """Answer a question about a measurement in a room with the first entity of that room whose name contains it."""
    kind, area = match["kind"].lower(), match["area"].lower()
    if conversation.tool_rounds and (error := parse_outcome(conversation.tool_rounds[-1][0]).error):
        return _report_failure(error)
    home = parse_listed_home(conversation.turns, _get_result_texts(conversation))
    known = [
        state
        for name, state in home.state_by_name.items()
        if kind in name.lower() and home.area_by_name[name].lower() == area
    ]
    if conversation.tool_rounds and not known:
        known = [parse_states(parse_outcome(conversation.tool_rounds[-1][0]).text).find_by_word(kind)]
    if known:
        return Answer(text=f"The {kind} in the {area} is {known[0]}.")
    return look_up_states(conversation, area=area, domain=_DOMAIN_BY_MEASUREMENT[kind])


@dataclass(frozen=True, slots=True)
class _StatesQuestion:
    """A question about entities of a kind (None for any), in an area (None for any), in one of several states."""

    kind: str | None
    area: str | None
    words: tuple[str, ...]
    answer_prefix: str
    empty_answer: str

    def answered(self, conversation: Conversation) -> Answer:
        """Answer from the listed states, or else after one look-up."""
        if conversation.tool_rounds and (error := parse_outcome(conversation.tool_rounds[-1][0]).error):
            return _report_failure(error)
        home = parse_listed_home(conversation.turns, _get_result_texts(conversation))
        if not conversation.tool_rounds and not self._is_complete(home):
            filters = {"domain": _DOMAIN_BY_KIND[self.kind] if self.kind else None, "area": self.area}
            return look_up_states(conversation, **{name: value for name, value in filters.items() if value})
        states = (
            home.state_by_name
            if home.is_listed
            else parse_states(parse_outcome(conversation.tool_rounds[-1][0]).text).state_by_name
        )
        there = [name for name, state in states.items() if self._is_match(name, state, home, conversation)]
        return Answer(text=f"{self.answer_prefix}: {', '.join(there)}." if there else self.empty_answer)

    def _is_complete(self, home: ListedHome) -> bool:
        return home.is_listed and not home.can_be_unlisted(self.kind, self.words)

    def _is_match(self, name: str, state: str, home: ListedHome, conversation: Conversation) -> bool:
        thing = next((each for each in find_entities(conversation.turns) if each.name == name), OverviewEntity(name))
        area = home.area_by_name.get(name, thing.area).lower()
        is_there = self.area is None or not area or area == self.area
        return state.partition(" ")[0] in self.words and is_there and (self.kind is None or thing.is_of_kind(self.kind))


def _get_result_texts(conversation: Conversation) -> list[str]:
    return [result.text for called in conversation.tool_rounds for result in called]


def _build_on_question(kind: str | None, area: str | None) -> _StatesQuestion:
    return _StatesQuestion(kind, area, ("on",), "These are on", "Nothing is on.")


def _build_open_question(kind: str | None, area: str | None) -> _StatesQuestion:
    return _StatesQuestion(kind, area, ("open",), "These are open", "Nothing is open.")


def _build_unusual_question(_kind: str | None, area: str | None) -> _StatesQuestion:
    return _StatesQuestion(None, area, _UNUSUAL_STATES, "These are not", "Everything is closed and off.")


# Questions about several entities, without an area; "and in the office?" repeats the question for an area.
_QUESTION_BY_TEXT: Mapping[str, Callable[[str | None], _StatesQuestion]] = {
    r"which (?:lights|lamps) are on|did (?:anyone|somebody) leave (?:a|any) lights? on": lambda area: (
        _build_on_question("light", area)
    ),
    r"which windows are open|did (?:anyone|somebody) leave (?:a|any) windows? open": lambda area: _build_open_question(
        "window", area
    ),
    r"which doors are open|are all doors closed": lambda area: _build_open_question("door", area),
    r"is everything closed and off|is anything (?:still )?(?:on|open)(?: or (?:on|open))?": (
        lambda area: _build_unusual_question(None, area)
    ),
}


def _answer_several(match: re.Match[str], conversation: Conversation) -> Answer:
    area = match["area"].lower() if match["area"] else None
    asked = _find_question(match["what"] or _find_earlier_question(conversation))
    return asked(area).answered(conversation) if asked else Answer(text="What do you mean?")


def _find_question(said: str) -> Callable[[str | None], _StatesQuestion] | None:
    return next((make for text, make in _QUESTION_BY_TEXT.items() if re.match(text, said, re.IGNORECASE)), None)


def _find_earlier_question(conversation: Conversation) -> str:
    """Return the newest of the earlier questions about several entities."""
    said = (turn.plain_text for turn in reversed(conversation.earlier_turns) if turn.role == "user")
    return next((each for each in said if _find_question(each)), "")


def _look_around(_match: re.Match[str], conversation: Conversation) -> Answer:
    """Look up the states with the tool, even if they are listed."""
    return (
        _build_on_question(None, None).answered(conversation)
        if conversation.tool_rounds
        else look_up_states(conversation)
    )


def _answer_everything(_match: re.Match[str], conversation: Conversation) -> Answer:
    return _build_on_question(None, None).answered(conversation)


def _report_failure(error: str) -> Answer:
    return Answer(text=f"I could not look: {error}.")


QUESTION_RULES: tuple[Rule, ...] = (
    Rule(
        compile_pattern(
            rf"(?:tell me|look|check) (?:whether|if) (?P<name>.+?) (?:is|are) (?P<asked>{_STATE_ALTERNATIVES}).*"
        ),
        _answer_state,
    ),
    Rule(compile_pattern(rf"is (?P<name>the .+?) (?P<asked>{_STATE_ALTERNATIVES})"), _answer_state),
    Rule(compile_pattern(r"what is the state of (?P<name>.+?)"), _answer_state),
    Rule(compile_pattern(r"what is the (?P<kind>temperature|humidity) in the (?P<area>.+?)"), _answer_measurement),
    Rule(
        compile_pattern(rf"(?:(?P<what>{'|'.join(_QUESTION_BY_TEXT)})|and)(?: in the (?P<area>.+?))?"), _answer_several
    ),
    Rule(compile_pattern(r"(?:which devices are|what is) on(?: at home)?(?: right now)?"), _answer_everything),
    Rule(compile_pattern(r"look around"), _look_around),
)
