"""Sentences that ask something of memory, in ten languages. Matched with hassil on our own templates.

"Remember to buy milk" is no fact but something to do: it is left to lists, reminders and models.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
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

# Words in the template that belong to what is remembered: "remember {me} {text}".
_TAKEN = ("me", "text", "more")
_WILDCARDS = ("text", "more")
# How a request begins that is a question only in form: "can you".
_CAN = "can"
_LISTS = ("me", _CAN)
# Templates that capture a subject instead of a fact, and those that are questions.
_ABOUT = ("forget_everything", "forget_oneself")
_ASKED = ("hears_fact",)

# Understood in every language.
_YES = ("yes", "ok", "okay")
_NO = ("no",)
# hassil finds no template in "corrige ça : ..."; what is said keeps its length, for its spans.
_SPACED_MARK = re.compile(r"\s([:;])")
_SPOKEN_WORDS = re.compile(r"[\w']+")


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


@dataclass(frozen=True, slots=True)
class Correct:
    """A fact that corrects one that is remembered. It may correct something else that was said if not `is_sure`."""

    text: str
    is_sure: bool


@dataclass(frozen=True, slots=True)
class WhoHears:
    """The question of who else can hear a fact, or whatever was told if it is about none."""

    about: str = ""


type Wish = RememberThat | WhatIsKnown | ForgetThat | ForgetEverything | Correct | WhoHears


@dataclass(frozen=True, slots=True)
class _Sentences:
    """The templates of a language.

    No sentence is without a `trigger`, which is looked for first. `headings` stand before a colon. `clause` is how a
    clause begins where the same words may be followed by an infinitive: "kom ihåg att". `please` is around what is
    captured, and `oneself` is "me".
    """

    trigger: re.Pattern[str]
    intents: Intents
    headings: Intents
    clause: re.Pattern[str]
    please: re.Pattern[str]
    oneself: str


def languages() -> tuple[str, ...]:
    """Return the languages that there are sentences in."""
    return tuple(_file())


def is_loaded(language: str) -> bool:
    """Return whether `matched` answers at once. It takes about a millisecond, and much longer if it loads."""
    return _base(language) in _loaded


def matched(text: str, language: str) -> Wish | None:
    """Return the wish for memory in a text, None if there is none. The first call in a language waits for the disk."""
    sentences = _sentences(_base(language))
    said = text.strip()
    if sentences is None or len(said) > _LONGEST or not sentences.trigger.search(said):
        return None
    found = list(recognize_all(_SPACED_MARK.sub(r"\1 ", said.translate(_APOSTROPHES)), sentences.intents))
    if any(each.intent.name == "nothing" for each in found):
        return None
    wishes = [wish for each in found if (wish := _wish(each, said, sentences))]
    return _under_heading(said, sentences) or min(wishes, key=_length, default=None)


def assent(text: str, language: str) -> bool | None:
    """Return whether a text, as the answer to a question, is a plain yes or a plain no; None if it is neither."""
    words = " ".join(_SPOKEN_WORDS.findall(text.translate(_APOSTROPHES).casefold()))
    yes, no = _answers(_base(language))
    if yes.fullmatch(words):
        return True
    return False if no.fullmatch(words) else None


@cache
def _answers(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of yes and no: one or more of their phrases, with or without "please"."""
    data = _file().get(language, {})
    please = _any_of([*data.get("please", ()), *data.get("thanks", ())])
    yes, no = _any_of([*_YES, *data.get("yes", ())]), _any_of([*_NO, *data.get("no", ())])
    return re.compile(_some_of(yes, please)), re.compile(_some_of(no, please))


def _some_of(answer: str, please: str) -> str:
    return rf"(?:{please} )*{answer}(?: (?:{answer}|{please}))*"


def _any_of(phrases: Iterable[str]) -> str:
    """Return the pattern of any of these phrases as whole words, nothing if there are none."""
    spoken = [" ".join(_SPOKEN_WORDS.findall(phrase.casefold())) for phrase in phrases]
    return rf"(?:{'|'.join(sorted(map(re.escape, spoken), key=len, reverse=True)) or '(?!)'})\b(?!')"


_QUESTIONS: dict[str, Wish] = {"known": WhatIsKnown(), "hears": WhoHears()}
_WISHES: dict[str, Callable[[str], Wish]] = {
    "forget": ForgetThat,
    "forget_clause": ForgetThat,
    "forget_everything": ForgetEverything,
    "forget_oneself": ForgetEverything,
    "correct": partial(Correct, is_sure=True),
    "correct_unsure": partial(Correct, is_sure=False),
    "hears_fact": WhoHears,
}
_OTHER_INTENTS = ("remember", "remember_clause", "nothing")


def _wish(found: RecognizeResult, said: str, sentences: _Sentences) -> Wish | None:
    name = found.intent.name
    if name in _QUESTIONS:
        return _QUESTIONS[name]
    spans = [each.text_span for each in found.entities_list if each.name in _TAKEN and each.text_span]
    start, end = min((start for start, _ in spans), default=0), max((end for _, end in spans), default=0)
    text = sentences.oneself if name == "forget_oneself" else _clean(said[start:end], sentences.please)
    if name not in _ABOUT and not _is_told(text, said, is_request=name in _ASKED or _CAN in found.entities):
        return None
    if not text or (name.endswith("_clause") and not sentences.clause.match(text)):
        return None
    if name.startswith("remember"):
        return RememberThat(text)
    return _WISHES[name](text)


def _under_heading(said: str, sentences: _Sentences) -> RememberThat | None:
    heading, _, text = said.partition(":")
    text = _clean(text, sentences.please)
    if not _is_told(text, said) or not any(recognize_all(heading, sentences.headings)):
        return None
    return RememberThat(text)


def _clean(text: str, please: re.Pattern[str]) -> str:
    return please.sub("", text.strip(_OUTER)).strip(_OUTER)


def _is_told(text: str, said: str, *, is_request: bool = False) -> bool:
    """Return whether a text is a fact. A request may be put as a question."""
    return len(text.split()) >= _FEWEST_WORDS and (is_request or not is_question(said))


def _length(wish: Wish) -> int:
    """Return the length of the wildcards' captures: the template that says more itself is meant."""
    match wish:
        case WhatIsKnown():
            return 0
        case ForgetEverything(text) | WhoHears(text):
            return len(text)
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
    parts = {
        "language": language,
        "lists": {**lists, **{name: {"wildcard": True} for name in _WILDCARDS}},
        "expansion_rules": data["rules"],
        "skip_words": [*data["please"], *data["thanks"], *data["openers"]],
    }
    templates = {name: data[name] for name in (*_QUESTIONS, *_WISHES, *_OTHER_INTENTS) if name in data}
    return _Sentences(
        re.compile(data["trigger"], re.IGNORECASE),
        _intents(parts, templates),
        _intents(parts, {"heading": data["heading"]}),
        re.compile(data.get("clause", "")),
        _please(data["please"], data["thanks"]),
        data["oneself"],
    )


def _please(please: list[str], thanks: list[str]) -> re.Pattern[str]:
    """Return the pattern of either around what is captured. A fact may begin with thanks: "grazie a Luca ..."."""
    before, after = "|".join(map(re.escape, please)), "|".join(map(re.escape, [*please, *thanks]))
    return re.compile(rf"^(?:{before})\b\W*|(?:\W+|^)(?:{after})$", re.IGNORECASE)


def _intents(parts: dict[str, Any], templates: dict[str, list[str]]) -> Intents:
    intents = {name: {"data": [{"sentences": sentences}]} for name, sentences in templates.items()}
    loaded = Intents.from_dict({**parts, "intents": intents})
    # hassil parses templates when it first needs them: here, and not in the event loop
    list(recognize_all("", loaded))
    return loaded
