"""A code of digits that is spoken: how it is stored, compared, and found in a sentence."""

from contextlib import suppress
from functools import cache
import hashlib
import hmac
import os
import re

from unicode_rbnf import RbnfEngine

from ..memory.core import base_language, remove_diacritics
from ..memory.turn.speaker import get_word_boundary
from ..turn.names import APOSTROPHE_TABLE

# Replaces a code that was said, or that is set.
MASK = "••••"

_MIN_DIGITS = 4
_MAX_DIGITS = 12
# In a sentence such as "my code is 1 2 3 4, please".
_MAX_CHARS_PER_DIGIT = 4
_ROUNDS = 100_000
_SALT_CHARS = 16
_GAP_PATTERN = re.compile(r"[\W_]+")


def is_code(text: str) -> bool:
    """Return whether a text is a code that can be set."""
    return text.isascii() and text.isdigit() and _MIN_DIGITS <= len(text) <= _MAX_DIGITS


def hash_code(digits: str) -> str:
    """Return a code as it is stored. Slow, so it should run in the executor."""
    salt = os.urandom(_SALT_CHARS // 2).hex()
    return salt + _derive(digits, salt)


def matches_code(digits: str, stored: str) -> bool:
    """Return whether digits are the code that is stored. Slow, so it should run in the executor."""
    return hmac.compare_digest(stored[_SALT_CHARS:], _derive(digits, stored[:_SALT_CHARS]))


def find_digits(text: str, language: str, is_expected: bool) -> str:
    """Return the digits of a sentence that may be a code, spoken one by one or in pairs, or an empty text.

    If none is expected, a sentence with many other words is not taken for a late code. The first call in each language
    blocks on disk I/O.
    """
    pattern, values = _load_numbers(base_language(language))
    plain = _simplify(text)
    digits = "".join(values.get(number) or str(int(number)) for number in pattern.findall(plain))
    other_chars = sum(map(str.isalnum, pattern.sub("", plain)))
    is_likely = len(digits) >= _MIN_DIGITS and (is_expected or other_chars <= _MAX_CHARS_PER_DIGIT * len(digits))
    return digits if is_likely or not other_chars else ""


@cache
def _load_numbers(language: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return the pattern for a digit or the words of a number below 100, and the digits that the words stand for."""
    values: dict[str, str] = {}
    with suppress(ValueError):  # a language without words
        # "no" is this library's code for Norwegian
        engine = RbnfEngine.for_language({"nb": "no"}.get(language, language))
        for number in range(100):
            spoken = engine.format_number(number).text_by_ruleset.values()
            values |= {_simplify(words): str(number) for words in spoken}
    edge = get_word_boundary(language)
    words = "|".join(map(re.escape, sorted(values, key=len, reverse=True))) or "(?!)"
    return re.compile(rf"\d|{edge}(?:{words}){edge}"), values


def _simplify(text: str) -> str:
    return _GAP_PATTERN.sub(" ", remove_diacritics(text.casefold().translate(APOSTROPHE_TABLE).replace("'", "")))


def _derive(digits: str, salt: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", digits.encode(), bytes.fromhex(salt), _ROUNDS).hex()
