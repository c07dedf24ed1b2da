"""Bounds for whole numbers from outside, such as token counts."""

from typing import TypeGuard

# More tokens than any request or message has. Sums of such figures stay within what JSON and databases hold.
GREATEST_FIGURE = 10**9


def is_figure(value: object, least: int = 0, most: int = GREATEST_FIGURE) -> TypeGuard[int]:
    """Return whether a value is a whole number from `least` to `most`. A boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
