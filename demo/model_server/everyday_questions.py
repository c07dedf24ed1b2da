"""The scripted model's answers to everyday questions, from the states, lists and quotes in the request.

States that the request does not have are looked up once. Each function returns None for other questions.
"""

from collections.abc import Collection, Sequence
import json
import re

from .conversation import Answer, Call, Conversation, Tool
from .everyday_replies import (
    choose,
    describe_state,
    describe_thing,
    get_spoken_name,
    join,
    start_sentence,
)
from .household import Household, Thing
from .live_context import look_up_states
from .outcome import parse_outcome
from .sentences import Sentence
from .wire import get_objects

_UNUSUAL_STATES = ("on", "open", "unlocked", "playing", "detected")
# The states that a question about everything in a state asks for.
_STATES_BY_ASKED = {
    "on": ("on", "playing"),
    "off": ("on", "playing"),
    "open": ("open",),
    "closed": ("open",),
    "locked": ("unlocked", "open"),
    "unlocked": ("unlocked",),
}
_WET_CONDITIONS = ("rainy", "pouring", "snowy", "snowy-rainy", "lightning-rainy", "hail")
_WET_QUESTION = re.compile(r"umbrella|regenschirm|\brain|\bregn")
_PLACE_QUESTION = re.compile(r"^(?:where|wo)\b|^(?:is|ist|are|sind)\b.*\b(?:at|in|home|hause|zuhause|da)\b")
_EXTREME_PATTERN = re.compile(r"\b(?:(?P<cold>coldest|kältesten?)|warmest|wärmsten?)\b")
_COMPARISON_PATTERN = re.compile(r"\b(?:warmer|colder|cooler|wärmer|kälter|kühler)\b")
_DEGREES_PATTERN = re.compile(r"(?P<degrees>-?\d+(?:\.\d+)?) ?°")


def answer_question(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    """Return the answer to a question about the home, a look-up for it, or None."""
    if not sentence.is_question:
        return None
    for answer in (_answer_list, _answer_weather, _answer_person, _answer_temperature, _answer_state, _answer_any):
        if answered := answer(sentence, household, conversation):
            return answered
    return None


def _look_up_unknown(things: Sequence[Thing], conversation: Conversation, **filters: str) -> Answer | None:
    """Return a look-up if one of the states is not known and there was none yet, or else None."""
    if conversation.tool_rounds or all(thing.state for thing in things):
        return None
    return look_up_states(conversation, **filters)


def _answer_list(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    lists = [thing for thing in household.find_meant(sentence, conversation) if thing.domain == "todo"]
    if not lists or "todo" not in sentence.kinds:
        return None
    thing = lists[0]
    if conversation.tool_rounds:
        return _report_items(thing, sentence, parse_outcome(conversation.tool_rounds[-1][0]).text)
    tool, argument = _find_list_tool(thing, conversation.tools)
    return Answer(calls=(Call(tool, {argument: thing.name}),)) if tool else None


def _find_list_tool(thing: Thing, tools: Collection[Tool]) -> tuple[str, str]:
    """Return the name and the argument of the tool that reads this list: its schema has the list's name."""
    for tool in tools:
        for argument, schema in tool.properties.items():
            if isinstance(schema, dict) and thing.name in (schema.get("enum") or ()):
                return tool.name, argument
    return "", ""


def _report_items(thing: Thing, sentence: Sentence, text: str) -> Answer:
    try:
        items = json.loads(text)["items"]
    except ValueError, KeyError, TypeError:
        items = []
    names = [str(item.get("summary")) for item in get_objects(items)]
    name = get_spoken_name(thing, sentence)
    if not names:
        return Answer(text=choose(sentence, f"The {name} is empty.", f"{name}: nichts."))
    listed = join(names, sentence)
    return Answer(text=choose(sentence, f"On the {name}: {listed}.", f"Auf der {name}: {listed}."))


def _answer_weather(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    if "weather" not in sentence.kinds:
        return None
    things = household.find_of_kinds(("weather",), ())
    if not things:
        return Answer(text=choose(sentence, "I see no weather in this home.", "Ich sehe hier kein Wetter."))
    if looked := _look_up_unknown(things, conversation, domain="weather"):
        return looked
    weather = things[0]
    word, _, measured = describe_state(weather, sentence).partition(" ")
    now = choose(sentence, f"Now it is {word}, {measured}.", f"Jetzt ist es {word}, {measured}.")
    if sentence.is_about_future:
        now += choose(sentence, " I see no forecast.", " Eine Vorhersage sehe ich nicht.")
    if not _WET_QUESTION.search(sentence.text):
        return Answer(text=now)
    is_wet = weather.word in _WET_CONDITIONS
    return Answer(text=f"{choose(sentence, 'Yes' if is_wet else 'No', 'Ja' if is_wet else 'Nein')}. {now}")


def _answer_person(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    people = household.find_of_kinds(("person",), ())
    named = [person for person in people if any(map(sentence.names, person.names))]
    if not (named and _PLACE_QUESTION.search(sentence.text)) and "person" not in sentence.kinds:
        return None
    if looked := _look_up_unknown(named or people, conversation, domain="person"):
        return looked
    if named:
        return Answer(text=start_sentence(describe_thing(named[0], sentence)))
    home = [person.name for person in people if person.word == "home"]
    if not home:
        return Answer(text=choose(sentence, "Nobody is home.", "Niemand ist zu Hause."))
    verb = choose(sentence, "is" if len(home) == 1 else "are", "ist" if len(home) == 1 else "sind")
    return Answer(text=f"{join(home, sentence)} {verb} {choose(sentence, 'home', 'zu Hause')}.")


def _answer_temperature(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    if not sentence.is_about_temperature:
        return None
    sensors = [
        thing
        for thing in household.find_of_kinds(("sensor",), household.find_areas(sentence))
        if thing.state is None or _DEGREES_PATTERN.search(thing.state)
    ]
    if looked := _look_up_unknown(sensors, conversation, domain="sensor"):
        return looked
    values = {thing: float(found["degrees"]) for thing in sensors if (found := _find_degrees(thing))}
    return _report_temperatures(sentence, values) if values else None


def _report_temperatures(sentence: Sentence, values: dict[Thing, float]) -> Answer:
    if len(values) == 2 and _COMPARISON_PATTERN.search(sentence.text):
        return _compare(sentence, values)
    if extreme := _EXTREME_PATTERN.search(sentence.text):
        chosen = (min if extreme["cold"] else max)(values, key=lambda thing: values[thing])
        values = {chosen: values[chosen]}
    rooms = [f"{_get_area_name(thing, sentence)} {value:g} °C" for thing, value in values.items()]
    if len(rooms) > 1:
        return Answer(text=f"{join(rooms, sentence)}.")
    ((thing, value),) = values.items()
    area = _get_area_name(thing, sentence)
    return Answer(text=choose(sentence, f"It is {value:g} °C in the {area}.", f"{area}: {value:g} °C."))


def _find_degrees(thing: Thing) -> re.Match[str] | None:
    return _DEGREES_PATTERN.search(thing.state or "")


def _get_area_name(thing: Thing, sentence: Sentence) -> str:
    return choose(sentence, thing.entity.area.lower(), next(iter(thing.entity.area_aliases), thing.entity.area))


def _compare(sentence: Sentence, values: dict[Thing, float]) -> Answer:
    """Answer whether the area that the sentence names first is the warmer or colder one."""

    def find_position(thing: Thing) -> int:
        found = (sentence.text.find(name.lower()) for name in (thing.entity.area, *thing.entity.area_aliases))
        return min((at for at in found if at >= 0), default=len(sentence.text))

    first, second = sorted(values, key=find_position)
    wants_colder = re.search(r"\b(?:colder|cooler|kälter|kühler)\b", sentence.text) is not None
    is_so = (values[first] < values[second]) if wants_colder else (values[first] > values[second])
    yes = choose(sentence, "Yes" if is_so else "No", "Ja" if is_so else "Nein")
    facts = [f"{_get_area_name(thing, sentence)} {values[thing]:g} °C" for thing in (first, second)]
    return Answer(text=f"{yes}: {join(facts, sentence)}.")


def _answer_state(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    """Answer whether a thing is in a state, or in which one it is; or in which ones several are, if none is asked."""
    meant = [thing for thing in household.find_meant(sentence, conversation) if thing.domain != "person"]
    is_one = len(meant) == 1 or household.find_named(sentence)
    if not meant or sentence.means_all or (not is_one and sentence.state):
        return None
    things = [_prefer_asked(meant, sentence)] if is_one else meant
    if looked := _look_up_unknown(things, conversation, **({"name": things[0].name} if is_one else {})):
        return looked
    known = [thing for thing in things if thing.state]
    if not known:
        return None
    text = join([describe_thing(thing, sentence) for thing in known], sentence)
    yes = _say_whether(known[0], sentence) if len(known) == 1 else ""
    return Answer(text=f"{yes}, {text}." if yes else start_sentence(text))


def _say_whether(thing: Thing, sentence: Sentence) -> str:
    """Return yes or no if the sentence asks for a state that the thing can be in, or else an empty text."""
    if sentence.state is None or thing.domain == "sensor":
        return ""
    is_running = thing.domain == "climate" and (thing.word != "off") == (sentence.state == "on")
    is_so = thing.word == sentence.state or is_running
    return choose(sentence, "Yes" if is_so else "No", "Ja" if is_so else "Nein")


def _prefer_asked(things: Sequence[Thing], sentence: Sentence) -> Thing:
    """Return the thing that can be in the state that is asked for, and has the longest name that is said."""
    opposites = (("open", "closed"), ("locked", "unlocked"), ("on", "off"))
    pair = next((each for each in opposites if sentence.state in each), ())
    return max(things, key=lambda thing: (thing.word in pair, max(map(len, thing.names))))


def _answer_any(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    """Answer which things of a kind, or of any kind, are in a state: "is anything open?", "is everything locked?"."""
    if not (sentence.means_all or sentence.means_any):
        return None
    states = _STATES_BY_ASKED.get(sentence.state or "", _UNUSUAL_STATES if sentence.means_all else ())
    areas = household.find_areas(sentence)
    kinds = [kind for kind in sentence.kinds if kind != "todo"]
    things = household.find_of_kinds(kinds, areas) if kinds else household.find_where(_has_usual_state)
    if not states or not things:
        return None
    if looked := _look_up_unknown(things, conversation):
        return looked
    found = [thing for thing in things if thing.word in states]
    wants_all = sentence.means_all and not sentence.means_any
    if found:
        listed = join([describe_thing(thing, sentence) for thing in found], sentence)
        return Answer(
            text=f"{choose(sentence, 'No' if wants_all else 'Yes', 'Nein' if wants_all else 'Ja')}: {listed}."
        )
    asked = sentence.state or "off"
    nothing = choose(sentence, f"No, nothing is {asked}.", "Nein, nichts.")
    everything = choose(sentence, f"Yes, everything is {asked}.", "Ja, alles.")
    return Answer(text=everything if wants_all else nothing)


def _has_usual_state(thing: Thing) -> bool:
    return thing.domain in ("light", "switch", "cover", "lock", "binary_sensor", "media_player", "fan", "valve")
