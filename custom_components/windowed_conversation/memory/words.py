"""Normalizes texts to one line of limited length, and splits them into the words of the index.

Each word passes through the Snowball stemmers of all configured languages, English first, so that the same term
represents the word in any language.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
import importlib
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
import json
import math
from pathlib import Path
import re
import sys
from types import ModuleType
from typing import NamedTuple
import unicodedata

# Stop words and first-person words, by language. They are read at import, which Home Assistant does outside the event
# loop.
_SMALL_WORDS = json.loads(Path(__file__).with_name("stop_words.json").read_text(encoding="utf-8"))

_VERSION = 2
_LONGEST = 64
_LONG = 6
_PART = 5
_END = 4

# scripts written without spaces, and Hangul, because our stemmers do not remove its endings
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
_RUNS = re.compile(rf"([{_UNSPACED}]+)|([^\W_{_UNSPACED}]+)")
_MARKS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")

type Stem = Callable[[str], str]

_PACKAGE = "snowballstemmer"
_ALONE = f"{__name__}.{_PACKAGE}"

_ALGORITHMS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}

FACT_LENGTH = 300
QUOTE_LENGTH = 500
SAID_LENGTH = 2_000
ANSWER_LENGTH = 4_000
EPISODE_LENGTH = 2_000
NAME_LENGTH = 255

# Opening and closing punctuation. Unicode counts `<` and `>` as symbols instead.
_BRACKETS = {"Ps", "Pe"}
_ANGLES = "<>"
_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Characters that join letters or emoji.
_JOINERS = "\u200c\u200d"
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Terms:
    """The index entries of a text: its words, the parts of long words, and the beginnings and ends of words."""

    words: str
    parts: str
    ends: str


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The terms of a search: words, beginnings of words, parts of long words, and beginnings and ends of words."""

    words: tuple[str, ...]
    beginnings: tuple[str, ...]
    parts: tuple[str, ...]
    ends: tuple[str, ...]


class _SmallWords(NamedTuple):
    """The words that a search ignores, and the words by which people refer to themselves."""

    stop: frozenset[str]
    oneself: frozenset[str]


def stop_words(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the stop words of these languages, which a search ignores, as people write them."""
    return _listed(languages, "stop")


def words_for_oneself(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the words of these languages by which people refer to themselves, such as "my"."""
    return _listed(languages, "self")


@cache
def _listed(languages: tuple[str, ...], which: str) -> frozenset[str]:
    return frozenset(word for each in languages for word in _SMALL_WORDS.get(each, {}).get(which, "").split())


@cache
def _small_words(languages: tuple[str, ...]) -> _SmallWords:
    return _SmallWords(
        frozenset([plain_word(word) for word in stop_words(languages)]),
        frozenset([plain_word(word) for word in words_for_oneself(languages)]),
    )


class Words:
    """Splits texts into words for the languages of a home. Not thread-safe, because stemmers have state."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        self.languages = languages
        found = {language.casefold().replace("_", "-").partition("-")[0] for language in languages}
        # English is first, because its stemmer removes little from words of other languages
        bases = tuple([base for _, base in sorted([(base != "en", base) for base in found])])
        # changes whenever the stems of the same languages may change
        self.version = f"{_VERSION} {','.join(bases)} {_PACKAGE} {version(_PACKAGE)}"
        self._stemmers = _load_stemmers(bases)
        self._small = _small_words(bases)
        self._small_elsewhere = [_small_words((each,)) for each in _SMALL_WORDS if each not in bases]
        self._stem = lru_cache(maxsize=4096)(self._stem_anew)

    def terms(self, text: str) -> Terms:
        """Return the terms of a text for the index."""
        words: list[str] = []
        parts: list[str] = []
        ends: list[str] = []
        for word, spaced in split_words(text):
            if spaced:
                words.append(self._stem(word))
                word_parts, word_ends = _parts_and_ends(plain_word(word))
                parts += word_parts
                ends += word_ends
            else:
                words += _pairs(word)
                # a search for one character looks for terms that begin with it, and the last character begins no pair
                words.append(word[-1])
        return Terms(" ".join(words), " ".join(parts), " ".join(ends))

    def question(self, text: str, speaker: str | None = None) -> QuestionTerms:
        """Return the search terms of a question. If it contains "I" or "my", the speaker's name is added."""
        said = list(split_words(text))
        plain_words = {plain_word(word) for word, spaced in said if spaced}
        small = self._small_words_of(plain_words)
        characters = {character for word, spaced in said if not spaced for character in word}
        if speaker and not small.oneself.isdisjoint(plain_words | characters):
            said += split_words(speaker)
        words: dict[str, None] = {}
        beginnings: dict[str, None] = {}
        parts: dict[str, None] = {}
        ends: dict[str, None] = {}
        for word, spaced in said:
            plain = plain_word(word)
            if not spaced:
                words |= dict.fromkeys([pair for pair in _pairs(word) if pair not in small.stop])
                if len(word) == 1 and word not in small.stop:
                    beginnings[word] = None
            elif plain not in small.stop:
                words[self._stem(word)] = None
                word_parts, word_ends = _parts_and_ends(plain)
                parts |= dict.fromkeys(word_parts)
                ends |= dict.fromkeys(word_ends)
        return QuestionTerms(tuple(words), tuple(beginnings), tuple(parts), tuple(ends))

    def term_set(self, text: str) -> set[str]:
        """Return the set of terms for the words of a text."""
        return set(self.terms(text).words.split(" "))

    def has_all_of(self, text: str, question: QuestionTerms) -> bool:
        """Return whether a text contains all words of a question. False if the question has no words."""
        terms = self.term_set(text)
        begun = (any(term.startswith(one) for term in terms) for one in question.beginnings)
        return bool(question.words or question.beginnings) and terms.issuperset(question.words) and all(begun)

    def _small_words_of(self, spoken_words: set[str]) -> _SmallWords:
        """Return the small words of the home's languages, or of another language if the question is in that language.

        The question is considered to be in another language if more of its words are stop words there, at least two,
        but not all, because some of these words have a meaning in other languages.
        """
        numbers = [len(spoken_words & small.stop) for small in self._small_elsewhere]
        most = max(numbers, default=0)
        is_elsewhere = len(spoken_words) > most > max(1, len(spoken_words & self._small.stop))
        return self._small_elsewhere[numbers.index(most)] if is_elsewhere else self._small

    def _stem_anew(self, word: str) -> str:
        stemmed = word
        for stem in self._stemmers:
            stemmed = stem(stemmed) or stemmed
        return plain_word(stemmed)


def spoken(text: str) -> str:
    """Return the words of a text without punctuation, for comparison with other texts."""
    return " ".join([word for word, _ in split_words(text)])


def split_words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word of a text, casefolded, and whether its script separates words with spaces."""
    for run, word in _RUNS.findall(unicodedata.normalize("NFKC", text).casefold()):
        yield (run, False) if run else (word[:_LONGEST], True)


def plain_word(word: str) -> str:
    """Return a word without diacritics."""
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word))) or word


def _pairs(run: str) -> list[str]:
    return [first + second for first, second in pairwise(run)]


def _parts_and_ends(word: str) -> tuple[list[str], list[str]]:
    """Return the parts of a long word, and the beginning and end of a word.

    "Heizung" shares parts with "Fußbodenheizung", "nonna" begins like "nonne", and "hazelnuts" ends like "nuts".
    """
    if len(word) < _END:
        return [], []
    ends = [f"0{word[:_END]}", f"{word[-_END:]}0"]
    starts = range(len(word) - _PART + 1) if len(word) >= _LONG else ()
    return [word[start : start + _PART] for start in starts], ends


def _load_stemmers(languages: tuple[str, ...]) -> list[Stem]:
    """Return the stemmers of the supported languages. Does not import all stemmers, which would take 10 MB."""
    if _ALONE not in sys.modules:
        spec = find_spec(_PACKAGE)
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(f"No module named {_PACKAGE!r}", name=_PACKAGE)
        package = ModuleType(_ALONE)
        package.__path__ = spec.submodule_search_locations
        sys.modules[_ALONE] = package
    names = dict.fromkeys([_ALGORITHMS[language] for language in languages if language in _ALGORITHMS])
    modules = [(name, importlib.import_module(f"{_ALONE}.{name}_stemmer")) for name in names]
    return [getattr(module, f"{name.capitalize()}Stemmer")().stemWord for name, module in modules]


def one_line(text: str, length: int) -> str:
    """Return a text on one line without control characters, cut between words if it is too long."""
    # later characters are cut off anyway
    shown = text[: length * 4]
    if not shown.isprintable():
        categories = [(each, unicodedata.category(each)) for each in shown]
        shown = "".join([" " if kind in _CONTROLS and each not in _JOINERS else each for each, kind in categories])
    line = " ".join(shown.split())
    if len(line) <= length:
        return line
    short = line[: length - len(_CUT)]
    start, space, _ = short.rpartition(" ")
    return (start if space and len(start) > length // 2 else short) + _CUT


def fact_text(text: str) -> str:
    """Return the text of a fact without characters that could end its line or close a bracket around it."""
    categories = [(each, unicodedata.category(each)) for each in text[: FACT_LENGTH * 4]]
    shown = "".join([" " if kind in _BRACKETS or each in _ANGLES else each for each, kind in categories])
    fact = one_line(shown, FACT_LENGTH)
    if not re.search(r"\w", fact):
        raise ValueError("A fact needs words")
    return fact


def name(text: str | None) -> str | None:
    """Return the id of a person, a conversation and so on. Raises `ValueError` if it cannot be stored unchanged."""
    if text is not None and not 0 < len(text.encode()) <= NAME_LENGTH:
        raise ValueError(f"A name has 1 to {NAME_LENGTH} bytes")
    return text


def moment(at: float) -> float:
    """Return a time unchanged. Raises `ValueError` if it is not a finite number of seconds."""
    if isinstance(at, bool) or not math.isfinite(at):
        raise ValueError("A time is a finite number of seconds")
    return float(at)
