"""Checks by code that a fact comes from the user's words: a model may read facts in other places, too."""

from collections.abc import Iterator

from ..memory import Words, plain_word, split_words

# The share of a fact's words that must be in its quote; the rest is the model's wording.
_SUPPORTED = 0.5


def is_quoted(quote: str, said: str) -> bool:
    """Return whether a quote is part of a spoken sentence. Case, accents, punctuation and spaces are ignored.

    A quote of one word must be the whole sentence: "the" proves nothing.
    """
    wanted, found = list(_tokens(quote)), list(_tokens(said))
    if not wanted or len(wanted) < min(2, len(found)):
        return False
    return any(found[start : start + len(wanted)] == wanted for start in range(len(found) - len(wanted) + 1))


def is_supported_by(fact: str, quote: str, speaker: str | None, words: Words) -> bool:
    """Return whether a quote supports a fact: at least half of the fact's words are in the quote.

    The speaker's name in the fact may stand for "I" in the quote.
    """
    names = words.term_set(speaker) if speaker else set()
    content = set(words.question(fact).words) - names
    if not content:
        return is_quoted(fact, quote)
    return len(content & words.term_set(quote)) >= _SUPPORTED * len(content)


def _tokens(text: str) -> Iterator[str]:
    """Yield the words of a text, and each character of a script without spaces."""
    for word, is_spaced in split_words(text):
        if is_spaced:
            yield plain_word(word)
        else:
            yield from word
