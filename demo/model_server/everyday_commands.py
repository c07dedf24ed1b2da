"""The scripted model's use of tools for everyday commands: it calls the tool whose schema or description fits."""

from collections.abc import Mapping, Sequence
import re
from typing import Any

from .conversation import Answer, Call, Conversation, Tool
from .everyday_replies import choose, describe_thing, get_spoken_name, join, start_sentence
from .home_overview import find_entities
from .household import Household, Thing
from .live_context import look_up_states
from .outcome import parse_outcome
from .sentences import Action, Sentence

# The words for each action in the description of a tool.
_DESCRIPTION_BY_ACTION = {
    Action.ON: re.compile(r"\bturns? on\b", re.IGNORECASE),
    Action.OFF: re.compile(r"\bturns? off\b", re.IGNORECASE),
    Action.OPEN: re.compile(r"\bopens?\b", re.IGNORECASE),
    Action.CLOSE: re.compile(r"\bcloses?\b", re.IGNORECASE),
    Action.LOCK: re.compile(r"\block\b", re.IGNORECASE),
    Action.UNLOCK: re.compile(r"\bunlock\b", re.IGNORECASE),
    Action.TIMER: re.compile(r"\bstarts? .*\btimer\b", re.IGNORECASE),
}
_DOMAINS_BY_ACTION = {
    Action.ON: ("light", "switch", "fan", "climate", "media_player", "input_boolean", "vacuum"),
    Action.OFF: ("light", "switch", "fan", "climate", "media_player", "input_boolean", "vacuum"),
    Action.OPEN: ("cover", "valve"),
    Action.CLOSE: ("cover", "valve"),
    Action.LOCK: ("lock",),
    Action.UNLOCK: ("lock",),
    Action.PERCENT: ("light", "cover", "fan"),
    Action.BRIGHTER: ("light",),
    Action.DARKER: ("light",),
    Action.DEGREES: ("climate",),
    Action.WARMER: ("climate",),
    Action.COLDER: ("climate",),
}
_STATE_BY_ACTION = {
    Action.ON: "on",
    Action.OFF: "off",
    Action.OPEN: "open",
    Action.CLOSE: "closed",
    Action.LOCK: "locked",
    Action.UNLOCK: "unlocked",
}
_GERMAN_BY_STATE = {
    "on": "an",
    "off": "aus",
    "open": "offen",
    "closed": "zu",
    "locked": "abgeschlossen",
    "unlocked": "aufgeschlossen",
}
_STEP_BY_ACTION = {Action.BRIGHTER: 20, Action.DARKER: -20, Action.WARMER: 1, Action.COLDER: -1}
# The domains of "everything".
_ALL_DOMAINS = ("light", "switch", "fan", "media_player")
_ITEM_PATTERN = re.compile(
    r"^(?:please |bitte )?(?:add|put|write|setz\w*|schreib\w*|pack\w*|tu) (?P<item>.+?) "
    r"(?:to|on|onto|auf) (?:the |my |our |die |meine |unsere )?(?P<list>[\w ]*(?:list|liste))\b",
    re.IGNORECASE,
)
_SET_POINT_PATTERN = re.compile(r"\bset to (?P<degrees>-?\d+(?:\.\d+)?)")
_PERCENT_PATTERN = re.compile(r"(?P<percent>\d+) ?%")
_DURATION_PATTERN = re.compile(r"(?P<number>\w+) (?P<unit>hour|minute|second|stunde|sekunde)")
_GERMAN_UNITS = {"stunde": "hour", "sekunde": "second"}
_NUMBERS = {
    word: number
    for words in (
        "one two three four five six seven eight nine ten",
        "ein zwei drei vier fünf sechs sieben acht neun zehn",
    )
    for number, word in enumerate(words.split(), start=1)
} | {"a": 1, "an": 1, "eine": 1}


def carry_out(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    """Return the tool calls for a command, what became of them, a question back, or None if it is no command."""
    action = sentence.action
    if action is Action.TIMER:
        return _start_timer(sentence, conversation)
    if action is None or sentence.is_question:
        return None
    if sentence.is_negated:
        return Answer(text=choose(sentence, "All right, I leave it as it is.", "Gut, ich lasse es, wie es ist."))
    match action:
        case Action.ADD:
            return _add_item(sentence, household, conversation)
        case Action.PLAY:
            return _play(sentence, household)
    return _act_on_things(action, sentence, household, conversation)


def _act_on_things(
    action: Action, sentence: Sentence, household: Household, conversation: Conversation
) -> Answer | None:
    things = _find_targets(action, sentence, household, conversation)
    if things is None:
        return Answer(text=choose(sentence, "In which room?", "In welchem Raum?"))
    if not things:
        return None
    if things[0].domain not in _DOMAINS_BY_ACTION[action]:
        name = get_spoken_name(things[0], sentence)
        return Answer(text=choose(sentence, f"I see the {name}, but cannot do that.", f"{name}: das kann ich nicht."))
    if action in _STATE_BY_ACTION:
        return _switch(action, things, sentence, conversation)
    return _set_level(action, things[0], sentence, conversation)


def _find_targets(
    action: Action, sentence: Sentence, household: Household, conversation: Conversation
) -> list[Thing] | None:
    """Return the things to act on; None if the sentence does not say in which room."""
    domains = _DOMAINS_BY_ACTION[action]
    if sentence.means_all and not sentence.kinds:
        return household.find_where(lambda thing: thing.domain in _ALL_DOMAINS)
    named = household.find_named(sentence)
    meant = household.find_meant(sentence, conversation, domains)
    if meant or named:
        return meant or named
    areas = household.find_areas(sentence)
    found = household.find_of_kinds(domains, areas)
    if areas or action in (Action.ON, Action.OFF):
        return found if areas else []
    # a home has one heating or one garage, but it is not clear which lamp is meant
    return found if len(found) <= 1 else None


def _switch(action: Action, things: Sequence[Thing], sentence: Sentence, conversation: Conversation) -> Answer | None:
    state = _STATE_BY_ACTION[action]
    tool = _find_tool(action, conversation)
    if tool is None:
        return None
    if done := [called for called in conversation.tool_rounds if called[0].call.name == tool.name]:
        return _report(sentence, things, done[-1], choose(sentence, state, _GERMAN_BY_STATE[state]))
    if len(things) > 1 and not conversation.tool_rounds and not all(thing.state for thing in things):
        return look_up_states(conversation)
    wanted = [thing for thing in things if thing.word != state]
    if wanted:
        return Answer(calls=tuple(Call(tool.name, _build_target(thing, tool, conversation)) for thing in wanted))
    known = things[0] if len(things) == 1 else None
    everything = choose(sentence, f"Everything is {state} already.", f"Alles ist schon {_GERMAN_BY_STATE[state]}.")
    return Answer(text=start_sentence(describe_thing(known, sentence)) if known else everything)


def _find_tool(action: Action, conversation: Conversation) -> Tool | None:
    """Return the tool whose description has the action, or None."""
    described = _DESCRIPTION_BY_ACTION[action]
    return next((tool for tool in conversation.tools if described.search(tool.description)), None)


def _build_target(thing: Thing, tool: Tool, conversation: Conversation) -> dict[str, Any]:
    """Return the arguments that name a thing, with its domain if others have the same name."""
    same = [each for each in find_entities(conversation.turns) if each.name == thing.name]
    has_domain = len(same) > 1 and "domain" in tool.properties
    return {"name": thing.name, **({"domain": [thing.domain]} if has_domain else {})}


def _report(sentence: Sentence, things: Sequence[Thing], results: Sequence[Any], state: str) -> Answer:
    """Return a report of the results: the things that are done, and an error."""
    by_name = {thing.name: thing for thing in things}
    outcomes = [(by_name.get(result.call.arguments.get("name", "")), parse_outcome(result).error) for result in results]
    done = [get_spoken_name(thing, sentence) for thing, error in outcomes if thing and not error]
    verb = choose(sentence, "is" if len(done) == 1 else "are", "ist jetzt" if len(done) == 1 else "sind jetzt")
    texts = [start_sentence(f"{join(done, sentence)} {verb} {state}")] if done else []
    texts += [choose(sentence, "I could not do that: ", "Das ging nicht: ") + error for _, error in outcomes if error][
        :1
    ]
    return Answer(text=" ".join(texts))


def _set_level(action: Action, thing: Thing, sentence: Sentence, conversation: Conversation) -> Answer | None:
    """Set a brightness, a position or a temperature to the number of the sentence, or a step from its present value."""
    argument = {"climate": "temperature", "cover": "position"}.get(thing.domain, "brightness")
    tool = next((tool for tool in conversation.tools if _takes(tool, argument, thing)), None)
    if tool is None:
        return None
    if done := [called for called in conversation.tool_rounds if called[0].call.name == tool.name]:
        value = done[-1][0].call.arguments[argument]
        unit = "°C" if argument == "temperature" else "%"
        return _report(
            sentence, [thing], done[-1], choose(sentence, f"set to {value:g} {unit}", f"auf {value:g} {unit}")
        )
    is_relative = action in _STEP_BY_ACTION or re.search(r"\b(?:warmer|colder|cooler|wärmer|kälter)\b", sentence.text)
    if is_relative and thing.state is None and not conversation.tool_rounds:
        return look_up_states(conversation, name=thing.name)
    value = _compute_level(action, thing, sentence) if is_relative else sentence.number
    if value is None:
        return None
    return Answer(
        calls=(Call(tool.name, {"name": thing.name, argument: int(value) if value == int(value) else value}),)
    )


def _takes(tool: Tool, argument: str, thing: Thing) -> bool:
    """Return whether the tool sets this of the thing: it takes the argument, and says that it is for its domain."""
    is_for_domain = argument != "temperature" or thing.domain in tool.description.lower()
    return {"name", argument} <= tool.properties.keys() and is_for_domain


def _compute_level(action: Action, thing: Thing, sentence: Sentence) -> float | None:
    if thing.domain == "climate":
        found = _SET_POINT_PATTERN.search(thing.state or "")
        step = sentence.number or 1.0
        is_colder = action is Action.COLDER or re.search(r"\b(?:colder|cooler|kälter)\b", sentence.text)
        return float(found["degrees"]) + (-step if is_colder else step) if found else None
    found = _PERCENT_PATTERN.search(thing.state or "")
    now = float(found["percent"]) if found else (100.0 if thing.word == "on" else 40.0)
    return min(max(now + _STEP_BY_ACTION[action], 10.0), 100.0)


def _add_item(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    found = _ITEM_PATTERN.match(sentence.said)
    lists = (
        [thing for thing in household.find_named(Sentence(found["list"])) if thing.domain == "todo"] if found else []
    )
    tool = next((tool for tool in conversation.tools if _adds_item(tool)), None)
    if found is None or not lists or tool is None:
        return None
    if not conversation.tool_rounds:
        return Answer(calls=(Call(tool.name, {"item": found["item"], "name": lists[0].name}),))
    on_it = choose(sentence, "on the list", "auf der Liste")
    error = parse_outcome(conversation.tool_rounds[-1][0]).error
    return Answer(text=error or start_sentence(f"{found['item']} {choose(sentence, 'is', 'ist')} {on_it}"))


def _adds_item(tool: Tool) -> bool:
    return {"item", "name"} <= tool.properties.keys() and re.search(
        r"\badd\b", tool.description, re.IGNORECASE
    ) is not None


def _start_timer(sentence: Sentence, conversation: Conversation) -> Answer | None:
    tool = _find_tool(Action.TIMER, conversation)
    durations = _parse_durations(sentence)
    if sentence.is_question:
        return Answer(text=choose(sentence, "I know of no timer.", "Ich weiß von keinem Timer."))
    if tool is None:
        return Answer(
            text=choose(
                sentence,
                "I have no timer here. A satellite has one, and I can remind you instead.",
                "Hier habe ich keinen Timer. Ein Satellit hat einen, und ich kann dich erinnern.",
            )
        )
    if conversation.tool_rounds:
        error = parse_outcome(conversation.tool_rounds[-1][0]).error
        return Answer(text=error or choose(sentence, "The timer is running.", "Der Timer läuft."))
    return Answer(calls=(Call(tool.name, durations),)) if durations else None


def _parse_durations(sentence: Sentence) -> Mapping[str, int]:
    durations = {}
    for found in _DURATION_PATTERN.finditer(sentence.text):
        number = int(found["number"]) if found["number"].isdecimal() else _NUMBERS.get(found["number"], 0)
        durations[f"{_GERMAN_UNITS.get(found['unit'], found['unit'])}s"] = number
    return durations


def _play(sentence: Sentence, household: Household) -> Answer | None:
    if household.find_of_kinds(("media_player",), ()):
        return None
    return Answer(
        text=choose(sentence, "I see nothing in this home that plays.", "Ich sehe hier nichts, das etwas abspielt.")
    )
