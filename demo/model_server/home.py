"""What the scripted model does with the tools of Home Assistant: switch, look, look and then switch.

It looks only for states that it was not told.

Tools are looked up by the end of their name among those offered (`intent__HassTurnOn`), never assumed.
"""

from collections.abc import Mapping
import re

from .conversation import Answer, Call, Conversation, Result
from .home_states import known_home
from .outcome import outcome
from .rules import Rule, pattern

_SWITCH_TOOLS = {"on": "HassTurnOn", "off": "HassTurnOff"}
_LOOK_TOOL = "GetLiveContext"
_CLOCK_TOOL = "GetDateTime"

# GetLiveContext answers with YAML: "- names: Kitchen light, Big light", then "  state: 'on'".
_ENTITY = re.compile(r"^- names: (?P<names>.+)(?P<fields>(?:\n  .*)*)", re.MULTILINE)
_STATE = re.compile(r"^  state: ['\"]?(?P<state>.*?)['\"]?$", re.MULTILINE)


def _states(text: str) -> dict[str, str]:
    """Return the state of each entity by its first name, in GetLiveContext's order."""
    states = {}
    for entity in _ENTITY.finditer(text):
        state = _STATE.search(entity["fields"])
        states[entity["names"].split(",")[0].strip(" '\"")] = state["state"] if state else "unknown"
    return states


def _named(text: str) -> list[str]:
    """Return the things in "both the kitchen light and the reading lamp"."""
    text = re.sub(r"^both | (?:for me|now|please|at once|at the same time)$", "", text.strip(), flags=re.IGNORECASE)
    parts = re.split(r",? and |, ", text)
    return [re.sub(r"^(?:the|my) ", "", part.strip(), flags=re.IGNORECASE) for part in parts if part.strip()]


def _listed(names: list[str]) -> str:
    the = [f"the {name}" for name in names]
    return " and ".join([", ".join(the[:-1]), the[-1]] if len(the) > 1 else the)


def _calls(conversation: Conversation, suffix: str, *arguments: dict[str, str]) -> Answer:
    tool = conversation.tool(suffix)
    if tool is None:
        return Answer(text="I have no tool for that.")
    return Answer(calls=tuple(Call(tool, each) for each in arguments))


def _report(results: list[Result], state: str) -> Answer:
    outcomes = [(result.call.arguments.get("name", "device"), outcome(result).error) for result in results]
    done = [name for name, error in outcomes if not error]
    sentences = [f"Done, {_listed(done)} {'is' if len(done) == 1 else 'are'} {state}."] if done else []
    sentences += [f"I could not switch {state} the {name}: {error}." for name, error in outcomes if error]
    return Answer(text=" ".join(sentences))


def _switch(match: re.Match[str], conversation: Conversation) -> Answer:
    state = match["state"].lower()
    if conversation.rounds:
        return _report(conversation.rounds[-1], state)
    return _calls(conversation, _SWITCH_TOOLS[state], *({"name": name} for name in _named(match["names"])))


def _look_then_switch(match: re.Match[str], conversation: Conversation) -> Answer:
    wanted, name = match["state"].lower(), _named(match["name"])[0]
    match conversation.rounds:
        case []:
            return _calls(conversation, _LOOK_TOOL, {"name": name})
        case [[looked, *_]]:
            found = outcome(looked)
            if found.error:
                return Answer(text=f"I could not look: {found.error}.")
            if wanted in _states(found.text).values():
                return Answer(text=f"The {name} is already {wanted}.")
            return _calls(conversation, _SWITCH_TOOLS[wanted], {"name": name})
        case [*_, switched]:
            return _report(switched, wanted)
    raise AssertionError


def _look(match: re.Match[str], conversation: Conversation) -> Answer:
    name = _named(match["name"])[0]
    if not conversation.rounds:
        known = known_home(conversation.turns).state_of(name)
        return Answer(text=f"The {name} is {known}.") if known else _calls(conversation, _LOOK_TOOL, {"name": name})
    found = outcome(conversation.rounds[-1][0])
    if found.error:
        return Answer(text=f"I could not look: {found.error}.")
    state = next(iter(_states(found.text).values()), "unknown")
    return Answer(text=f"The {name} is {state}.")


def _look_around(_match: re.Match[str], conversation: Conversation) -> Answer:
    """Look with the tool, whatever is known."""
    if not conversation.rounds:
        return _calls(conversation, _LOOK_TOOL, {})
    found = outcome(conversation.rounds[-1][0])
    return _are_on(_states(found.text)) if not found.error else Answer(text=f"I could not look: {found.error}.")


def _say_what_is_on(match: re.Match[str], conversation: Conversation) -> Answer:
    home = known_home(conversation.turns)
    return _are_on(home.states) if home.is_whole else _look_around(match, conversation)


def _are_on(states: Mapping[str, str]) -> Answer:
    on = [name for name, state in states.items() if state.partition(" ")[0] == "on"]
    return Answer(text=f"These are on: {', '.join(on)}." if on else "Nothing is on.")


def _look_at_clock(_match: re.Match[str], conversation: Conversation) -> Answer:
    if not conversation.rounds:
        return _calls(conversation, _CLOCK_TOOL, {})
    found = outcome(conversation.rounds[-1][0])
    time = re.search(r"\d{1,2}:\d{2}", found.text)
    return Answer(text=f"The clock says {time[0]}." if time else "The clock says nothing.")


_POLITE = r"(?:(?:please|could you|can you|would you|would you mind) )*"

HOME: tuple[Rule, ...] = (
    Rule(
        pattern(
            r"is (?P<name>.+?) (?P<asked>on|off)\s*[?,;.]?\s*(?:and )?if not,? (?:please )?"
            r"(?:switch|turn) (?:it|them) (?P<state>on|off)"
        ),
        _look_then_switch,
    ),
    Rule(
        pattern(r"(?:check|look at) (?P<name>.+?),? and (?:switch|turn) it (?P<state>on|off) if it is .+"),
        _look_then_switch,
    ),
    Rule(
        pattern(rf"{_POLITE}(?:make sure|see to it)(?: that)? (?P<name>.+?) is (?:switched )?(?P<state>on|off)"),
        _look_then_switch,
    ),
    Rule(pattern(r"i(?: would|'d) like (?P<names>.+?) (?:switched|turned) (?P<state>on|off)(?: please)?"), _switch),
    Rule(pattern(rf"{_POLITE}(?:switch|turn)(?:ing)? (?P<state>on|off) (?P<names>.+?)"), _switch),
    Rule(pattern(rf"{_POLITE}(?:switch|turn)(?:ing)? (?P<names>.+?) (?P<state>on|off)(?: please)?"), _switch),
    Rule(pattern(r"(?:tell me|look|check) (?:whether|if) (?P<name>.+?) is (?:on|off|open|closed|locked).*"), _look),
    Rule(pattern(r"is (?P<name>the .+?) (?:on|off|open|closed|locked)"), _look),
    Rule(pattern(r"what is the state of (?P<name>.+?)"), _look),
    Rule(pattern(r"(?:which devices are|what is) on(?: at home)?(?: right now)?"), _say_what_is_on),
    Rule(pattern(r"look around"), _look_around),
    Rule(pattern(r"(?:ask|look at) the clock|what does the clock say"), _look_at_clock),
)
