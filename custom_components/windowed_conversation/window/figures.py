"""Bounds for whole numbers from outside, such as token counts."""

from typing import TypeGuard

# More tokens than any request or message has. JSON and databases can hold sums of such counts.
MAX_COUNT = 10**9


def is_count(value: object, least: int = 0, most: int = MAX_COUNT) -> TypeGuard[int]:
    """Return whether a value is a whole number from `least` to `most`. A boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
