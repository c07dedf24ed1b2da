"""The fact that a new one updates, decided by words alone, and therefore rarely.

A fact that says the same with another day, time or number is an update: "The bins go out on Friday". So is one that
says so, "from now on", and shares most words. "I like jazz" is none of "I like tea": both can be true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
import json
from pathlib import Path
import re

from ..memory import Recalled, Words, spoken

_FILE = Path(__file__).with_suffix(".json")
_SHARE = 0.6
# A longer word of a list may have an ending: "montags".
_STEM_LENGTH = 5


@dataclass(frozen=True, slots=True)
class _Lists:
    changes: re.Pattern[str] | None
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Said:
    """A fact taken apart: whether it says that it is new, its subject, and its days, times and numbers."""

    is_change: bool
    subject: frozenset[str]
    values: tuple[str, ...]


def updated(text: str, facts: Sequence[Recalled], language: str, words: Words) -> Recalled | None:
    """Return the fact that a new one closes, None if there is none or if there are several."""
    lists = _lists(language.replace("_", "-").partition("-")[0].casefold())
    new = _taken_apart(text, lists, words)
    same: list[Recalled] = []
    similar: list[Recalled] = []
    for fact in facts:
        old = _taken_apart(fact.text, lists, words)
        if old.subject == new.subject and new.subject and old.values and new.values and old.values != new.values:
            same.append(fact)
        elif new.is_change and _share(new.subject, old.subject) >= _SHARE:
            similar.append(fact)
    found = same or similar
    return found[0] if len(found) == 1 and spoken(found[0].text) != spoken(text) else None


def _share(some: frozenset[str], others: frozenset[str]) -> float:
    return len(some & others) / (min(len(some), len(others)) or 1)


def _taken_apart(text: str, lists: _Lists, words: Words) -> _Said:
    plain, changes = lists.changes.subn(" ", spoken(text)) if lists.changes else (spoken(text), 0)
    values: list[str] = []
    rest: list[str] = []
    for word in plain.split():
        (values if _is_value(word, lists.values) else rest).append(word)
    return _Said(changes > 0, frozenset(words.question(" ".join(rest)).words), tuple(values))


def _is_value(word: str, values: tuple[str, ...]) -> bool:
    return any(char.isdigit() for char in word) or any(
        word == value or (len(value) >= _STEM_LENGTH and word.startswith(value)) for value in values
    )


@cache
def _lists(language: str) -> _Lists:
    data = json.loads(_FILE.read_text(encoding="utf-8")).get(language)
    if data is None:
        return _Lists(None, ())
    changes = "|".join(re.escape(spoken(change)) for change in data["changes"])
    return _Lists(re.compile(rf"\b(?:{changes})\b"), tuple(data["values"].split()))
