"""Texts as they are stored: on one line, and of bounded length."""

import math
import re
import unicodedata

FACT_LENGTH = 300
QUOTE_LENGTH = 500
SAID_LENGTH = 2_000
ANSWER_LENGTH = 4_000
EPISODE_LENGTH = 2_000
NAME_LENGTH = 255

# open and close, besides the two that Unicode takes for signs
_BRACKETS = {"Ps", "Pe"}
_ANGLES = "<>"
# what joins letters and emoji belongs to them
_JOINERS = "\u200c\u200d"
_CUT = "…"


def one_line(text: str, length: int) -> str:
    """Return a text on one line without control characters, cut between words if it is too long."""
    # far more than is kept need not be looked at
    shown = text[: length * 4]
    if not shown.isprintable():
        shown = "".join(" " if _is_control(character) else character for character in shown)
    line = " ".join(shown.split())
    if len(line) <= length:
        return line
    kept = line[: length - len(_CUT)]
    start, space, _ = kept.rpartition(" ")
    return (start if space and len(start) > length // 2 else kept) + _CUT


def fact_text(text: str) -> str:
    """Return a fact's text, in which nothing can end its line or close a bracket around it."""
    shown = "".join(" " if _is_bracket(character) else character for character in text[: FACT_LENGTH * 4])
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
    """Return a time. Raises `ValueError` if it is not a finite number of seconds."""
    if isinstance(at, bool) or not math.isfinite(at):
        raise ValueError("A time is a finite number of seconds")
    return float(at)


def _is_bracket(character: str) -> bool:
    return unicodedata.category(character) in _BRACKETS or character in _ANGLES


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and character not in _JOINERS
