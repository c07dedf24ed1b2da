"""The scripted model's use of Home Assistant's tools: switch, look and then switch, read the clock.

It only looks up states that the request does not contain. Its answers about states are in `home_questions`.

Tools are found by the end of their name among the offered ones ("intent__HassTurnOn"); none is assumed to exist.
"""

import re

from .conversation import Answer, Call, Conversation, ToolResult
from .home_overview import find_entities
from .home_questions import QUESTION_RULES
from .home_states import parse_listed_home
from .live_context import look_up_states, parse_states
from .named import parse_names
from .outcome import parse_outcome
from .rules import Rule, compile_pattern

_SWITCH_TOOL_BY_STATE = {"on": "HassTurnOn", "off": "HassTurnOff"}
_CLOCK_TOOL = "GetDateTime"
_LOOK_TOOL = "look"


def _join_names(names: list[str]) -> str:
    the = [f"the {name}" for name in names]
    return " and ".join([", ".join(the[:-1]), the[-1]] if len(the) > 1 else the)


def _call_tool(conversation: Conversation, suffix: str, *arguments: dict[str, str]) -> Answer:
    tool = conversation.find_tool(suffix)
    if tool is None:
        return Answer(text="I have no tool for that.")
    return Answer(calls=tuple(Call(tool, each) for each in arguments))


def _report_results(results: list[ToolResult], state: str) -> Answer:
    outcomes = [(result.call.arguments.get("name", "device"), parse_outcome(result).error) for result in results]
    done = [name for name, error in outcomes if not error]
    sentences = [f"Done, {_join_names(done)} {'is' if len(done) == 1 else 'are'} {state}."] if done else []
    sentences += [f"I could not switch {state} the {name}: {error}." for name, error in outcomes if error]
    return Answer(text=" ".join(sentences))


def _switch_things(match: re.Match[str], conversation: Conversation) -> Answer:
    state = match["state"].lower()
    if conversation.tool_rounds:
        return _report_results(conversation.tool_rounds[-1], state)
    return _call_tool(
        conversation, _SWITCH_TOOL_BY_STATE[state], *({"name": name} for name in parse_names(match["names"]))
    )


def _look_then_switch(match: re.Match[str], conversation: Conversation) -> Answer:
    wanted, name = match["state"].lower(), parse_names(match["name"])[0]
    match [each for each in conversation.tool_rounds if not _is_look_up(each)]:
        case [*_, switched]:
            return _report_results(switched, wanted)
    state = parse_listed_home(conversation.turns).find_state(name)
    if conversation.tool_rounds:
        found = parse_outcome(conversation.tool_rounds[-1][0])
        if found.error:
            return Answer(text=f"I could not look: {found.error}.")
        state = parse_listed_home((), [found.text]).find_state(name)
        if state is None:
            state = wanted if wanted in parse_states(found.text).state_by_name.values() else ""
    if state is None:
        return look_up_states(conversation, name=name)
    if state.partition(" ")[0] == wanted:
        return Answer(text=f"The {name} is already {wanted}.")
    return _call_tool(conversation, _SWITCH_TOOL_BY_STATE[wanted], {"name": name})


def _is_look_up(called: list[ToolResult]) -> bool:
    return not any(result.call.name.endswith(tuple(_SWITCH_TOOL_BY_STATE.values())) for result in called)


def _look_at_clock(_match: re.Match[str], conversation: Conversation) -> Answer:
    if not conversation.tool_rounds and conversation.find_tool(_CLOCK_TOOL):
        return _call_tool(conversation, _CLOCK_TOOL, {})
    results = [parse_outcome(result).text for called in conversation.tool_rounds[-1:] for result in called]
    time = re.search(r"\d{1,2}:\d{2}", " ".join(results) or conversation.newest_user_turn.context.get("time", ""))
    return Answer(text=f"The clock says {time[0]}." if time else "The clock says nothing.")


def _look_through_camera(match: re.Match[str], conversation: Conversation) -> Answer:
    """Answer what a camera sees from its picture. The camera is the one whose name has the place of the question."""
    place = match["place"].lower().removesuffix(" camera")
    if not conversation.tool_rounds:
        cameras = [each.name for each in find_entities(conversation.turns) if each.domain == "camera"]
        named = next((name for name in cameras if place in name.lower()), place)
        return _call_tool(conversation, _LOOK_TOOL, {"camera": named})
    outcomes = [parse_outcome(result) for result in conversation.tool_rounds[-1]]
    if error := next((outcome.error for outcome in outcomes if outcome.error), None):
        return Answer(text=f"I could not look: {error.rstrip('.')}.")
    kinds = ", ".join(picture.media_type.removeprefix("image/").upper() for picture in conversation.seen_pictures)
    count = len(conversation.seen_pictures)
    seen = (
        f"I see {count} {'picture' if count == 1 else 'pictures'} of the {place} ({kinds})"
        if count
        else "I see nothing"
    )
    thing = match.groupdict().get("thing")
    return Answer(text=f"{seen}, and no {thing} in it." if thing else f"{seen}.")


_POLITE_PREFIX = r"(?:(?:please|could you|can you|would you|would you mind) )*"

HOME_RULES: tuple[Rule, ...] = (
    Rule(
        compile_pattern(
            r"is (?P<name>.+?) (?P<asked>on|off)\s*[?,;.]?\s*(?:and )?if not,? (?:please )?"
            r"(?:switch|turn) (?:it|them) (?P<state>on|off)"
        ),
        _look_then_switch,
    ),
    Rule(
        compile_pattern(r"(?:check|look at) (?P<name>.+?),? and (?:switch|turn) it (?P<state>on|off) if it is .+"),
        _look_then_switch,
    ),
    Rule(
        compile_pattern(
            rf"{_POLITE_PREFIX}(?:make sure|see to it)(?: that)? (?P<name>.+?) is (?:switched )?(?P<state>on|off)"
        ),
        _look_then_switch,
    ),
    Rule(
        compile_pattern(r"i(?: would|'d) like (?P<names>.+?) (?:switched|turned) (?P<state>on|off)(?: please)?"),
        _switch_things,
    ),
    Rule(compile_pattern(rf"{_POLITE_PREFIX}(?:switch|turn)(?:ing)? (?P<state>on|off) (?P<names>.+?)"), _switch_things),
    Rule(
        compile_pattern(rf"{_POLITE_PREFIX}(?:switch|turn)(?:ing)? (?P<names>.+?) (?P<state>on|off)(?: please)?"),
        _switch_things,
    ),
    Rule(
        compile_pattern(r"is there (?:a|an|any) (?P<thing>.+?) (?:at|in front of|outside|in|on) the (?P<place>.+?)"),
        _look_through_camera,
    ),
    Rule(
        compile_pattern(r"(?:look|what do you see) through the (?P<place>.+?)"),
        _look_through_camera,
    ),
    Rule(compile_pattern(r"(?:ask|look at) the clock|what does the clock say"), _look_at_clock),
    *QUESTION_RULES,
)
