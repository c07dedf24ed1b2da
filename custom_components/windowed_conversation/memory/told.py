"""What was told, to find the texts that repeat it in most of its words."""

from collections.abc import Iterable, Set as AbstractSet
import math

from .words import Words

# The share of the words that repeats it.
_SHARE = 0.6


class Told:
    """The words of one text; `enough` of those `wanted` repeat it."""

    def __init__(self, words: Words, text: str) -> None:
        self.wanted = frozenset(words.question(text).words)
        self.enough = math.ceil(_SHARE * len(self.wanted))

    def is_repeated_in(self, held: AbstractSet[str]) -> bool:
        """Return whether a text that holds these terms repeats it, see `Words.held`."""
        return len(self.wanted & held) >= self.enough > 0


class Repetitions:
    """Finds the texts that repeat any of those told. For one thread."""

    def __init__(self, languages: tuple[str, ...], told: Iterable[str]) -> None:
        self._words = Words(languages)
        self._told = [Told(self._words, text) for text in told]

    def are_in(self, text: str) -> bool:
        """Return whether a text repeats any of them."""
        held = self._words.held(text)
        return any(told.is_repeated_in(held) for told in self._told)
