"""Replies to questions: yes and no, also in more words for memory's questions, and decisions about suggestions."""

from enum import StrEnum
from functools import cache
import re

from ...turn.routing import is_question
from ..core import base_language
from .speaker import get_word_boundary, load_language

_WORD_PATTERN = re.compile(r"[\w']+")
_APOSTROPHE_TABLE = str.maketrans("’‘ʼ", "'''")  # noqa: RUF001 - of several scripts
_ALWAYS = {"yes": ("yes", "ok", "okay"), "no": ("no",)}


class _Part(StrEnum):
    """The parts of a reply. An `OTHER` word is neither of the question nor of a usual reply."""

    ANSWER = "answer"
    POLITENESS = "politeness"
    CONTINUATION = "continuation"
    OTHER = "other"


def parse_long_reply(text: str, language: str) -> bool | None:
    """Return True for a yes with only words of the question after it, False for a refusal, and None for anything else.

    A refusal is a no among the words with which people take something back.
    """
    parts = _split_parts(text, language, "yes")
    if _begins_with_answer(parts):
        return None if _Part.OTHER in parts or is_question(text) else True
    parts = _split_parts(text, language, "no")
    return False if _Part.ANSWER in parts and _Part.OTHER not in parts else None


def leans_to_yes(text: str, language: str) -> bool:
    """Return whether a text begins with a yes and has a word of the question: "yes, but delete only the second"."""
    parts = _split_parts(text, language, "yes")
    return _begins_with_answer(parts) and _Part.CONTINUATION in parts


def _begins_with_answer(parts: list[_Part]) -> bool:
    first = next((each for each in parts if each is not _Part.POLITENESS), None)
    return first is _Part.ANSWER


def _split_parts(text: str, language: str, answer: str) -> list[_Part]:
    """Return the parts of a text as a reply with this answer, "yes" or "no"."""
    pattern, phrases = _compile_phrases(base_language(language), answer)
    return [phrases.get(each, _Part.OTHER) for each in pattern.findall(_join_words(text))]


@cache
def _compile_phrases(language: str, answer: str) -> tuple[re.Pattern[str], dict[str, _Part]]:
    """Return the pattern of a phrase or, where there is none, of a word, and the part that each phrase is.

    The longest phrase is found first. A reply that may continue may also begin with an opener.
    """
    data, edge = load_language(language).get("memory", {}), get_word_boundary(language)
    continuations = [*data.get("yes_continues", "").split(), *(data.get("no_continues", "").split() * (answer == "no"))]
    agreements = data.get("yes_to_memory", ()) if answer == "yes" else ()
    # a phrase of two lists is the later one of these
    parts = {
        _Part.CONTINUATION: continuations,
        _Part.POLITENESS: [phrase for name in ("please", "thanks", "openers") for phrase in data.get(name, ())],
        _Part.ANSWER: [*_ALWAYS[answer], *data.get(answer, ()), *agreements],
    }
    phrases = {_join_words(phrase): part for part, some in parts.items() for phrase in some}
    longest_first = "|".join(sorted(map(re.escape, phrases), key=len, reverse=True))
    word = r"[\w']+" if edge else r"\w"
    return re.compile(rf"{edge}(?:{longest_first}){edge}(?!')|{word}"), phrases


def _join_words(text: str) -> str:
    return " ".join(_WORD_PATTERN.findall(text.translate(_APOSTROPHE_TABLE).casefold()))
