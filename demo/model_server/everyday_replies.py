"""The words of the scripted model's answers about the home, in English and German."""

from collections.abc import Iterable
import re

from .household import Thing
from .sentences import Sentence

_GERMAN_STATES = {
    "on": "an",
    "off": "aus",
    "open": "offen",
    "closed": "geschlossen",
    "locked": "abgeschlossen",
    "unlocked": "nicht abgeschlossen",
    "home": "zu Hause",
    "away": "unterwegs",
    "rainy": "regnerisch",
    "sunny": "sonnig",
    "cloudy": "bewölkt",
    "snowy": "verschneit",
    "heat": "an",
}
# The state of a thermostat: "heat now idle 20 °C set to 21 °C".
_SET_POINT_PATTERN = re.compile(r"^(?!off)\w.*\bset to (?P<degrees>.+)")


def choose(sentence: Sentence, english: str, german: str) -> str:
    """Return the text in the language of the sentence."""
    return german if sentence.is_german else english


def get_spoken_name(thing: Thing, sentence: Sentence) -> str:
    """Return the name by which the sentence calls the thing, or else its name in that language."""
    called = next((name for name in thing.names if sentence.names(name)), None)
    alias = next(iter(thing.entity.aliases), thing.name)
    return called or choose(sentence, thing.name, alias)


def describe_state(thing: Thing, sentence: Sentence) -> str:
    """Return the thing's state in words: "on 60%", "an 60%"."""
    state = thing.state or ""
    if thing.domain == "climate" and (set_point := _SET_POINT_PATTERN.search(state)):
        return f"{choose(sentence, 'on, set to', 'an, auf')} {set_point['degrees']}"
    word, space, rest = state.partition(" ")
    return choose(sentence, state, f"{_GERMAN_STATES.get(word, word)}{space}{rest}")


def describe_thing(thing: Thing, sentence: Sentence) -> str:
    """Return a sentence without a full stop: "the Side door is locked"."""
    name, state = get_spoken_name(thing, sentence), describe_state(thing, sentence)
    is_place = thing.domain == "person" and thing.word not in ("home", "away")
    if is_place:
        return choose(sentence, f"{name} is at {state}", f"{name} ist hier: {state}")
    article = "" if thing.domain in ("person", "weather") else "the "
    return choose(sentence, f"{article}{name} is {state}", f"{name} ist {state}")


def join(parts: Iterable[str], sentence: Sentence) -> str:
    """Return an enumeration: "a, b and c"."""
    *most, last = parts
    return f"{', '.join(most)} {choose(sentence, 'and', 'und')} {last}" if most else last


def start_sentence(text: str) -> str:
    """Return the text as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."
