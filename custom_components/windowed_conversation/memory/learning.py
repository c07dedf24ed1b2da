"""The proof of facts that a model quotes from an ended conversation. The model's own words never become a fact."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
import json
from pathlib import Path
import re
from typing import Any, NamedTuple

from .words import MAX_FACT_CHARS, clean_text, remove_diacritics

_FOLDER = Path(__file__).with_name("learning_words")
_UNSPACED_LANGUAGES = ("ja", "zh")
MAX_QUOTES = 5
_MIN_QUOTE_TOKENS = 2
_MAX_SUBJECT_CHARS = 60
# A game of pretending makes this many later turns of its speaker no facts.
_GAME_TURNS = 2

_CJK = "\u3040-\u30ff\u3400-\u9fff"
_TOKEN_PATTERN = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_SENTENCE_PATTERN = re.compile(r"(?:[^.!?。！？\n;；]|[.](?!\s|$))+[.!?。！？;；]*")  # noqa: RUF001 - of several scripts
_CLAUSE_END_PATTERN = re.compile(r"[,，:：–—](?!\d)|\s-\s")  # noqa: RUF001 - of several scripts
_QUESTION_MARKS = ("?", "？")
_STRIPPABLE_CHARS = ' \t\r\n.,;:!…"“”„«»‘-–—，。！；：、「」'  # noqa: RUF001 - of several scripts


type _Span = tuple[int, int]


class ProvedQuote(NamedTuple):
    """A clause that a person said and that states a lasting fact. `turn` is the index of the turn."""

    turn: int
    text: str
    clause: str
    search_words: str


def prove_quotes(found: object, said: Sequence[str], language: str) -> tuple[ProvedQuote, ...]:
    """Return the quotes that one person said in their turns, and that state a lasting fact.

    `found` is a model's list of objects with the "number" of a turn (from 1), a "quote" from it, the "subject" of a
    quote that begins with a pronoun, and other "words" for searches; other data proves nothing. A quote is widened to
    whole clauses, so that nothing is cut off that changes its meaning. A clause is refused if it is too long, a
    question, a request, part of a game, a story or a report, a guess, a wish, a plan, about the assistant, or a secret,
    or if nothing in it says that it lasts. `language` is a code without a region. Blocks on disk I/O.
    """
    words, proved = _load_words(language), dict[str, ProvedQuote]()
    if not isinstance(found, list) or words is None:
        return ()
    for each in found[:MAX_QUOTES]:
        if isinstance(each, dict) and (quote := _prove(each, said, words)) is not None:
            proved[quote.text] = quote
    return tuple(proved.values())


class _LanguageWords:
    """The word lists of a language, see docs/memory.md: by name, patterns for simplified text."""

    def __init__(self, lists: Mapping[str, Sequence[str]], *, is_spaced: bool) -> None:
        self.is_spaced = is_spaced
        self.edge = r"\b" if is_spaced else ""
        joined = {name: self._fold("|".join(parts) or "(?!)") for name, parts in lists.items()}
        self._patterns = {name: re.compile(f"{self.edge}(?:{parts}){self.edge}") for name, parts in joined.items()}

    def simplify(self, text: str) -> str:
        """Return the words of a text, without diacritics where its script has spaces."""
        return self._fold(clean_text(text))

    def has(self, names: str, text: str) -> bool:
        """Return whether a text contains a word of any of these lists."""
        plain = self.simplify(text)
        return any(self._patterns[name].search(plain) for name in names.split())

    def is_begun_by(self, name: str, text: str) -> bool:
        """Return whether a text begins with a word of a list."""
        return bool(self._patterns[name].match(self.simplify(text)))

    def strip_openers(self, text: str) -> str:
        """Return a text without the fillers at its beginning, and without punctuation around it."""
        text = text.strip(_STRIPPABLE_CHARS)
        while found := self._patterns["openers"].match(self._align(text)):
            rest = text[found.end() :].strip(_STRIPPABLE_CHARS)
            if not rest or rest == text:
                break
            text = rest
        return text

    def iter_joints(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
        """Yield the conjunctions between the clauses of a part of a text."""
        return self._patterns["joints"].finditer(self._align(text), start, end)

    def _fold(self, text: str) -> str:
        return remove_diacritics(text) if self.is_spaced else text

    def _align(self, text: str) -> str:
        """Return a text of the same length, in lower case and without diacritics."""
        return "".join([self._fold(each.casefold())[:1] or each for each in text])


@cache
def _load_words(language: str) -> _LanguageWords | None:
    path = _FOLDER / f"{language}.json"
    if not language.isalpha() or not path.is_file():
        return None
    lists = json.loads(path.read_text(encoding="utf-8"))
    return _LanguageWords(lists, is_spaced=language not in _UNSPACED_LANGUAGES)


def _prove(found: dict[Any, Any], said: Sequence[str], words: _LanguageWords) -> ProvedQuote | None:
    """Return the clauses around a quote, or None if nobody said it or if it states no lasting fact."""
    # models miscount, so the other turns are searched as well
    for turn in sorted(range(len(said)), key=lambda index: index + 1 != found.get("number")):
        if (span := _find_span(str(found.get("quote")), said[turn], words)) is not None:
            break
    else:
        return None
    (start, end), (first, last) = _widen(span, said[turn], words)
    sentence = said[turn][first:last]
    clause = words.strip_openers(said[turn][start:end])
    subject = _find_subject(str(found.get("subject") or ""), clause, [*said[:turn], said[turn][:start]], words)
    text = f"{subject}: {clause}" if subject else clause
    # the clause may be followed by "says Tom" or "I think"
    later = [said[turn][left:right] for left, right in _iter_clauses(said[turn], start, last, words)]
    # "for real now" ends a game or a story
    is_real = words.has("reality", said[turn][:end])
    around = [sentence] if is_real else said[max(0, turn - _GAME_TURNS) : turn + 1]
    is_refused = (
        subject is None
        or len(text) > MAX_FACT_CHARS
        or sentence.endswith(_QUESTION_MARKS)
        or words.is_begun_by("requests", clause)
        or words.has("passing instructions", clause)
        or words.has("unasserted", words.strip_openers(said[turn][first:end]))
        or any(words.is_begun_by("afterthoughts", each) for each in later)
        or words.has("pretended", around[-1])
        or words.has("games", " ".join(around))
        or not words.has("lasting habits", clause)
    )
    return None if is_refused else ProvedQuote(turn, text, clause, str(found.get("words") or ""))


def _find_span(quote: str, said: str, words: _LanguageWords) -> tuple[int, int] | None:
    """Return the span of a quote in a text. Case, accents and punctuation are ignored."""
    wanted = [words.simplify(each.group()) for each in _TOKEN_PATTERN.finditer(quote)]
    found = [*_TOKEN_PATTERN.finditer(said)]
    tokens = [words.simplify(each.group()) for each in found]
    for start in range(len(tokens) - len(wanted) + 1 if len(wanted) >= _MIN_QUOTE_TOKENS else 0):
        if tokens[start : start + len(wanted)] == wanted:
            return found[start].start(), found[start + len(wanted) - 1].end()
    return None


def _widen(span: _Span, said: str, words: _LanguageWords) -> tuple[_Span, _Span]:
    """Return the span of the whole clauses that contain a span, and that of the whole sentences."""
    sentences = [each.span() for each in _SENTENCE_PATTERN.finditer(said) if _overlaps(each.span(), span)]
    first, last = sentences[0][0], sentences[-1][1]
    clauses = [each for each in _iter_clauses(said, first, last, words) if _overlaps(each, span)] or [(first, last)]
    return (clauses[0][0], clauses[-1][1]), (first, last)


def _overlaps(one: _Span, other: _Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _iter_clauses(said: str, start: int, end: int, words: _LanguageWords) -> Iterator[tuple[int, int]]:
    """Yield the spans of the clauses of a part of a text."""
    edges = (*_CLAUSE_END_PATTERN.finditer(said, start, end), *words.iter_joints(said, start, end))
    for left, right in sorted(each.span() for each in edges):
        if re.search(r"\w", said[start:left]):
            yield start, left
        start = max(start, right)
    yield start, end


def _find_subject(subject: str, clause: str, before: Sequence[str], words: _LanguageWords) -> str | None:
    """Return the words of a person that a clause is about, "" if it names its subject itself, or None if nothing does.

    The last mention before the clause is taken, as the person wrote it.
    """
    if not words.is_begun_by("pronouns", clause):
        return ""
    wanted = subject.strip(_STRIPPABLE_CHARS)
    if not re.search(r"\w", wanted) or len(wanted) > _MAX_SUBJECT_CHARS or words.is_begun_by("pronouns", wanted):
        return None
    pattern = re.compile(f"{words.edge}{re.escape(wanted)}{words.edge}", re.IGNORECASE)
    return next((found.group() for text in reversed(before) if (found := pattern.search(text))), None)
