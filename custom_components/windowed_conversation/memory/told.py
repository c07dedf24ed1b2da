"""Finds the texts that repeat most words of a forgotten one."""

from collections.abc import Iterable, Set as AbstractSet
import math

from .words import Words

# The share of its words that a repetition has.
_SHARE = 0.6


class Told:
    """The words of one text. Another text repeats it if it has `enough` of those `wanted`."""

    def __init__(self, words: Words, text: str) -> None:
        self.wanted = frozenset(words.question(text).words)
        self.enough = math.ceil(_SHARE * len(self.wanted))

    def is_repeated_in(self, held: AbstractSet[str]) -> bool:
        """Return whether a text with these terms repeats it, see `Words.held`."""
        return len(self.wanted & held) >= self.enough > 0


class Repetitions:
    """Finds the texts that repeat any of those in `told`. Not thread-safe."""

    def __init__(self, languages: tuple[str, ...], told: Iterable[str]) -> None:
        self._words = Words(languages)
        self._told = [Told(self._words, text) for text in told]

    def are_in(self, text: str) -> bool:
        """Return whether a text repeats any of them."""
        held = self._words.held(text)
        return any(told.is_repeated_in(held) for told in self._told)
