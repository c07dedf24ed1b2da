"""Sentences that ask something of memory, in ten languages. Matched with hassil on our own templates.

"Remember to buy milk" is no fact but something to do: it is left to lists, reminders and models.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
import json
from pathlib import Path
import re
from typing import Any

from hassil.intents import Intents
from hassil.recognize import RecognizeResult, recognize_all

from ..memory import FACT_LENGTH
from ..turn.captures import is_question

_FILE = Path(__file__).with_suffix(".json")

# A longer text is a story, for the model to understand.
_LONGEST = FACT_LENGTH + 100
# "Forget that please" names nothing.
_FEWEST_WORDS = 2

# Characters around a clause, in several languages.
_OUTER = " \t\r\n.,;:!?¡¿…\"'“”„«»‘’-–—"  # noqa: RUF001 - of several scripts
_APOSTROPHES = str.maketrans("’‘ʼ", "'''")  # noqa: RUF001 - of several scripts

# Words in the template that belong to what is remembered: "remember {my} {text} is {more}".
_LISTS = ("me", "my")
_WILDCARDS = ("text", "more")


@dataclass(frozen=True, slots=True)
class RememberThat:
    """A fact to remember, in the words in which it was told."""

    text: str


@dataclass(frozen=True, slots=True)
class WhatIsKnown:
    """The question of what is remembered."""


@dataclass(frozen=True, slots=True)
class ForgetThat:
    """A fact to forget, which may be stored in other words."""

    text: str


@dataclass(frozen=True, slots=True)
class ForgetEverything:
    """A subject of which everything is to be forgotten."""

    about: str


type Wish = RememberThat | WhatIsKnown | ForgetThat | ForgetEverything


@dataclass(frozen=True, slots=True)
class _Sentences:
    """The templates of a language.

    `headings` stand before a colon. `clause` is how a clause begins where the same words may be followed by an
    infinitive: "kom ihåg att".
    """

    intents: Intents
    headings: Intents
    clause: re.Pattern[str]


def languages() -> tuple[str, ...]:
    """Return the languages that there are sentences in."""
    return tuple(_file())


def is_loaded(language: str) -> bool:
    """Return whether `matched` answers at once. It takes about a millisecond, and much longer if it loads."""
    return _base(language) in _loaded


def matched(text: str, language: str) -> Wish | None:
    """Return what is asked of memory, None if nothing is. The first call in a language waits for the disk."""
    sentences = _sentences(_base(language))
    said = text.strip()
    if sentences is None or not said or len(said) > _LONGEST:
        return None
    found = list(recognize_all(said.translate(_APOSTROPHES), sentences.intents))
    if any(each.intent.name == "nothing" for each in found):
        return None
    wishes = [wish for each in found for wish in _wishes(each, said, sentences.clause)]
    return min(wishes, key=_length, default=None) or _under_heading(said, sentences.headings)


def _wishes(found: RecognizeResult, said: str, clause: re.Pattern[str]) -> Iterator[Wish]:
    name = found.intent.name
    if name == "known":
        yield WhatIsKnown()
        return
    spans = [entity.text_span for entity in found.entities_list if entity.text_span]
    text = said[min(start for start, _ in spans) : max(end for _, end in spans)].strip(_OUTER)
    if name == "forget_everything":
        if text:
            yield ForgetEverything(text)
    elif _is_told(text, said) and (not name.endswith("_clause") or clause.match(text)):
        yield RememberThat(text) if name.startswith("remember") else ForgetThat(text)


def _under_heading(said: str, headings: Intents) -> RememberThat | None:
    heading, _, text = said.partition(":")
    text = text.strip(_OUTER)
    if not _is_told(text, said) or not any(recognize_all(heading, headings)):
        return None
    return RememberThat(text)


def _is_told(text: str, said: str) -> bool:
    return len(text.split()) >= _FEWEST_WORDS and not is_question(said)


def _length(wish: Wish) -> int:
    """Return how much the wildcards took: the template that says more itself is meant."""
    match wish:
        case WhatIsKnown():
            return 0
        case ForgetEverything():
            return len(wish.about)
        case _:
            return len(wish.text)


@cache
def _file() -> dict[str, dict[str, Any]]:
    languages: dict[str, dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return languages


def _base(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].casefold()


_loaded: dict[str, _Sentences] = {}


def _sentences(language: str) -> _Sentences | None:
    data = _file().get(language)
    if data is not None and language not in _loaded:
        _loaded[language] = _load(language, data)
    return _loaded.get(language)


def _load(language: str, data: dict[str, Any]) -> _Sentences:
    lists = {name: {"values": data[name]} for name in _LISTS if name in data}
    wildcards = {name: {"wildcard": True} for name in _WILDCARDS}
    templates = {name: each for name, each in data.items() if name not in {*lists, "heading", "clause"}}
    return _Sentences(
        _intents(language, templates, {**lists, **wildcards}),
        _intents(language, {"heading": data["heading"]}, {}),
        re.compile(data.get("clause", "")),
    )


def _intents(language: str, templates: dict[str, list[str]], lists: dict[str, Any]) -> Intents:
    intents = {name: {"data": [{"sentences": sentences}]} for name, sentences in templates.items()}
    return Intents.from_dict({"language": language, "intents": intents, "lists": lists})
