"""Replies to questions: yes and no, also in more words for memory's questions, and decisions about suggestions."""

from enum import StrEnum
from functools import cache
import re

from ...turn.names import APOSTROPHE_TABLE
from ...turn.routing import is_question
from ..core import base_language
from .evidence import compile_words
from .speaker import get_word_boundary, load_language
from .suggestions import Decision

_WORD_PATTERN = re.compile(r"[\w']+")
_PAUSE_PATTERN = re.compile(r"[,;:.!，。、！]\s*\w")  # noqa: RUF001 - of several scripts
_QUESTION_MARKS = ("?", "？")

# Accepted as a yes and as a no in every language.
_ALWAYS = {"yes": ("yes", "ok", "okay"), "no": ("no",)}
# Sounds of hesitation, in several languages.
_HESITATIONS = (
    *("uh", "um", "uhm", "er", "erm", "eh", "ehm", "hm", "hmm", "mm", "ah", "oh", "äh", "ähm", "öh", "öhm", "øh"),
    *("øhm", "æh", "euh", "heu", "yy", "yyy", "ee", "eee", "hum", "hã", "хм", "гм", "えっと", "ええと"),
    *("うーん", "まあ", "呃", "哎", "е", "ее", "еее"),  # noqa: RUF001 - Cyrillic
)
# A reply with nothing but words of the question has at most this many phrases. A longer one is a request of its own.
_MAX_REPEATED_PHRASES = 3
# The names of lists in `languages/`.
_AGREEMENTS, _YES_CONTINUES = ("yes", "yes_to_memory"), ("yes_continues",)
_NO_CONTINUES = (*_YES_CONTINUES, "no_continues", *_AGREEMENTS)


class _Part(StrEnum):
    """The parts of a reply. An `OTHER` word is neither of the question nor of a usual reply."""

    ANSWER = "answer"
    POLITENESS = "politeness"
    CONTINUATION = "continuation"
    OTHER = "other"


def parse_yes_no(text: str, language: str, *, to_memory: bool = False) -> bool | None:
    """Return True if a text is a plain yes, False if it is a plain no, and None if it is neither, or doubts.

    With `to_memory`, replies that answer only a question of memory count, too: "tell me more", "yes, delete it", "oh
    no, leave it".
    """
    if compile_words("unsure", base_language(language)).search(text.casefold()):
        return None
    if _is_answer(text, language, _AGREEMENTS if to_memory else ("yes",)):
        return None if text.rstrip().endswith(_QUESTION_MARKS) else True
    if _is_answer(text, language, ("no",)):
        return False
    return _parse_long_reply(text, language) if to_memory else None


def parse_decision(text: str, language: str) -> Decision | None:
    """Return the decision of a text about suggestions that were read out, or None if it is anything else."""
    return next((each for each in Decision if _is_answer(text, language, (each,))), None)


def leans_to_yes(text: str, language: str) -> bool:
    """Return whether a text begins with a yes and has a word of the question: "yes, but delete only the second"."""
    parts = _split_parts(text, language, _AGREEMENTS, _YES_CONTINUES)
    return parts[:1] == [_Part.ANSWER] and _Part.CONTINUATION in parts


def _parse_long_reply(text: str, language: str) -> bool | None:
    """Return True for a yes with only words of the question after it, False for a refusal, and None for anything else.

    A yes may also be those words alone: "delete it". A refusal is a negation among the words with which people take
    something back.
    """
    if is_question(text) or _ends_in_question_word(text, language):
        return None
    base = base_language(language)
    parts = _split_parts(text, language, _AGREEMENTS, _YES_CONTINUES)
    repeats = len(parts) <= _MAX_REPEATED_PHRASES and compile_words("forgetting_words", base).search(text.casefold())
    agrees = parts[:1] == [_Part.ANSWER]
    if parts and _Part.OTHER not in parts and (agrees or repeats):
        return True
    plain_yes = (*_ALWAYS["yes"], *load_language(language).get("memory", {}).get("yes", ())[:1])
    # "certainly not" is a refusal, but "yes, don't" is none
    if agrees and (_PAUSE_PATTERN.search(text) or _join_words(text).startswith(plain_yes)):
        return None
    refusal = _split_parts(text, language, ("no",), _NO_CONTINUES)
    negates = _Part.ANSWER in refusal or compile_words("negations", base).search(text.casefold())
    return False if negates and _Part.OTHER not in refusal else None


def _ends_in_question_word(text: str, language: str) -> bool:
    """Return whether a reply asks back, without the question mark that speech recognition leaves out."""
    pattern, phrases = _compile_phrases(base_language(language), _AGREEMENTS, _YES_CONTINUES)
    found = pattern.findall(_join_words(text))
    while found and phrases.get(found[-1]) in {_Part.ANSWER, _Part.POLITENESS}:
        found.pop()
    edge = " " if get_word_boundary(language) else ""
    question_words = load_language(language).get("question_words", "").split()
    return (edge + " ".join(found)).endswith(tuple(edge + word for word in question_words))


def _is_answer(text: str, language: str, names: tuple[str, ...]) -> bool:
    """Return whether a text is one or more phrases of these lists, with or without "please"."""
    return set(_split_parts(text, language, names)) == {_Part.ANSWER}


def _split_parts(
    text: str, language: str, answers: tuple[str, ...], continuations: tuple[str, ...] = ()
) -> list[_Part]:
    """Return the parts of a text as a reply with phrases of these lists, without politeness."""
    pattern, phrases = _compile_phrases(base_language(language), answers, continuations)
    parts = [phrases.get(each, _Part.OTHER) for each in pattern.findall(_join_words(text))]
    return [each for each in parts if each is not _Part.POLITENESS]


@cache
def _compile_phrases(
    language: str, answers: tuple[str, ...], continuations: tuple[str, ...]
) -> tuple[re.Pattern[str], dict[str, _Part]]:
    """Return the pattern of a phrase or, where there is none, of a word, and the part that each phrase is.

    The longest phrase is found first. A reply that may continue may also begin with an opener.
    """
    data, edge = load_language(language).get("memory", {}), get_word_boundary(language)
    polite = ("please", "thanks", "openers") if continuations else ("please", "thanks")

    def list_phrases(names: tuple[str, ...]) -> list[str]:
        lists = [words.split() if isinstance(words := data.get(name, ()), str) else words for name in names]
        return [phrase for name, each in zip(names, lists, strict=True) for phrase in (*_ALWAYS.get(name, ()), *each)]

    # a phrase of two lists is the later one of these
    parts = {
        _Part.CONTINUATION: list_phrases(continuations),
        _Part.POLITENESS: [*_HESITATIONS, *list_phrases(polite)],
        _Part.ANSWER: list_phrases(answers),
    }
    phrases = {_join_words(phrase): part for part, some in parts.items() for phrase in some}
    longest_first = "|".join(sorted(map(re.escape, phrases), key=len, reverse=True))
    word = r"[\w']+" if edge else r"\w"
    return re.compile(rf"{edge}(?:{longest_first}){edge}(?!')|{word}"), phrases


def _join_words(text: str) -> str:
    return " ".join(_WORD_PATTERN.findall(text.translate(APOSTROPHE_TABLE).casefold()))
