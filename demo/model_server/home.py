"""The scripted model's use of Home Assistant's tools: switch, look and then switch, read the clock.

It only looks up states that the request does not contain. Its answers about states are in `home_questions`.

Tools are found by the end of their name among the offered ones (`intent__HassTurnOn`); none is assumed to exist.
"""

import re

from .conversation import Answer, Call, Conversation, Result
from .home_questions import QUESTIONS
from .home_states import listed_home
from .live_context import look, seen
from .named import named
from .outcome import outcome
from .rules import Rule, pattern

_SWITCH_TOOLS = {"on": "HassTurnOn", "off": "HassTurnOff"}
_CLOCK_TOOL = "GetDateTime"


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
    return _calls(conversation, _SWITCH_TOOLS[state], *({"name": name} for name in named(match["names"])))


def _look_then_switch(match: re.Match[str], conversation: Conversation) -> Answer:
    wanted, name = match["state"].lower(), named(match["name"])[0]
    match [each for each in conversation.rounds if not _is_look(each)]:
        case [*_, switched]:
            return _report(switched, wanted)
    state = listed_home(conversation.turns).state_of(name)
    if conversation.rounds:
        found = outcome(conversation.rounds[-1][0])
        if found.error:
            return Answer(text=f"I could not look: {found.error}.")
        state = listed_home((), [found.text]).state_of(name)
        if state is None:
            state = wanted if wanted in seen(found.text).states.values() else ""
    if state is None:
        return look(conversation, name=name)
    if state.partition(" ")[0] == wanted:
        return Answer(text=f"The {name} is already {wanted}.")
    return _calls(conversation, _SWITCH_TOOLS[wanted], {"name": name})


def _is_look(called: list[Result]) -> bool:
    return not any(result.call.name.endswith(tuple(_SWITCH_TOOLS.values())) for result in called)


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
    Rule(pattern(r"(?:ask|look at) the clock|what does the clock say"), _look_at_clock),
    *QUESTIONS,
)
