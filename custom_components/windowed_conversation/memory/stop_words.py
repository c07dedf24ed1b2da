"""Stop words, and the words by which people refer to themselves, by language."""

from functools import cache
import json
from pathlib import Path

# Read at import, which Home Assistant does outside the event loop.
_WORDS = json.loads(Path(__file__).with_name("stop_words.json").read_text(encoding="utf-8"))

LANGUAGES = tuple(_WORDS)


def stop_words(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the words of these languages that a search ignores, as people write them."""
    return _words(languages, "stop")


def words_for_oneself(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the words of these languages by which people refer to themselves, such as "my"."""
    return _words(languages, "self")


@cache
def _words(languages: tuple[str, ...], which: str) -> frozenset[str]:
    return frozenset(word for language in languages for word in _WORDS.get(language, {}).get(which, "").split())
