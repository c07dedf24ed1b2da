"""Facts whose words are like those of a query: inflected, or parts of a compound."""

from collections.abc import Sequence

from ..core import Fact, get_content_words, remove_diacritics

# The least number of letters that two words must begin with alike, and the most that is asked of long words.
_MIN_PREFIX_CHARS = 3
_MAX_PREFIX_CHARS = 5
# The number of letters at the end of the shorter word that may differ.
_MAX_ENDING_CHARS = 2
# The least number of letters of a part of a compound.
_MIN_PART_CHARS = 4
# The minimum share of the query's words that a fact must have.
_MIN_SHARE = 0.5

# Letters that are no letter with a diacritic.
_LETTER_TABLE = str.maketrans("łđø", "ldo")


def find_near_facts(query: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts with the most words that are like those of a query, if they are most of its words."""
    wanted = _list_words(query)
    # the number of wanted words that have one like them, and the number of words that are like a wanted one
    counts = dict[int, tuple[int, int]]()
    for fact in facts:
        words = _list_words(fact.text)
        likes = [{word for word in words if _is_like(each, word)} for each in wanted]
        counts[fact.id] = sum(map(bool, likes)), len(set().union(*likes))
    most = max(counts.values(), default=(0, 0))
    return [fact for fact in facts if counts[fact.id] == most and most[0] >= max(1, _MIN_SHARE * len(wanted))]


def _list_words(text: str) -> list[str]:
    return [remove_diacritics(word).translate(_LETTER_TABLE) for word in get_content_words(text)]


def _is_like(first: str, second: str) -> bool:
    shorter, longer = sorted((first, second), key=len)
    if len(shorter) >= _MIN_PART_CHARS and shorter in longer:
        return True
    most = max(_MIN_PREFIX_CHARS, min(_MAX_PREFIX_CHARS, len(shorter) - _MAX_ENDING_CHARS))
    return first[:most] == second[:most]
