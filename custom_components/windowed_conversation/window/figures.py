"""Figures: whole numbers that come from outside, such as token counts, and how large one may be."""

from typing import TypeGuard

# More than any request or message costs in tokens. Sums of these stay within what JSON and databases hold.
GREATEST_FIGURE = 10**9


def is_figure(value: object, least: int = 0, most: int = GREATEST_FIGURE) -> TypeGuard[int]:
    """Return whether a value is a whole number from `least` to `most`; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
