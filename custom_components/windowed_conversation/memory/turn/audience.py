"""The audience of a fact, as said beside a request to remember it: "just for me", "privately", "for everyone"."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
import re

from ..core import base_language
from .speaker import get_word_boundary, load_language

_STRIPPABLE_CHARS = " \t\r\n.,;:!…-–—。，、；：！　"  # noqa: RUF001 - of several scripts
_APOSTROPHE_TABLE = str.maketrans("’‘ʼ", "'''")  # noqa: RUF001 - of several scripts
_MARK_BEFORE_PATTERN = re.compile(r"[.,;:!…–—。，、；：！-]\s*$")  # noqa: RUF001 - of several scripts

# A short word between a mark and the end: ", but".
_CONJUNCTION_PATTERN = re.compile(r"(?<=[.,;])\s*\w{1,5}\s*$")


@dataclass(frozen=True, slots=True)
class Audience:
    """The audience of a fact, and the parts of the sentence before and after its words."""

    is_private: bool
    before: str
    after: str

    def is_beside(self, fact: str) -> bool:
        """Return whether the words stand before a fact, or after it and a mark: in "the cake is for all", they do not.

        Within the fact, they are a part of it.
        """
        if fact in self.after:
            return True
        return fact in self.before and not self.after and bool(_MARK_BEFORE_PATTERN.search(self.before))


def iter_audiences(text: str, language: str) -> Iterator[tuple[str, Audience]]:
    """Yield each audience in a text, with the text without its words."""
    for found in _compile(base_language(language)).finditer(text.translate(_APOSTROPHE_TABLE)):
        before, after = text[: found.start()], text[found.end() :].strip(_STRIPPABLE_CHARS)
        if not after:
            before = _CONJUNCTION_PATTERN.sub("", before)
        is_first = not before.strip(_STRIPPABLE_CHARS)
        rest = after if is_first else f"{before.rstrip()} {text[found.end() :].lstrip()}".rstrip()
        yield rest, Audience(found.lastgroup == "me", before, after)


@cache
def _compile(language: str) -> re.Pattern[str]:
    data, edge = load_language(language).get("memory", {}), get_word_boundary(language)
    groups = {"me": data.get("for_me", ""), "all": data.get("for_all", "")}
    longest = {name: sorted(filter(None, words.split("|")), key=len, reverse=True) for name, words in groups.items()}
    parts = [f"(?P<{name}>{'|'.join(map(re.escape, words)) or '(?!)'})" for name, words in longest.items()]
    return re.compile(f"{edge}(?:{'|'.join(parts)}){edge}", re.IGNORECASE)
