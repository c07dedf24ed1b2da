"""Normalizes texts to one line of limited length, and splits them into the words of the index.

Each word passes through the Snowball stemmers of all configured languages, English first, so that the same term
represents the word in any language.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
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
from typing import Literal, NamedTuple
import unicodedata

# Stop words, first-person words, and the stemmer or the endings of each language. All are needed, because comparing the
# words tells the language of a question. They are read at import, which Home Assistant does outside the event loop.
_STOP_WORDS = json.loads(Path(__file__).with_name("stop_words.json").read_text(encoding="utf-8"))

_SPLITTING_VERSION = 1
_MAX_WORD_CHARS = 64
_MIN_LONG_WORD_CHARS = 6
_WORD_PART_CHARS = 5
_WORD_EDGE_CHARS = 4

# scripts written without spaces, and Hangul, because our stemmers do not remove its endings
_UNSPACED_CHARS = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
_WORD_PATTERN = re.compile(rf"([{_UNSPACED_CHARS}]+)|([^\W_{_UNSPACED_CHARS}]+)")
_DIACRITIC_PATTERN = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")

type Stemmer = Callable[[str], str]

_STEMMER_PACKAGE = "snowballstemmer"
_PRIVATE_PACKAGE_NAME = f"{__name__}.{_STEMMER_PACKAGE}"

# Languages without a Snowball stemmer may have a list of endings, of which a word loses the longest one. The version
# changes with the lists.
_ENDINGS_VERSION = 1
_MIN_STEM_CHARS = 3

# Codes of languages whose words and texts have another code.
_CODE_BY_ALIAS = {"cmn": "zh", "nn": "nb", "no": "nb", "yue": "zh"}

# languages whose stemmers also remove prefixes
_PREFIX_REMOVING_LANGUAGES = frozenset({"ar", "ga", "id", "nl", "tr"})

MAX_FACT_CHARS = 300
MAX_QUOTE_CHARS = 500
MAX_SEARCH_WORDS_CHARS = 200
MAX_USER_TEXT_CHARS = 2_000
MAX_ANSWER_CHARS = 4_000
MAX_SUMMARY_CHARS = 2_000
MAX_ID_BYTES = 255

# Opening and closing punctuation. Unicode counts `<` and `>` as symbols instead.
_BRACKET_CLASSES = {"Ps", "Pe"}
_ANGLE_BRACKETS = "<>"
_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Characters that join letters or emoji.
_JOINER_CHARS = "\u200c\u200d"
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class IndexTerms:
    """The index entries of a text: its words, the parts of long words, and the beginnings and ends of words."""

    words: str
    word_parts: str
    word_edges: str


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """The terms of a search: words, beginnings of words, parts of long words, and beginnings and ends of words."""

    words: tuple[str, ...]
    word_beginnings: tuple[str, ...]
    word_parts: tuple[str, ...]
    word_edges: tuple[str, ...]
    # The words, without numbers, that neither occur in commands to the home nor in the name of the speaker.
    distinctive_words: tuple[str, ...]
    # The parts, the beginning and the end of each word, the latter two with a space as their limit.
    pieces_by_word: Mapping[str, tuple[str, ...]]
    # Whether it is a question with "I" or "my".
    is_personal: bool


class _FunctionWords(NamedTuple):
    """The words of `get_function_words` without diacritics."""

    stop_words: frozenset[str]
    first_person_words: frozenset[str]


@lru_cache(maxsize=64)
def base_language(language: str) -> str:
    """Return the code of a language without its region and script: "pt" for "pt-BR", "nb" for "no"."""
    base = language.replace("_", "-").partition("-")[0].casefold()
    return _CODE_BY_ALIAS.get(base, base)


@cache
def get_function_words(languages: tuple[str, ...], which: Literal["stop", "self"]) -> frozenset[str]:
    """Return the words that a search ignores ("stop"), or by which people refer to themselves ("self"), as written."""
    return frozenset(word for each in languages for word in _STOP_WORDS.get(each, {}).get(which, "").split())


def get_content_words(text: str) -> frozenset[str]:
    """Return the words of a text, as they are written, that are stop words in no language."""
    stop_words = get_function_words(tuple(_STOP_WORDS), "stop")
    words = [(word,) if is_spaced else _split_into_pairs(word) for word, is_spaced in split_words(text)]
    return frozenset([each for pieces in words for each in pieces if each not in stop_words])


@cache
def _load_function_words(languages: tuple[str, ...]) -> _FunctionWords:
    stop_words, first_person_words = get_function_words(languages, "stop"), get_function_words(languages, "self")
    return _FunctionWords(
        frozenset(map(remove_diacritics, stop_words)), frozenset(map(remove_diacritics, first_person_words))
    )


@cache
def _read_stemmer_version() -> str:
    return version(_STEMMER_PACKAGE)


class Words:
    """Splits texts into words for the languages of a home. Not thread-safe, because stemmers have state."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        self.languages = languages
        found = set(map(base_language, languages))
        # English is first, because its stemmer removes little from words of other languages
        bases = tuple([base for _, base in sorted([(base != "en", base) for base in found])])
        # changes whenever the stems of the same languages may change
        self.version = f"{_SPLITTING_VERSION} {','.join(bases)} {_STEMMER_PACKAGE} {_read_stemmer_version()}"
        if any("endings" in _STOP_WORDS.get(each, ()) for each in bases):
            self.version += f" endings {_ENDINGS_VERSION}"
        self._stemmers = _load_stemmers(bases)
        self._removes_prefixes = not _PREFIX_REMOVING_LANGUAGES.isdisjoint(bases)
        self._function_words = _load_function_words(bases)
        self._foreign_function_words = [_load_function_words((each,)) for each in _STOP_WORDS if each not in bases]
        self._stem = lru_cache(maxsize=4096)(self._stem_uncached)
        self._build_command_terms = lru_cache(maxsize=1)(self._build_term_set_of_words)

    def build_index_terms(self, text: str) -> IndexTerms:
        """Return the terms of a text for the index."""
        words: list[str] = []
        parts: list[str] = []
        ends: list[str] = []
        for word, spaced in split_words(text):
            if spaced:
                words.append(self._stem(word))
                word_parts, word_ends = _split_parts_and_edges(remove_diacritics(word))
                parts += word_parts
                ends += word_ends
            else:
                words += _split_into_pairs(word)
                # a search for one character looks for terms that begin with it, and the last character begins no pair
                words.append(word[-1])
        return IndexTerms(" ".join(words), " ".join(parts), " ".join(ends))

    def search_terms(
        self, text: str, speaker: str | None = None, command_words: frozenset[str] = frozenset(), named: str = ""
    ) -> SearchTerms:
        """Return the search terms of a question. If it contains "I" or "my", the speaker's name is added.

        `command_words` are the words of commands to the home, and `named` the names of entities in the text: neither
        are distinctive. The terms of the former are kept for the next question.
        """
        said = list(split_words(text))
        plain_words = {remove_diacritics(word) for word, spaced in said if spaced}
        small = self._choose_function_words(plain_words)
        characters = {character for word, spaced in said if not spaced for character in word}
        is_personal = not small.first_person_words.isdisjoint(plain_words | characters)
        if speaker and is_personal:
            said += split_words(speaker)
        words: dict[str, None] = {}
        beginnings: dict[str, None] = {}
        parts: dict[str, None] = {}
        ends: dict[str, None] = {}
        pieces: dict[str, tuple[str, ...]] = {}
        for word, spaced in said:
            plain = remove_diacritics(word)
            if not spaced:
                words |= dict.fromkeys([pair for pair in _split_into_pairs(word) if pair not in small.stop_words])
                if len(word) == 1 and word not in small.stop_words:
                    beginnings[word] = None
            elif plain not in small.stop_words:
                words[self._stem(word)] = None
                word_parts, word_ends = _split_parts_and_edges(plain)
                parts |= dict.fromkeys(word_parts)
                ends |= dict.fromkeys(word_ends)
                edges = (f" {plain[:_WORD_EDGE_CHARS]}", f"{plain[-_WORD_EDGE_CHARS:]} ") if word_ends else ()
                pieces[self._stem(word)] = (*word_parts, *edges)
        common = self._build_command_terms(command_words) | self.build_term_set(f"{speaker or ''} {named}")
        distinctive = tuple([word for word in words if word not in common and not word.isdecimal()])
        return SearchTerms(tuple(words), tuple(beginnings), tuple(parts), tuple(ends), distinctive, pieces, is_personal)

    def build_term_set(self, text: str) -> set[str]:
        """Return the set of terms for the words of a text."""
        terms: set[str] = set()
        for word, spaced in split_words(text):
            terms.update([self._stem(word)] if spaced else [*_split_into_pairs(word), word[-1]])
        return terms

    def find_terms(self, words: Iterable[tuple[str, bool]], wanted: Collection[str]) -> set[str]:
        """Return the wanted terms that these words contain. This is faster than `build_term_set`."""
        initials = {term[0] for term in wanted}
        terms: set[str] = set()
        for word, spaced in words:
            if not spaced:
                terms.update([*_split_into_pairs(word), word[-1]])
            # most words need no stem: a stem of a word in ASCII begins as the word does, except for removed prefixes
            elif self._removes_prefixes or word[0] in initials or not word[0].isascii():
                terms.add(self._stem(word))
        return terms.intersection(wanted)

    def _choose_function_words(self, spoken_words: set[str]) -> _FunctionWords:
        """Return the small words of the home's languages, or of another language if the question is in that language.

        The question is considered to be in another language if more of its words are stop words there, at least two,
        but not all, because some of these words have a meaning in other languages.
        """
        numbers = [len(spoken_words & small.stop_words) for small in self._foreign_function_words]
        most = max(numbers, default=0)
        is_elsewhere = len(spoken_words) > most > max(1, len(spoken_words & self._function_words.stop_words))
        return self._foreign_function_words[numbers.index(most)] if is_elsewhere else self._function_words

    def _build_term_set_of_words(self, words: frozenset[str]) -> frozenset[str]:
        return frozenset([term for word in words for term in self.build_term_set(word)])

    def _stem_uncached(self, word: str) -> str:
        stemmed = word
        for stem in self._stemmers:
            stemmed = stem(stemmed) or stemmed
        return remove_diacritics(stemmed)


def clean_text(text: str) -> str:
    """Return the words of a text without punctuation, for comparison with other texts."""
    return " ".join([word for word, _ in split_words(text)])


def split_words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word of a text, casefolded, and whether its script separates words with spaces."""
    for run, word in _WORD_PATTERN.findall(unicodedata.normalize("NFKC", text).casefold()):
        yield (run, False) if run else (word[:_MAX_WORD_CHARS], True)


def remove_diacritics(word: str) -> str:
    """Return a word without diacritics."""
    return unicodedata.normalize("NFC", _DIACRITIC_PATTERN.sub("", unicodedata.normalize("NFD", word))) or word


def _split_into_pairs(run: str) -> list[str]:
    return [first + second for first, second in pairwise(run)]


def _split_parts_and_edges(word: str) -> tuple[list[str], list[str]]:
    """Return the parts of a long word, and the beginning and end of a word.

    "Heizung" shares parts with "Fußbodenheizung", "nonna" begins like "nonne", and "hazelnuts" ends like "nuts".
    """
    if len(word) < _WORD_EDGE_CHARS:
        return [], []
    ends = [f"0{word[:_WORD_EDGE_CHARS]}", f"{word[-_WORD_EDGE_CHARS:]}0"]
    starts = range(len(word) - _WORD_PART_CHARS + 1) if len(word) >= _MIN_LONG_WORD_CHARS else ()
    return [word[start : start + _WORD_PART_CHARS] for start in starts], ends


def _load_stemmers(languages: tuple[str, ...]) -> list[Stemmer]:
    """Return the stemmers of the supported languages. Does not import all stemmers, which would take 10 MB."""
    if _PRIVATE_PACKAGE_NAME not in sys.modules:
        spec = find_spec(_STEMMER_PACKAGE)
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(f"No module named {_STEMMER_PACKAGE!r}", name=_STEMMER_PACKAGE)
        package = ModuleType(_PRIVATE_PACKAGE_NAME)
        package.__path__ = spec.submodule_search_locations
        sys.modules[_PRIVATE_PACKAGE_NAME] = package
    names, endings = [
        [_STOP_WORDS[each][rules] for each in languages if rules in _STOP_WORDS.get(each, ())]
        for rules in ("stemmer", "endings")
    ]
    modules = [(name, importlib.import_module(f"{_PRIVATE_PACKAGE_NAME}.{name}_stemmer")) for name in names]
    stemmers = [getattr(module, f"{name.capitalize()}Stemmer")().stemWord for name, module in modules]
    patterns = [re.compile(f"(?<=.{{{_MIN_STEM_CHARS}}})(?:{'|'.join(each.split())})$") for each in endings]
    return [*stemmers, *[partial(pattern.sub, "") for pattern in patterns]]


def join_lines(text: str, length: int, *, removes_brackets: bool = False) -> str:
    """Return a text on one line without control characters, cut between words if it is too long."""
    # later characters are cut off anyway
    shown = text[: length * 4]
    if not shown.isprintable():
        categories = [(each, unicodedata.category(each)) for each in shown]
        shown = "".join([" " if kind in _CONTROLS and each not in _JOINER_CHARS else each for each, kind in categories])
    if removes_brackets:
        categories = [(each, unicodedata.category(each)) for each in shown]
        brackets = {each for each, kind in categories if kind in _BRACKET_CLASSES or each in _ANGLE_BRACKETS}
        shown = "".join([" " if each in brackets else each for each in shown])
    line = " ".join(shown.split())
    if len(line) <= length:
        return line
    short = line[: length - len(_ELLIPSIS)]
    start, space, _ = short.rpartition(" ")
    return (start if space and len(start) > length // 2 else short) + _ELLIPSIS


def clean_fact(text: str) -> str:
    """Return the text of a fact without characters that could end its line or close a bracket around it."""
    fact = join_lines(text, MAX_FACT_CHARS, removes_brackets=True)
    if not re.search(r"\w", fact):
        raise ValueError("A fact needs words")
    return fact


def validate_id(text: str | None) -> str | None:
    """Return the id of a person, a conversation and so on. Raises `ValueError` if it cannot be stored unchanged."""
    if text is not None and not 0 < len(text.encode()) <= MAX_ID_BYTES:
        raise ValueError(f"A name has 1 to {MAX_ID_BYTES} bytes")
    return text


def validate_timestamp(at: float) -> float:
    """Return a time unchanged. Raises `ValueError` if it is not a finite number of seconds."""
    if isinstance(at, bool) or not math.isfinite(at):
        raise ValueError("A time is a finite number of seconds")
    return float(at)
