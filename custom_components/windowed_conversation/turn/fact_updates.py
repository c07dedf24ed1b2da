"""The fact that a new one updates, decided by words alone, and therefore rarely.

A fact that says the same with another day, time or number is an update: "The bins go out on Friday". So is one that
says so, "from now on", and shares most words. "I like jazz" is none of "I like tea": both can be true.
"""

from collections.abc import Sequence
from functools import cache
import json
from pathlib import Path
import re
from typing import NamedTuple

from ..memory import Recalled, Words, spoken
from .speaker import base_language

_FILE = Path(__file__).with_name("fact_updates.json")
_SHARED_SUBJECT = 0.6
# A longer word of a list may have an ending: "montags".
_STEM_LENGTH = 5


class _Parts(NamedTuple):
    """A fact taken apart: whether it says that it is new, its subject, and its days, times and numbers."""

    is_change: bool
    subject: frozenset[str]
    values: tuple[str, ...]


def find_updated(text: str, facts: Sequence[Recalled], language: str, words: Words) -> Recalled | None:
    """Return the fact that a new one closes, None if there is none or if there are several."""
    patterns = _patterns(base_language(language))
    new = _parts(text, patterns, words)
    same: list[Recalled] = []
    similar: list[Recalled] = []
    for fact in facts:
        old = _parts(fact.text, patterns, words)
        shortest = min(len(new.subject), len(old.subject)) or 1
        if old.subject == new.subject and new.subject and old.values and new.values and old.values != new.values:
            same.append(fact)
        elif new.is_change and len(new.subject & old.subject) >= _SHARED_SUBJECT * shortest:
            similar.append(fact)
    found = same or similar
    return found[0] if len(found) == 1 and spoken(found[0].text) != spoken(text) else None


def _parts(text: str, patterns: tuple[re.Pattern[str], re.Pattern[str]], words: Words) -> _Parts:
    change, value = patterns
    plain, changes = change.subn(" ", spoken(text))
    values: list[str] = []
    rest: list[str] = []
    for word in plain.split():
        (values if value.fullmatch(word) else rest).append(word)
    return _Parts(changes > 0, frozenset(words.question(" ".join(rest)).words), tuple(values))


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of phrases that announce a change, and that of days, times and numbers."""
    lists = json.loads(_FILE.read_text(encoding="utf-8")).get(language, {"changes": (), "values": ""})
    changes = "|".join(re.escape(spoken(each)) for each in lists["changes"]) or "(?!)"
    values = [re.escape(each) + (".*" if len(each) >= _STEM_LENGTH else "") for each in lists["values"].split()]
    return re.compile(rf"\b(?:{changes})\b"), re.compile("|".join((r".*\d.*", *values)))
